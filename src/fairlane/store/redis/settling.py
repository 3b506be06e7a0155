"""Say to the script how attempts ended, in each form that `judge.heed` may give it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord, NewJob, Settlement
from fairlane.model.judge import heed
from fairlane.model.lifecycle import Event, target
from fairlane.model.moves import born
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.redis.forms import ENDING
from fairlane.store.redis.rows import NIL, NUMBERS, pack

_ANY: Final[JobRecord] = born(
    NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0), 0
)
_ASKED: Final = msgspec.structs.replace(_ANY, is_cancel_asked=True)
_LATE: Final = msgspec.structs.replace(_ANY, expires_at=0)
"""Jobs of which nothing matters but that they were asked to stop, or expire before any next attempt."""


class SettlementPages:
    """What `settle.lua` takes for a request, page by page; the last one brings the claim with it."""

    def __init__(self, request: SettleRequest, claim: bytes, size: int) -> None:
        """Pack nothing yet: the next page is packed while the server works on the one before."""
        self._request = request
        self._claim = claim
        self._size = size
        self._packed: dict[int, tuple[Any, ...]] = {}

    def __len__(self) -> int:
        """Say how many there are: one at least, for a claim alone."""
        return max(1, -(-len(self._request.settlements) // self._size))

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        """Give the arguments of one page."""
        self.prepare(number)
        return self._packed.pop(number)

    def prepare(self, number: int) -> None:
        """Pack a page, if there is such a one and it is not packed yet."""
        if number < len(self) and number not in self._packed:
            page = self._request.settlements[number * self._size : (number + 1) * self._size]
            claim = self._claim if number == len(self) - 1 else b""
            self._packed[number] = _arguments(self._request, page, claim)


def _arguments(request: SettleRequest, settlements: Sequence[Settlement], claim: bytes) -> tuple[Any, ...]:
    parts: list[bytes] = []
    for one in settlements:
        parts += (
            NIL if one.failure is None else pack(one.failure),
            NIL if one.log is None else pack(one.log),
        )
        if one.result is not None:
            parts.append(one.result)
    return (
        request.worker,
        request.scope.tenant or "",
        b"".join(map(_forms, settlements)),
        b"".join(one.id.bytes for one in settlements),
        claim,
        *parts,
    )


def _forms(settlement: Settlement) -> bytes:
    """Pack a settlement as it is, then the other forms that it may have."""
    jobs = _heeded(settlement.event)
    plain = _form(settlement, has_asked=_ASKED in jobs, has_late=_LATE in jobs)
    return plain + b"".join(_form(heed(job, settlement, 0)) for job in jobs) if jobs else plain


@cache
def _heeded(event: Event) -> tuple[JobRecord, ...]:
    """Give those of the two jobs that make another settlement of one with this event."""
    any_ = Settlement(id=_ANY.id, fence=0, event=event, outcome="succeeded")
    return tuple(job for job in (_ASKED, _LATE) if heed(job, any_, 0) is not any_)


def _form(settlement: Settlement, *, has_asked: bool = False, has_late: bool = False) -> bytes:
    numbers = ENDING.pack_numbers(
        settlement.fence,
        settlement.result is not None,
        has_asked,
        has_late,
        NUMBERS[target(settlement.event)],
        settlement.delay,
        settlement.failures,
        settlement.crashes,
        settlement.crashes_alone,
        settlement.snoozes,
        settlement.is_suspect,
    )
    return numbers + f"{settlement.outcome}\0{settlement.because or ''}\0".encode()
