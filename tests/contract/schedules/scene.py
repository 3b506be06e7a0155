"""Schedules of tests, and short helpers for long requests. Hides no reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

from fairlane.model.instants import SECOND, Instant
from fairlane.model.job import NewJob
from fairlane.model.journal.operations import Operation
from fairlane.model.schedule.records import NewSlot, ScheduleRecord, ScheduleRow, SlotRow
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import Every
from fairlane.model.scope import Scope
from fairlane.store.contract.request import Request
from fairlane.store.contract.schedules import (
    DueReply,
    DueRequest,
    EndSlotsRequest,
    ScheduleChange,
    SchedulesFindRequest,
    SchedulesListRequest,
    SchedulesWriteRequest,
    SlotEnd,
    SlotsRequest,
)
from tests.contract.world import ALL, PAYLOAD, World

OPERATION: Final = Operation(action="schedules.edit", actor="ann", origin="cli", note="as agreed")


def spec(name: str = "nightly", *, tenant: str = "acme", **values: Any) -> ScheduleSpec:
    """Return a schedule of every second."""
    job = NewJob(id=UUID(int=0), tenant=tenant, queue="bulk", task="report", payload=PAYLOAD, checksum=7)
    given: dict[str, Any] = {"name": name, "job": job, "timing": Every(interval=SECOND)}
    return ScheduleSpec(**given | values)


def record(name: str = "nightly", *, tenant: str = "acme", **values: Any) -> ScheduleRecord:
    """Return what is kept of a schedule that code has declared."""
    given: dict[str, Any] = {"name": name, "declared": spec(name, tenant=tenant), "application": "shop"}
    return ScheduleRecord(**given | values)


def put(made: ScheduleRecord, *slots: NewSlot, revision: int = 0) -> ScheduleChange:
    """Return the change that makes or replaces a schedule."""
    return ScheduleChange(name=made.name, record=made, revision=revision, slots=slots)


def new(at: Instant, tenant: str | None = "acme", **values: Any) -> NewSlot:
    """Return a slot to take."""
    return NewSlot(at=at, tenant=tenant, **values)


async def write(
    world: World, *changes: ScheduleChange, operation: Operation | None = None
) -> tuple[bool, ...]:
    """Change schedules."""
    request = SchedulesWriteRequest(scope=ALL, changes=changes, operation=operation)
    return (await world.store.schedules.write(request)).is_made


async def keep(world: World, made: ScheduleRecord, *slots: NewSlot) -> ScheduleRow:
    """Make or replace a schedule, which must succeed, and return it."""
    found = await find(world, made.name)
    assert await write(world, put(made, *slots, revision=found[0].revision if found else 0)) == (True,)
    (row,) = await find(world, made.name)
    return row


async def find(world: World, *names: str, scope: Scope = ALL) -> list[ScheduleRow]:
    """Return the schedules that are there."""
    return list((await world.store.schedules.find(SchedulesFindRequest(scope=scope, names=names))).rows)


async def names(world: World, scope: Scope = ALL, **values: Any) -> list[str]:
    """Return the names of schedules."""
    reply = await world.store.schedules.list(SchedulesListRequest(scope=scope, **values))
    return [row.record.name for row in reply.rows]


async def due(world: World, limit: int = 100, skip: int = 0) -> DueReply:
    """Return what is due and pending."""
    return await world.store.schedules.due(DueRequest(scope=ALL, limit=limit, skip=skip))


async def end(world: World, *ends: SlotEnd) -> tuple[bool, ...]:
    """End slots."""
    return await world.store.schedules.end_slots(EndSlotsRequest(scope=ALL, ends=ends))


async def slots(world: World, schedule: str = "nightly", scope: Scope = ALL, **values: Any) -> list[SlotRow]:
    """Return slots of a schedule, newest first."""
    return list(await world.store.schedules.slots(SlotsRequest(scope=scope, schedule=schedule, **values)))


SERVING_ALL: Final[dict[str, Callable[[World, Scope], Awaitable[Any]]]] = {
    "schedules.write": lambda w, s: w.store.schedules.write(
        SchedulesWriteRequest(scope=s, changes=(put(record()),))
    ),
    "schedules.due": lambda w, s: w.store.schedules.due(DueRequest(scope=s)),
    "schedules.end_slots": lambda w, s: w.store.schedules.end_slots(EndSlotsRequest(scope=s, ends=())),
    "schedules.clean": lambda w, s: w.store.schedules.clean(Request(scope=s)),
}
"""Each verb that serves all tenants alike."""

SCHEDULES: Final = (*SERVING_ALL, "schedules.find", "schedules.list", "schedules.slots")
"""Each verb about schedules."""
