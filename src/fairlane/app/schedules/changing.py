"""Change one schedule by compare-and-set: read, decide, write, and again if somebody was faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from fairlane.app.client import Client
from fairlane.model.errors import StoreBusy
from fairlane.model.instants import Instant
from fairlane.model.journal.operations import Operation
from fairlane.model.schedule.errors import ScheduleNotFound
from fairlane.model.schedule.records import NewSlot, ScheduleRecord, ScheduleRow
from fairlane.model.scope import Scope
from fairlane.store.contract.schedules import (
    ScheduleChange,
    SchedulesFindRequest,
    SchedulesWriteRequest,
)

_TRIES: Final = 20


class Changed(NamedTuple):
    """What becomes of a schedule: its new record, None to remove it, and the slots that are taken."""

    record: ScheduleRecord | None
    slots: tuple[NewSlot, ...] = ()


Decide = Callable[[ScheduleRow | None, Instant], Awaitable[Changed | None]]
"""Returns what becomes of a schedule as it is at an instant; None: nothing changes."""


async def change_schedule(
    client: Client, name: str, decide: Decide, done: Operation | None
) -> tuple[Changed | None, Instant]:
    """Change a schedule as `decide` says, and return what became of it, and the store's now."""
    for _ in range(_TRIES):
        row, now = await find_row(client, name, Scope.all())
        changed = await decide(row, now)
        if changed is None:
            return None, now
        change = ScheduleChange(
            name=name,
            revision=0 if row is None else row.revision,
            record=changed.record,
            slots=changed.slots,
        )
        request = SchedulesWriteRequest(scope=Scope.all(), changes=(change,), operation=done)
        (is_done,) = (await client.store.schedules.write(request)).is_made
        if is_done:
            return changed, now
    message = f"schedule {name} was changed again and again by others"
    raise StoreBusy(message, retry_safe=True)


async def find_row(client: Client, name: str, scope: Scope) -> tuple[ScheduleRow | None, Instant]:
    """Return a schedule as a store keeps it, if this scope has it, and the store's now."""
    reply = await client.store.schedules.find(SchedulesFindRequest(scope=scope, names=(name,)))
    return (reply.rows[0] if reply.rows else None), reply.now


def present(row: ScheduleRow | None, name: str) -> ScheduleRow:
    """Return a schedule that must be there; `ScheduleNotFound` otherwise."""
    if row is None:
        raise ScheduleNotFound(name)
    return row
