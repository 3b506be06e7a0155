"""Schedules: what is declared and overridden of them, and their slots (S54, S57)."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from fairlane.model.instants import DAY, Instant, Micros
from fairlane.model.schedule.records import FanOut, NewSlot, ScheduleRecord, ScheduleRow, SlotRow, SlotState
from fairlane.store.contract.request import MAX_PAGE_SIZE, OperatorRequest, Request, check_serves_all

MAX_SCHEDULE_CHANGES: Final = 100
"""How many schedules one request changes."""

MAX_SLOTS: Final = 1_000
"""How many slots one request takes or ends."""

MAX_SKIPPED: Final = 3_000
"""How many schedules that are due one request leaves out."""

SLOTS_KEPT: Final[Micros] = 30 * DAY
"""How long a slot is kept after it has ended."""


class ScheduleChange(msgspec.Struct, frozen=True, kw_only=True):
    """Replace a schedule that has this revision; 0: there must be none. Without a `record` it is removed.

    Its slots in `slots` are taken in the same step. Slots of a schedule that is removed stay.
    """

    name: str
    revision: int = 0
    record: ScheduleRecord | None = None
    slots: tuple[NewSlot, ...] = ()


class SchedulesWriteRequest(OperatorRequest, frozen=True, kw_only=True):
    """Change schedules, at most `MAX_SCHEDULE_CHANGES` and each once, with at most `MAX_SLOTS` slots."""

    changes: tuple[ScheduleChange, ...]


class SchedulesWriteReply(msgspec.Struct, frozen=True):
    """For each change whether it was made, and the slots that were taken, in the order of the request.

    A slot that was there before is not among them: whoever took it makes its job.
    """

    is_made: tuple[bool, ...]
    taken: tuple[SlotRow, ...] = ()


class SchedulesFindRequest(Request, frozen=True, kw_only=True):
    """Ask for schedules by name."""

    names: tuple[str, ...]


class SchedulesListRequest(Request, frozen=True, kw_only=True):
    """Ask for schedules, by name, after a name; "": from the first."""

    after: str = ""
    limit: int = MAX_PAGE_SIZE


class SchedulesReply(msgspec.Struct, frozen=True):
    """Schedules that are there, and the store's now."""

    rows: tuple[ScheduleRow, ...]
    now: Instant


class DueRequest(Request, frozen=True, kw_only=True):
    """Ask for at most so many schedules that are due, and for as many pending slots.

    As many as `skip` of the schedules that are due are left out, the first ones: others take them.
    """

    limit: int = MAX_SCHEDULE_CHANGES
    skip: int = 0


class DueReply(msgspec.Struct, frozen=True):
    """Schedules that must be looked at, slots that are taken and not ended, and the store's now.

    Both are the first ones by time, then by name; slots for many tenants come after those for one, since they
    take longer. `next_at` is when the first schedule is due that is not among them, also if it was skipped;
    None if there is none.
    """

    rows: tuple[ScheduleRow, ...]
    pending: tuple[SlotRow, ...]
    next_at: Instant | None
    now: Instant


class SlotEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End a pending slot; or, with the state `pending`, say how far its fan-out has come.

    `cursor` is that of the fan-out as the caller saw it.
    """

    schedule: str
    at: Instant
    state: SlotState
    because: str = ""
    cursor: str = ""
    fan_out: FanOut | None = None


class EndSlotsRequest(Request, frozen=True, kw_only=True):
    """End slots, at most `MAX_SLOTS` and each once."""

    ends: tuple[SlotEnd, ...]


class SlotsRequest(Request, frozen=True, kw_only=True):
    """Ask for the slots of a schedule, newest first: those before an instant, or from the last one on."""

    schedule: str
    before: Instant | None = None
    limit: int = 100


def check_write(request: SchedulesWriteRequest) -> None:
    """Raise ValueError under the scope of one tenant, for too much at once, and for what makes no sense."""
    check_serves_all(request)
    if len(request.changes) > MAX_SCHEDULE_CHANGES:
        message = f"one request changes at most {MAX_SCHEDULE_CHANGES} schedules, not {len(request.changes)}"
        raise ValueError(message)
    if len({one.name for one in request.changes}) < len(request.changes):
        raise ValueError("one request changes a schedule once")
    for one in request.changes:
        if one.record is not None and one.record.name != one.name:
            message = f"the record of {one.record.name} cannot be kept as {one.name}"
            raise ValueError(message)
        if one.record is None and not one.revision:
            raise ValueError("a schedule that is not there cannot be removed")
        if len({slot.at for slot in one.slots}) < len(one.slots):
            raise ValueError("a change takes a slot once")
    _check_slots(sum(len(one.slots) for one in request.changes))


def check_ends(request: EndSlotsRequest) -> None:
    """Raise ValueError under the scope of one tenant, and for too many slots or one that is named twice."""
    check_serves_all(request)
    _check_slots(len(request.ends))
    if len({(one.schedule, one.at) for one in request.ends}) < len(request.ends):
        raise ValueError("one request ends a slot once")


def check_due(request: DueRequest) -> None:
    """Raise ValueError under the scope of one tenant, and for more than one request answers."""
    check_serves_all(request)
    if request.limit > MAX_SCHEDULE_CHANGES:
        message = f"one request answers with at most {MAX_SCHEDULE_CHANGES} schedules, not {request.limit}"
        raise ValueError(message)
    if not 0 <= request.skip <= MAX_SKIPPED:
        raise ValueError(f"one request leaves out 0 to {MAX_SKIPPED} schedules, not {request.skip}")


def _check_slots(count: int) -> None:
    if count > MAX_SLOTS:
        message = f"one request has at most {MAX_SLOTS} slots, not {count}"
        raise ValueError(message)


class SchedulesFacet(Protocol):
    """Keeps schedules and their slots, decides nothing. The unique slot decides, not who leads (S57).

    `write`, `due`, `end_slots` and `clean` serve all tenants: ValueError under the scope of one. Under the
    scope of a tenant the others know its own schedules and slots only; one for many tenants is nobody's.
    """

    async def write(self, request: SchedulesWriteRequest) -> SchedulesWriteReply:
        """Change schedules and take their slots; return what was made and taken.

        Each change stands alone and is one step, with its slots, its entry in the audit, and its events
        (S76): a schedule that begins to fail, one that Fairlane has paused, slots that were missed. It is not
        made if the schedule has another revision, or if a slot lies after the store's now: nobody is early.

        A slot that is there already stays as it is, pending or ended, so that it is never taken twice; but a
        backfill takes one again that was missed or skipped, or that has failed.
        """

    async def find(self, request: SchedulesFindRequest) -> SchedulesReply:
        """Return the schedules that are there, in the order of the names; others are left out."""

    async def list(self, request: SchedulesListRequest) -> SchedulesReply:
        """Return the next schedules. Fewer than `limit` are the last. More than a page: ValueError.

        Not atomic: what changes meanwhile may be missing or old.
        """

    async def due(self, request: DueRequest) -> DueReply:
        """Return schedules whose `next_at` has come, and pending slots. Changes nothing.

        More than `MAX_SCHEDULE_CHANGES`: ValueError. Not atomic: each row is as it was at some moment.
        """

    async def end_slots(self, request: EndSlotsRequest) -> tuple[bool, ...]:
        """End slots, or note how far fan-outs have come; return for each whether it was done.

        Each stands alone: it is not done unless the slot is pending and its fan-out has that cursor. A slot
        that fails makes an event in the same step.
        """

    async def slots(self, request: SlotsRequest) -> tuple[SlotRow, ...]:
        """Return slots of a schedule, newest first. Fewer than `limit` are the last.

        More than a page: ValueError. Those of a schedule that was removed are kept as long as others.
        """

    async def clean(self, request: Request) -> int:
        """Delete slots that ended `SLOTS_KEPT` ago or earlier, at most `MAX_ROWS_READ`; return how many."""
