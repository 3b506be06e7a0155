"""Say to the script how attempts ended, in each form that `judge.heed` may give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord, NewJob, Settlement
from fairlane.model.judge import heed
from fairlane.model.lifecycle import target
from fairlane.model.moves import born
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.redis.rows import NIL, NUMBERS, pack

_ANY: Final[JobRecord] = born(
    NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0), 0
)
_ASKED: Final = msgspec.structs.replace(_ANY, is_cancel_asked=True)
_LATE: Final = msgspec.structs.replace(_ANY, expires_at=0)
"""Jobs of which nothing matters but that they were asked to stop, or expire before any next attempt."""


def settlement_arguments(
    request: SettleRequest, settlements: Sequence[Settlement], claim: bytes
) -> tuple[Any, ...]:
    """Give what `settle.lua` takes for some of the settlements."""
    parts: list[bytes] = []
    for one in settlements:
        parts += (NIL if one.failure is None else pack(one.failure), pack(one.log))
        if one.result is not None:
            parts.append(one.result)
    return (
        request.worker,
        request.scope.tenant or "",
        pack([_forms(one) for one in settlements]),
        b"".join(one.id.bytes for one in settlements),
        claim,
        *parts,
    )


def _forms(settlement: Settlement) -> dict[str, Any]:
    forms: dict[str, Any] = {
        "fence": settlement.fence,
        "has_result": settlement.result is not None,
        "plain": _form(settlement),
    }
    for name, job in (("asked", _ASKED), ("late", _LATE)):
        heeded = heed(job, settlement, 0)
        if heeded is not settlement:
            forms[name] = _form(heeded)
    return forms


def _form(settlement: Settlement) -> dict[str, Any]:
    return {
        "state": NUMBERS[target(settlement.event)],
        "outcome": settlement.outcome,
        "because": settlement.because or "",
        "delay": settlement.delay,
        "failures": settlement.failures,
        "crashes": settlement.crashes,
        "crashes_alone": settlement.crashes_alone,
        "snoozes": settlement.snoozes,
        "is_suspect": settlement.is_suspect,
    }
