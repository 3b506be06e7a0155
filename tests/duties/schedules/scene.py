"""Schedules that a duty fires, on every store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from fairlane.duties.schedules.fire import Fire
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.records import ScheduleRecord, ScheduleRow, SlotRow
from fairlane.model.schedule.restart import restarted
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import Every
from fairlane.store.contract import Store
from fairlane.store.contract.registry import RegisterRequest, TaskRecord, WorkerRecord
from tests.contract.schedules.scene import find, put, slots, write
from tests.contract.world import ALL, PAYLOAD, World

MINUTE: Final = 60 * SECOND


class MachineTime:
    """The clock of the machine of a duty: it runs with the store's, but says another time."""

    def __init__(self, world: World, ahead: Micros = 0) -> None:
        """Be so far ahead of the store."""
        self._world = world
        self._ahead = ahead

    def wall(self) -> Instant:
        """Say what time it is."""
        return self._world.now + self._ahead

    def elapsed(self) -> Micros:
        """Count on."""
        return self._world.now + self._ahead

    async def wait(self, duration: Micros) -> None:
        """Never wait."""


def fire_of(world: World, ahead: Micros = 0, *, must_be_declared: bool = False) -> Fire:
    """Return the duty of one machine."""
    return Fire(MachineTime(world, ahead), must_be_declared=must_be_declared)


async def publish(world: World, *tasks: str) -> None:
    """Let a worker tell that it has these tasks."""
    records = tuple(TaskRecord(name=name, queue="bulk") for name in tasks or ("report",))
    card = WorkerRecord(id="w1", host="here", pid=1, version="1", queues=("bulk",), slots=1, tasks=records)
    await world.store.registry.register(RegisterRequest(scope=ALL, record=card, renew_every=4 * SECOND))


def spec(name: str = "nightly", *, task: str = "report", tenant: str = "acme", **values: Any) -> ScheduleSpec:
    """Return a schedule of every minute."""
    job = NewJob(id=UUID(int=0), tenant=tenant, queue="bulk", task=task, payload=PAYLOAD, checksum=7)
    given: dict[str, Any] = {"name": name, "job": job, "timing": Every(interval=MINUTE)}
    return ScheduleSpec(**given | values)


async def declare(world: World, *specs: ScheduleSpec) -> None:
    """Make schedules that go on from now."""
    records = [restarted(ScheduleRecord(name=one.name, declared=one), world.now) for one in specs]
    for first in range(0, len(records), 100):
        assert all(await write(world, *map(put, records[first : first + 100])))


async def change(world: World, name: str, decide: Callable[[ScheduleRecord], ScheduleRecord]) -> None:
    """Change a schedule as somebody would who looks at it first."""
    row = await row_of(world, name)
    assert await write(world, put(decide(row.record), revision=row.revision)) == (True,)


async def row_of(world: World, name: str = "nightly") -> ScheduleRow:
    """Return a schedule that is there."""
    (row,) = await find(world, name)
    return row


async def until_rest(fire: Fire, store: Store, most: int = 60) -> Micros:
    """Take passes until there is nothing more to do; return the pause."""
    for _ in range(most):
        pause = await fire(store)
        if pause:
            return pause
    raise AssertionError("the duty never rests")


async def jobs_of(world: World) -> list[JobRecord]:
    """Return all jobs, oldest slot first."""
    return sorted(await world.find_all(), key=lambda job: job.id)


async def states(world: World, name: str = "nightly") -> list[tuple[Instant, str]]:
    """Return the slots of a schedule, oldest first, and what became of each."""
    found: list[SlotRow] = await slots(world, name)
    return [(slot.at, slot.state) for slot in found[::-1]]


def to_minute(world: World) -> None:
    """Let the store's clock strike the next minute."""
    world.advance((MINUTE - world.now % MINUTE) / SECOND)


def paused(record: ScheduleRecord, until: Instant | None = None) -> ScheduleRecord:
    """Return a schedule that an operator has paused."""
    hold = Hold(who="ann", reason="so", set_at=0, until=until)
    return replace(record, paused=hold, next_at=until)
