"""The schedules facet: schedules and their slots (S54, S57)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlane.model.instants import LAST_INSTANT, Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.schedule.kept import is_seen
from fairlane.model.schedule.records import ScheduleRow, SlotRow
from fairlane.store.audit_entries import schedule_entries
from fairlane.store.contract.request import MAX_ROWS_READ, Request, check_page, check_serves_all
from fairlane.store.contract.schedules import (
    SLOTS_KEPT,
    DueReply,
    DueRequest,
    EndSlotsRequest,
    SchedulesFindRequest,
    SchedulesListRequest,
    SchedulesReply,
    SchedulesWriteReply,
    SchedulesWriteRequest,
    SlotsRequest,
    check_due,
    check_ends,
    check_write,
)
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.statements import load
from fairlane.store.schedule_rows import (
    ChangedSchedule,
    changed_schedule,
    ended_slot,
    pack_schedule,
    read_schedule,
    read_slot,
)

_SlotKey = tuple[str, Instant]


class PostgresSchedules:
    """Schedules in one table, slots in another."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("schedules", server.schema)

    async def write(self, request: SchedulesWriteRequest) -> SchedulesWriteReply:
        check_write(request)
        async with self._server.transaction() as connection:
            names = [one.name for one in request.changes]
            locked = await connection.fetch(self._sql.lock, names)
            rows = {name: read_schedule(record) for name, record in locked}
            keys = [(one.name, slot.at) for one in request.changes for slot in one.slots]
            kept = await self._slots(connection, self._sql.read_slots, keys)
            now = await self._now(connection)  # others may have held the locks for a while
            changed: dict[str, ChangedSchedule] = {}
            for one in request.changes:
                of_this = {at: slot for (name, at), slot in kept.items() if name == one.name}
                found = changed_schedule(one, rows.get(one.name), of_this, now)
                if found is not None:
                    changed[one.name] = found
            for name in await self._overtaken(connection, changed):
                del changed[name]
            taken = tuple(slot for one in changed.values() for slot in one.slots)
            await self._write_slots(connection, taken)
            audit = [entry for one in changed.values() for entry in schedule_entries(request.operation, one)]
            await self._tell(connection, audit, [entry for one in changed.values() for entry in one.events])
        return SchedulesWriteReply(tuple(name in changed for name in names), taken)

    async def find(self, request: SchedulesFindRequest) -> SchedulesReply:
        now = await self._now(self._server)
        rows = dict(map(tuple, await self._server.fetch(self._sql.read, list(request.names))))
        found = (read_schedule(rows[name]) for name in request.names if name in rows)
        return SchedulesReply(tuple(row for row in found if is_seen(request.scope, row.record.tenant)), now)

    async def list(self, request: SchedulesListRequest) -> SchedulesReply:
        check_page(request.limit)
        now = await self._now(self._server)
        values = (request.after, request.limit, request.scope.tenant)
        rows = await self._server.fetch(self._sql.page, *values)
        return SchedulesReply(tuple(read_schedule(record) for (record,) in rows), now)

    async def due(self, request: DueRequest) -> DueReply:
        check_due(request)
        found = await self._server.fetch(self._sql.due, self._server.now(), request.limit, request.skip)
        now = next(at for kind, _, at in found if kind == "now")
        due = [(record, at) for kind, record, at in found if kind == "due"]
        later = [at for kind, _, at in found if kind == "next"] + [at for _, at in due[request.limit :]]
        rows = tuple(read_schedule(record) for record, _ in due[: request.limit])
        pending = tuple(read_slot(record) for kind, record, _ in found if kind == "pending")
        return DueReply(rows, pending, min(later, default=None), now)

    async def end_slots(self, request: EndSlotsRequest) -> tuple[bool, ...]:
        check_ends(request)
        async with self._server.transaction() as connection:
            keys = [(one.schedule, one.at) for one in request.ends]
            kept = await self._slots(connection, self._sql.lock_slots, keys)
            now = await self._now(connection)  # others may have held the locks for a while
            ended = [ended_slot(one, kept.get((one.schedule, one.at)), now) for one in request.ends]
            done = [one for one in ended if one is not None]
            await self._write_slots(connection, [slot for slot, _ in done])
            await self._tell(connection, (), [entry for _, events in done for entry in events])
        return tuple(one is not None for one in ended)

    async def slots(self, request: SlotsRequest) -> tuple[SlotRow, ...]:
        check_page(request.limit)
        before = LAST_INSTANT + 1 if request.before is None else request.before
        values = (request.schedule, before, request.limit, request.scope.tenant)
        return tuple(read_slot(record) for (record,) in await self._server.fetch(self._sql.slots, *values))

    async def clean(self, request: Request) -> int:
        check_serves_all(request)
        values = (self._server.now(), SLOTS_KEPT, MAX_ROWS_READ)
        return len(await self._server.fetch(self._sql.clean, *values))

    async def _now(self, connection: Server | Connection) -> Instant:
        ((now,),) = await connection.fetch(self._sql.now, self._server.now())
        return int(now)

    async def _slots(
        self, connection: Connection, statement: str, keys: Sequence[_SlotKey]
    ) -> Mapping[_SlotKey, SlotRow]:
        if not keys:
            return {}
        rows = await connection.fetch(statement, [name for name, _ in keys], [at for _, at in keys])
        return {(name, at): read_slot(record) for name, at, record in rows}

    async def _overtaken(
        self, connection: Connection, changed: Mapping[str, ChangedSchedule]
    ) -> Sequence[str]:
        """Write the schedules; return those that somebody else has made first."""
        removed = [name for name, one in changed.items() if one.after is None]
        if removed:
            await connection.fetch(self._sql.remove, removed)
        stored = sorted(
            (one.after for one in changed.values() if one.after is not None), key=lambda row: row.record.name
        )
        updated = [row for row in stored if changed[row.record.name].before is not None]
        if updated:
            await connection.fetch(self._sql.update, *_columns(updated))
        inserted = [row for row in stored if changed[row.record.name].before is None]
        made = await connection.fetch(self._sql.insert, *_columns(inserted)) if inserted else []
        return sorted({row.record.name for row in inserted} - {name for (name,) in made})

    async def _write_slots(self, connection: Connection, slots: Sequence[SlotRow]) -> None:
        if slots:
            await connection.fetch(
                self._sql.write_slots,
                [slot.schedule for slot in slots],
                [slot.at for slot in slots],
                [slot.tenant for slot in slots],
                [slot.ended_at for slot in slots],
                [pack_schedule(slot) for slot in slots],
            )

    async def _tell(
        self, connection: Connection, audit: Sequence[NewEntry], events: Sequence[NewEntry]
    ) -> None:
        schema, at = self._server.schema, self._server.now()
        await append_entries(connection, schema, at, "audit", audit)
        await append_entries(connection, schema, at, "events", events)


def _columns(rows: Iterable[ScheduleRow]) -> tuple[list[object], ...]:
    columns = [
        (row.record.name, row.record.tenant, row.record.next_at, row.revision, pack_schedule(row))
        for row in rows
    ]
    return tuple(map(list, zip(*columns, strict=True)))
