"""The schedules facet: schedules and their slots (S54, S57)."""

from __future__ import annotations

from fairlane.model.instants import LAST_INSTANT, Instant
from fairlane.model.schedule.kept import is_seen
from fairlane.model.schedule.records import ScheduleRow, SlotRow
from fairlane.store.audit_entries import schedule_entries
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
from fairlane.store.schedule_rows import (
    ChangedSchedule,
    changed_schedule,
    ended_slot,
    pack_schedule,
    read_schedule,
    read_slot,
)
from fairlane.store.sqlite.query import Values, all_rows, one_row, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("schedules")


class SqliteSchedules:
    """Schedules in one table, slots in another."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def write(self, request: SchedulesWriteRequest) -> SchedulesWriteReply:
        check_write(request)

        def change(tx: Transaction) -> SchedulesWriteReply:
            made: list[bool] = []
            taken: list[SlotRow] = []
            for one in request.changes:
                changed = _changed(tx, one)
                made.append(changed is not None)
                if changed is not None:
                    tx.append("audit", schedule_entries(request.operation, changed))
                    _store(tx, one.name, changed)
                    taken += changed.slots
            return SchedulesWriteReply(tuple(made), tuple(taken))

        return await self._writer.run(change)

    async def find(self, request: SchedulesFindRequest) -> SchedulesReply:
        def read(tx: Transaction) -> SchedulesReply:
            found = (_read(tx, name) for name in request.names)
            rows = (row for row in found if row is not None and is_seen(request.scope, row.record.tenant))
            return SchedulesReply(tuple(rows), tx.now)

        return await self._reader.run(read)

    async def list(self, request: SchedulesListRequest) -> SchedulesReply:
        check_page(request.limit)
        tenant = request.scope.tenant

        def read(tx: Transaction) -> SchedulesReply:
            values = (request.after, request.limit, *(() if tenant is None else (tenant,)))
            statement = _SQL.page if tenant is None else _SQL.page_of_tenant
            return SchedulesReply(_schedules(tx, statement, values), tx.now)

        return await self._reader.run(read)

    async def due(self, request: DueRequest) -> DueReply:
        check_due(request)

        def read(tx: Transaction) -> DueReply:
            rows = _schedules(tx, _SQL.due, (tx.now, request.limit, request.skip))
            pending = _slots(tx, _SQL.pending, (request.limit,))
            earlier = 0 if request.skip else len(rows)
            return DueReply(rows, pending, one_value(tx.db, _SQL.next, (earlier,)), tx.now)

        return await self._reader.run(read)

    async def end_slots(self, request: EndSlotsRequest) -> tuple[bool, ...]:
        check_ends(request)
        return await self._writer.run(lambda tx: tuple(_end(tx, one) for one in request.ends))

    async def slots(self, request: SlotsRequest) -> tuple[SlotRow, ...]:
        check_page(request.limit)
        tenant = request.scope.tenant
        before = LAST_INSTANT + 1 if request.before is None else request.before

        def read(tx: Transaction) -> tuple[SlotRow, ...]:
            values = (request.schedule, before, request.limit, *(() if tenant is None else (tenant,)))
            statement = _SQL.slots if tenant is None else _SQL.slots_of_tenant
            return _slots(tx, statement, values)

        return await self._reader.run(read)

    async def clean(self, request: Request) -> int:
        check_serves_all(request)

        def remove(tx: Transaction) -> int:
            return len(all_rows(tx.db, _SQL.clean, (tx.now - SLOTS_KEPT, MAX_ROWS_READ)))

        return await self._writer.run(remove)


def _changed(tx: Transaction, change: ScheduleChange) -> ChangedSchedule | None:
    found = (_read_slot(tx, change.name, slot.at) for slot in change.slots)
    kept = {slot.at: slot for slot in found if slot is not None}
    return changed_schedule(change, _read(tx, change.name), kept, tx.now)


def _store(tx: Transaction, name: str, changed: ChangedSchedule) -> None:
    row = changed.after
    if row is None:
        tx.db.execute(_SQL.remove, (name,))
    else:
        values = (row.record.tenant, row.record.next_at, row.revision, pack_schedule(row))
        tx.db.execute(_SQL.write, (name, *values))
    for slot in changed.slots:
        _store_slot(tx, slot)
    tx.append("events", changed.events)


def _end(tx: Transaction, end: SlotEnd) -> bool:
    ended = ended_slot(end, _read_slot(tx, end.schedule, end.at), tx.now)
    if ended is None:
        return False
    slot, events = ended
    _store_slot(tx, slot)
    tx.append("events", events)
    return True


def _store_slot(tx: Transaction, slot: SlotRow) -> None:
    values = (slot.schedule, slot.at, slot.tenant, slot.ended_at, pack_schedule(slot))
    tx.db.execute(_SQL.write_slot, values)


def _schedules(tx: Transaction, statement: str, values: Values) -> tuple[ScheduleRow, ...]:
    return tuple(read_schedule(record) for (record,) in all_rows(tx.db, statement, values))


def _slots(tx: Transaction, statement: str, values: Values) -> tuple[SlotRow, ...]:
    return tuple(read_slot(record) for (record,) in all_rows(tx.db, statement, values))


def _read(tx: Transaction, name: str) -> ScheduleRow | None:
    row = one_row(tx.db, _SQL.read, (name,))
    return None if row is None else read_schedule(row[0])


def _read_slot(tx: Transaction, schedule: str, at: Instant) -> SlotRow | None:
    row = one_row(tx.db, _SQL.slot, (schedule, at))
    return None if row is None else read_slot(row[0])
