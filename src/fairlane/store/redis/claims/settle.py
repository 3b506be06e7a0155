"""Settle attempts and claim the next jobs in the same scripts, a page of settlements each.

What a settlement means depends on the job: cancellation may have been requested, or the job would come back
after it expires. Python works these variants out beforehand (`reconcile`); the script picks one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import msgspec

from fairlane.model.errors import StoreError
from fairlane.model.job import JobRecord, Settlement
from fairlane.model.lifecycle.states import Event, target
from fairlane.model.retry.decision import reconcile
from fairlane.store.contract.claims import SettledJob, SettleReply, SettleRequest
from fairlane.store.contract.request import check_serves_all
from fairlane.store.redis.claims.claim import ClaimParts, encode_request, finish_claim
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.pipeline import Command
from fairlane.store.redis.records.job import ANY, NUMBERS, STATES, pack
from fairlane.store.redis.records.layout import SETTLEMENT_LAYOUT
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT


async def settle(client: RedisClient, request: SettleRequest) -> SettleReply:
    """Settle page by page. If the connection ends in between, return what the replies so far say."""
    encoded = b""
    if request.claim is not None:
        check_serves_all(request.claim)
        encoded = encode_request(request.claim)
    parts = None if request.claim is None else ClaimParts(request.claim)
    pages = SettlementPages(request, encoded, MAX_JOBS_PER_SCRIPT)
    states: dict[int, list[int]] = {}

    def on_reply(number: int, reply: Any) -> None:
        states[number] = reply[0]
        if parts is not None:
            parts.add(number, reply[1])
            parts.decode()

    try:
        await client.run_pages("claims/settle", pages, on_reply, _lock_name(request))
    except StoreError:
        if not states:
            raise
        if parts is not None:
            parts.cut_short()
    settled = [one for number, known in states.items() for one in zip(pages.ids(number), known, strict=True)]
    return SettleReply(
        tuple([SettledJob(id, STATES[state]) for id, state in settled if state]),
        tuple([id for id, state in settled if not state]),
        None if parts is None else await finish_claim(client, parts),
    )


def _lock_name(request: SettleRequest) -> str | None:
    """Return a name for the lane that asks: its two concurrent calls send their pages one after the other.

    If the server got the pages of both mixed, it would finish both at the same time; then all handlers
    would run while the server waits, and the server would work while all handlers wait.
    """
    return None if request.claim is None else "\0".join([one.queue for one in request.claim.queue_requests])


class SettlementPages(Sequence[Command]):
    """The arguments of `claims/settle.lua`, page by page, each with a part of the claim."""

    def __init__(self, request: SettleRequest, claim: bytes, size: int) -> None:
        """Pack nothing yet: a page is packed while the server works on the one before."""
        self._request = request
        self._claim = claim
        self._size = size
        self._continuation = uuid4().hex if claim and len(self) > 1 else ""

    def __len__(self) -> int:
        """Return how many pages there are: at least one, for a claim alone."""
        return max(1, -(-len(self._request.settlements) // self._size))

    def _page(self, number: int) -> tuple[Settlement, ...]:
        return self._request.settlements[number * self._size : (number + 1) * self._size]

    def ids(self, number: int) -> list[UUID]:
        """Return the ids of the jobs of one page."""
        return [one.id for one in self._page(number)]

    def __getitem__(self, number: Any) -> Any:
        """Pack one page."""
        request, settlements = self._request, self._page(number)
        if number and not settlements:
            raise IndexError(number)
        parts: list[bytes] = []
        for one in settlements:
            if one.failure is not None:
                parts.append(pack(one.failure))
            if one.log is not None:
                parts.append(pack(one.log))
            if one.result is not None:
                parts.append(one.result)
            if one.metadata is not None:
                parts.append(one.metadata)
        return (
            request.worker,
            request.scope.tenant or "",
            b"".join(map(_encode, settlements)),
            b"".join([one.id.bytes for one in settlements]),
            self._claim,
            self._continuation,
            number + 1,
            len(self),
            request.attempts_kept,
            *parts,
        )


_IF_CANCELLED: Final = msgspec.structs.replace(ANY, is_cancel_asked=True)
_IF_EXPIRED: Final = msgspec.structs.replace(ANY, expires_at=0)
"""Jobs that stand for all whose cancellation was requested, or that expire before a next attempt."""


class _EventMeaning(NamedTuple):
    """What an event means to the script: the state it leads to, and the variants of its settlements."""

    state: int
    has_if_cancelled: bool
    has_if_expired: bool
    variants: tuple[JobRecord, ...]


@cache
def _meaning(event: Event) -> _EventMeaning:
    """Find out for which of the two jobs a settlement with this event becomes another."""
    plain = Settlement(id=ANY.id, fence=0, event=event, outcome="succeeded")
    variants = tuple(job for job in (_IF_CANCELLED, _IF_EXPIRED) if reconcile(job, plain, 0) is not plain)
    return _EventMeaning(NUMBERS[target(event)], _IF_CANCELLED in variants, _IF_EXPIRED in variants, variants)


def _encode(settlement: Settlement) -> bytes:
    """Pack a settlement, then its variants."""
    event = _meaning(settlement.event)
    plain = _pack(settlement, event)
    return plain + b"".join(_variant(job, settlement) for job in event.variants) if event.variants else plain


def _variant(job: JobRecord, settlement: Settlement) -> bytes:
    reconciled = reconcile(job, settlement, 0)
    return _pack(reconciled, _meaning(reconciled.event))


@lru_cache
def _texts(outcome: str, because: str | None) -> bytes:
    return f"{outcome}\0{because or ''}\0".encode()


def _pack(settlement: Settlement, event: _EventMeaning) -> bytes:
    """Pack the fields of SETTLEMENT_LAYOUT in their order."""
    numbers = SETTLEMENT_LAYOUT.pack_numbers(
        settlement.fence,
        settlement.failure is not None,
        settlement.log is not None,
        settlement.result is not None,
        settlement.metadata is not None,
        event.has_if_cancelled,
        event.has_if_expired,
        event.state,
        settlement.delay,
        settlement.failures,
        settlement.crashes,
        settlement.crashes_alone,
        settlement.snoozes,
        settlement.is_suspect,
        settlement.spent,
        settlement.is_unstarted,
    )
    return numbers + _texts(settlement.outcome, settlement.because)
