"""Say to the script how attempts ended, in each form that `judge.heed` may give it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import msgspec

from fairlane.model.job import JobRecord, Settlement
from fairlane.model.judge import heed
from fairlane.model.lifecycle import Event, target
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.redis.exchange import Command
from fairlane.store.redis.forms import ENDING
from fairlane.store.redis.rows import ANY, NUMBERS, pack

_ASKED: Final = msgspec.structs.replace(ANY, is_cancel_asked=True)
_LATE: Final = msgspec.structs.replace(ANY, expires_at=0)
"""Jobs of which nothing matters but that they were asked to stop, or expire before any next attempt."""


class SettlementPages(Sequence[Command]):
    """What `settle.lua` takes for a request, page by page, each with the next part of the claim."""

    def __init__(self, request: SettleRequest, claim: bytes, size: int) -> None:
        """Pack nothing yet: a page is packed while the server works on the one before."""
        self._request = request
        self._claim = claim
        self._size = size
        self._carry = uuid4().hex if claim and len(self) > 1 else ""

    def __len__(self) -> int:
        """Say how many there are: one at least, for a claim alone."""
        return max(1, -(-len(self._request.settlements) // self._size))

    def _page(self, number: int) -> tuple[Settlement, ...]:
        return self._request.settlements[number * self._size : (number + 1) * self._size]

    def ids(self, number: int) -> list[UUID]:
        """Name the jobs of one page."""
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
        return (
            request.worker,
            request.scope.tenant or "",
            b"".join(map(_forms, settlements)),
            b"".join([one.id.bytes for one in settlements]),
            self._claim,
            self._carry,
            number + 1,
            len(self),
            *parts,
        )


def _forms(settlement: Settlement) -> bytes:
    """Pack a settlement as it is, then the other forms that it may have."""
    event = _meaning(settlement.event)
    plain = _form(settlement, event)
    return plain + b"".join(_other_form(job, settlement) for job in event.heeded) if event.heeded else plain


class _Event(NamedTuple):
    """What an event means to the script: the state it leads to, and which other forms a settlement has."""

    state: int
    has_asked: bool
    has_late: bool
    heeded: tuple[JobRecord, ...]


@cache
def _meaning(event: Event) -> _Event:
    """Find which of the two jobs make another settlement of one with this event."""
    any_ = Settlement(id=ANY.id, fence=0, event=event, outcome="succeeded")
    heeded = tuple(job for job in (_ASKED, _LATE) if heed(job, any_, 0) is not any_)
    return _Event(NUMBERS[target(event)], _ASKED in heeded, _LATE in heeded, heeded)


def _other_form(job: JobRecord, settlement: Settlement) -> bytes:
    heeded = heed(job, settlement, 0)
    return _form(heeded, _meaning(heeded.event))


@lru_cache
def _texts(outcome: str, because: str | None) -> bytes:
    return f"{outcome}\0{because or ''}\0".encode()


def _form(settlement: Settlement, event: _Event) -> bytes:
    numbers = ENDING.pack_numbers(
        settlement.fence,
        settlement.failure is not None,
        settlement.log is not None,
        settlement.result is not None,
        event.has_asked,
        event.has_late,
        event.state,
        settlement.delay,
        settlement.failures,
        settlement.crashes,
        settlement.crashes_alone,
        settlement.snoozes,
        settlement.is_suspect,
    )
    return numbers + _texts(settlement.outcome, settlement.because)
