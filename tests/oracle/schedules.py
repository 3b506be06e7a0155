"""The schedules facet of the oracle."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.schedule.kept import is_at, is_seen, next_row, slot_row
from fairlane.model.schedule.news import news_of_schedule, news_of_slot
from fairlane.model.schedule.records import ScheduleRow, SlotRow
from fairlane.store.contract.request import MAX_ROWS_READ, Request, check_page, check_serves_all
from fairlane.store.contract.schedules import (
    SLOTS_KEPT,
    DueReply,
    DueRequest,
    EndSlotsRequest,
    ScheduleChange,
    SchedulesFindRequest,
    SchedulesListRequest,
    SchedulesReply,
    SchedulesWriteReply,
    SchedulesWriteRequest,
    SlotEnd,
    SlotsRequest,
    check_due,
    check_ends,
    check_write,
)
from tests.oracle.audit import Audit
from tests.oracle.core import Core


class OracleSchedules:
    """Schedules and slots in plain dictionaries."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core
        self._rows: dict[str, ScheduleRow] = {}
        self._slots: dict[tuple[str, Instant], SlotRow] = {}

    async def write(self, request: SchedulesWriteRequest) -> SchedulesWriteReply:
        check_write(request)
        audit = Audit(self._core, request.operation)
        taken: list[SlotRow] = []
        made = tuple(self._change(one, audit, taken) for one in request.changes)
        return SchedulesWriteReply(made, tuple(taken))

    def _change(self, change: ScheduleChange, audit: Audit, taken: list[SlotRow]) -> bool:
        now, row = self._core.now(), self._rows.get(change.name)
        if change.revision != (row.revision if row else 0) or any(slot.at > now for slot in change.slots):
            return False
        before = row.record if row else None
        slots = []
        for slot in change.slots:
            new = slot_row(change.name, self._slots.get((change.name, slot.at)), slot, now)
            if new is not None:
                slots.append(new)
                self._slots[change.name, slot.at] = new
        taken += slots
        audit.schedule(before, change.record, slots)
        self._core.append("events", *news_of_schedule(before, change.record, slots))
        self._rows.pop(change.name, None)
        if change.record is not None:
            self._rows[change.name] = next_row(row, change.record, now)
        return True

    async def find(self, request: SchedulesFindRequest) -> SchedulesReply:
        found = [self._rows[name] for name in request.names if name in self._rows]
        rows = [row for row in found if is_seen(request.scope, row.record.tenant)]
        return SchedulesReply(tuple(rows), self._core.now())

    async def list(self, request: SchedulesListRequest) -> SchedulesReply:
        check_page(request.limit)
        found = [row for name, row in sorted(self._rows.items()) if name > request.after]
        rows = [row for row in found if is_seen(request.scope, row.record.tenant)]
        return SchedulesReply(tuple(rows[: request.limit]), self._core.now())

    async def due(self, request: DueRequest) -> DueReply:
        check_due(request)
        now = self._core.now()
        waiting = sorted(
            (row.record.next_at, name) for name, row in self._rows.items() if row.record.next_at is not None
        )
        due = [name for at, name in waiting if at <= now][request.skip :][: request.limit]
        others = [at for at, name in waiting if name not in due]
        pending = sorted(
            (slot.tenant is None, at, name)
            for (name, at), slot in self._slots.items()
            if slot.ended_at is None
        )
        return DueReply(
            tuple(self._rows[name] for name in due),
            tuple(self._slots[name, at] for _, at, name in pending[: request.limit]),
            others[0] if others else None,
            now,
        )

    async def end_slots(self, request: EndSlotsRequest) -> tuple[bool, ...]:
        check_ends(request)
        return tuple(self._end(one) for one in request.ends)

    def _end(self, end: SlotEnd) -> bool:
        kept = self._slots.get((end.schedule, end.at))
        if kept is None or not is_at(kept, end.cursor):
            return False
        row = msgspec.structs.replace(kept, state=end.state, because=end.because)
        if end.fan_out is not None:
            row = msgspec.structs.replace(row, fan_out=end.fan_out)
        if end.state != "pending":
            row = msgspec.structs.replace(row, ended_at=self._core.now())
        self._slots[end.schedule, end.at] = row
        self._core.append("events", *news_of_slot(row))
        return True

    async def slots(self, request: SlotsRequest) -> tuple[SlotRow, ...]:
        check_page(request.limit)
        found = [
            slot
            for (name, at), slot in sorted(self._slots.items(), reverse=True)
            if name == request.schedule and (request.before is None or at < request.before)
        ]
        return tuple(slot for slot in found if is_seen(request.scope, slot.tenant))[: request.limit]

    async def clean(self, request: Request) -> int:
        check_serves_all(request)
        until = self._core.now() - SLOTS_KEPT
        over = sorted(
            (slot.ended_at, key)
            for key, slot in self._slots.items()
            if slot.ended_at is not None and slot.ended_at <= until
        )
        for _, key in over[:MAX_ROWS_READ]:
            del self._slots[key]
        return len(over[:MAX_ROWS_READ])
