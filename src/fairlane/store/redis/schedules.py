"""The schedules facet: schedules and their slots (S54, S57).

A change is computed here and written if what was read is still stored; else it is read and computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.entries import encode_entries
from fairlane.store.schedule_rows import (
    changed_schedule,
    ended_slot,
    pack_schedule,
    read_schedule,
    read_slot,
)

_AT_ONCE: Final = 500
"""How many one script reads or deletes."""

_Stored = Mapping[str, bytes]


class RedisSchedules:
    """Schedules in one hash and slots in another, each with sorted sets by name and by time."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def write(self, request: SchedulesWriteRequest) -> SchedulesWriteReply:
        check_write(request)
        made: dict[str, bool] = {}
        taken: dict[str, tuple[SlotRow, ...]] = {}
        left: Sequence[ScheduleChange] = request.changes
        while left:
            fields = [_field(one.name, slot.at) for one in left for slot in one.slots]
            now, rows, slots = await self._read([one.name for one in left], fields)
            tried: dict[str, list[Any]] = {}
            for one in left:
                found = _change(one, request, rows[one.name], slots, now)
                made[one.name] = False
                if found is not None:
                    taken[one.name], tried[one.name] = found
            flat = [value for arguments in tried.values() for value in arguments]
            replies = await self._client.run("schedules/write", *flat, at=now) if tried else ()
            made |= {name: bool(reply) for name, reply in zip(tried, replies, strict=True)}
            left = [one for one in left if one.name in tried and not made[one.name]]
        names = [one.name for one in request.changes]
        slots_of_made = (slot for name in names if made[name] for slot in taken[name])
        return SchedulesWriteReply(tuple(made[name] for name in names), tuple(slots_of_made))

    async def find(self, request: SchedulesFindRequest) -> SchedulesReply:
        now, stored, _ = await self._read(request.names, ())
        return SchedulesReply(_seen(request, stored, request.names), now)

    async def list(self, request: SchedulesListRequest) -> SchedulesReply:
        check_page(request.limit)
        found: list[ScheduleRow] = []
        after, key = request.after, self._client.keys("schedules_named")
        count = _page_size(request)
        while True:
            page = (key, f"({after}" if after else "-", "+", "BYLEX", "LIMIT", 0, count)
            names = [name.decode() for name in await self._client.ask("ZRANGE", *page)]
            now, stored, _ = await self._read(names, ())
            found += _seen(request, stored, names)
            if len(names) < count or len(found) >= request.limit:
                return SchedulesReply(tuple(found[: request.limit]), now)
            after = names[-1]

    async def due(self, request: DueRequest) -> DueReply:
        check_due(request)
        now, following, rows, pending = await self._client.run("schedules/due", request.limit, request.skip)
        return DueReply(
            tuple(read_schedule(row) for row in rows if row),
            tuple(read_slot(slot) for slot in pending if slot),
            int(float(following)) if following else None,
            now,
        )

    async def end_slots(self, request: EndSlotsRequest) -> tuple[bool, ...]:
        check_ends(request)
        done: dict[str, bool] = {}
        left: Mapping[str, SlotEnd] = {_field(one.schedule, one.at): one for one in request.ends}
        while left:
            now, _, slots = await self._read((), list(left))
            tried: dict[str, list[Any]] = {}
            for field, one in left.items():
                stored = slots[field]
                ended = ended_slot(one, read_slot(stored) if stored else None, now)
                done[field] = False
                if ended is not None:
                    slot, events = ended
                    tried[field] = [*_slot(field, stored, slot), encode_entries("events", events)]
            flat = [value for arguments in tried.values() for value in arguments]
            replies = await self._client.run("schedules/end_slots", *flat, at=now) if tried else ()
            done |= {field: bool(reply) for field, reply in zip(tried, replies, strict=True)}
            left = {field: one for field, one in left.items() if field in tried and not done[field]}
        return tuple(done[_field(one.schedule, one.at)] for one in request.ends)

    async def slots(self, request: SlotsRequest) -> tuple[SlotRow, ...]:
        check_page(request.limit)
        found: list[SlotRow] = []
        key, first = self._client.keys("schedule_slots_named"), f"[{request.schedule}\0"
        last, count = f"({request.schedule}\1", _page_size(request)
        if request.before is not None:
            last = f"({_field(request.schedule, request.before)}"
        while True:
            page = (key, last, first, "BYLEX", "REV", "LIMIT", 0, count)
            fields = [field.decode() for field in await self._client.ask("ZRANGE", *page)]
            _, _, stored = await self._read((), fields)
            rows = (read_slot(stored[field]) for field in fields if stored[field])
            found += (slot for slot in rows if is_seen(request.scope, slot.tenant))
            if len(fields) < count or len(found) >= request.limit:
                return tuple(found[: request.limit])
            last = f"({fields[-1]}"

    async def clean(self, request: Request) -> int:
        check_serves_all(request)
        cleaned, count = 0, _AT_ONCE
        while count == _AT_ONCE and cleaned < MAX_ROWS_READ:
            count = await self._client.run("schedules/clean", SLOTS_KEPT, _AT_ONCE)
            cleaned += count
        return cleaned

    async def _read(
        self, names: Sequence[str], fields: Sequence[str]
    ) -> tuple[Instant, dict[str, bytes], dict[str, bytes]]:
        """Return the instant, and what is stored of these schedules and slots."""
        now, *stored = await self._client.run("schedules/read", len(names), *names, *fields)
        return (
            now,
            dict(zip(names, stored[: len(names)], strict=True)),
            dict(zip(fields, stored[len(names) :], strict=True)),
        )


def _page_size(request: SchedulesListRequest | SlotsRequest) -> int:
    """Return how many to read at once: no more than are asked for, unless some may be another tenant's."""
    return _AT_ONCE if request.scope.tenant is not None else min(request.limit, _AT_ONCE)


def _field(schedule: str, at: Instant) -> str:
    return f"{schedule}\0{at:016d}"


def _change(
    change: ScheduleChange, request: SchedulesWriteRequest, before: bytes, slots: _Stored, now: Instant
) -> tuple[tuple[SlotRow, ...], list[Any]] | None:
    """Return the slots that are taken, and the arguments of the script; None if the change is not made."""
    fields = {slot.at: _field(change.name, slot.at) for slot in change.slots}
    kept = {at: read_slot(slots[field]) for at, field in fields.items() if slots[field]}
    changed = changed_schedule(change, read_schedule(before) if before else None, kept, now)
    if changed is None:
        return None
    after = changed.after
    audit = encode_entries("audit", schedule_entries(request.operation, changed))
    entries = audit + encode_entries("events", changed.events)
    packed = b"" if after is None else pack_schedule(after)
    next_at = "" if after is None or after.record.next_at is None else after.record.next_at
    arguments: list[Any] = [change.name, before, packed, next_at, entries, len(changed.slots)]
    for slot in changed.slots:
        arguments += _slot(fields[slot.at], slots[fields[slot.at]], slot)
    return changed.slots, arguments


def _slot(field: str, before: bytes, slot: SlotRow) -> list[Any]:
    ended_at = "" if slot.ended_at is None else slot.ended_at
    place = slot.at if slot.tenant is None else slot.at - LAST_INSTANT  # those for one tenant come first
    return [field, before, pack_schedule(slot), place, ended_at]


def _seen(request: Request, stored: _Stored, names: Iterable[str]) -> tuple[ScheduleRow, ...]:
    rows = (read_schedule(stored[name]) for name in names if stored[name])
    return tuple(row for row in rows if is_seen(request.scope, row.record.tenant))
