"""What is kept when a schedule changes and when its slots are taken and end, and who may see it (S57)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.schedule.records import FanOut, NewSlot, ScheduleRecord, ScheduleRow, SlotRow
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.scope import Scope

_TAKEN_AGAIN: Final = frozenset({"missed", "skipped", "failed"})
_TOLD_OF_JOBS: Final = (
    "queue",
    "task",
    "tenant",
    "priority",
    "max_attempts",
    "timeout",
    "expires_in",
    "tags",
    "version",
    "checksum",
)
"""What the audit says of the jobs of a schedule; of their arguments only that they are others."""


def next_row(row: ScheduleRow | None, record: ScheduleRecord, now: Instant) -> ScheduleRow:
    """Return the row of a record that replaces what is kept, if anything.

    The revision is no lower than the clock, so that what was removed and made again has another one.

    >>> first = next_row(None, ScheduleRecord(name="nightly"), now=7)
    >>> first.revision, next_row(first, first.record, now=5).revision
    (7, 8)
    """
    if row is None:
        return ScheduleRow(record, max(now, 1), now)
    return ScheduleRow(record, max(now, row.revision + 1), row.created_at)


def slot_row(schedule: str, kept: SlotRow | None, slot: NewSlot, now: Instant) -> SlotRow | None:
    """Return the row of a slot that is taken; None if the one that is there stays.

    >>> missed = slot_row("nightly", None, NewSlot(at=5, tenant="acme", state="missed", missed=2), now=9)
    >>> missed.state, missed.ended_at
    ('missed', 9)
    >>> slot_row("nightly", missed, NewSlot(at=5, tenant="acme"), now=9) is None
    True
    >>> again = slot_row("nightly", missed, NewSlot(at=5, tenant="acme", cause="backfill"), now=9)
    >>> again.state, again.missed
    ('pending', 2)
    """
    if kept is not None and not (slot.cause == "backfill" and kept.state in _TAKEN_AGAIN):
        return None
    return SlotRow(
        schedule=schedule,
        at=slot.at,
        tenant=slot.tenant,
        cause=slot.cause,
        state=slot.state,
        taken_at=now,
        because=slot.because,
        job=slot.job,
        missed=slot.missed if kept is None else kept.missed,
        missed_since=slot.missed_since if kept is None else kept.missed_since,
        fan_out=FanOut() if slot.tenant is None else None,
        ended_at=None if slot.state == "pending" else now,
    )


def is_at(kept: SlotRow | None, cursor: str) -> bool:
    """Whether a slot is pending, and its fan-out, if it is one, has come as far as the caller saw it."""
    if kept is None or kept.state != "pending":
        return False
    return cursor == ("" if kept.fan_out is None else kept.fan_out.cursor)


def is_seen(scope: Scope, tenant: str | None) -> bool:
    """Whether a schedule or slot exists for a caller; one for many tenants is none of a tenant's.

    >>> is_seen(Scope("acme"), "acme"), is_seen(Scope("acme"), None), is_seen(Scope.all(), None)
    (True, False, True)
    """
    return scope.tenant is None or scope.tenant == tenant


def audited(record: ScheduleRecord | None) -> Mapping[str, Any]:
    """Return what the audit says of a schedule: what people say of it, not how far it has come."""
    if record is None:
        return {}
    override = record.override
    known = {
        "declared": None if record.declared is None else _spec(record.declared),
        "override": None if override is None else _spec(override.spec),
        "override_until": None if override is None else override.until,
        "paused": None if record.paused is None else msgspec.to_builtins(record.paused),
        "retired_at": record.retired_at,
    }
    return {name: value for name, value in known.items() if value is not None}


def _spec(spec: ScheduleSpec) -> dict[str, Any]:
    said = {
        name: value for name, value in msgspec.structs.asdict(spec).items() if name not in {"name", "job"}
    }
    job = {name: getattr(spec.job, name) for name in _TOLD_OF_JOBS}
    whole: dict[str, Any] = msgspec.to_builtins({**job, **said})
    return {name: value for name, value in whole.items() if value not in (None, "", (), {})}
