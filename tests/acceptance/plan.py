"""Schedules on a store whose clock tests drive: declare them, and let schedulers fire."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from fairlane import Fairlane, Job, SlotView
from fairlane.app.task.record import task_record_of
from fairlane.duties.schedules.fire import Fire
from fairlane.model.instants import SECOND, Instant, Micros, to_datetime, to_instant
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from tests.acceptance.world import ALL, World


class MachineClock:
    """The clock of a scheduler's machine, which may be wrong: only the store's counts."""

    def __init__(self, world: World, wrong_by: Micros = 0) -> None:
        """Be so far ahead of the store."""
        self._world = world
        self._wrong_by = wrong_by

    def wall(self) -> Instant:
        """Say what time it is here."""
        return self._world.now + self._wrong_by

    def elapsed(self) -> Micros:
        """Count on."""
        return self._world.now

    async def wait(self, duration: Micros) -> None:
        """Never wait."""


class Plan:
    """An application with schedules, and a scheduler that fires them when `go` lets time pass."""

    def __init__(self, world: World, at: str, **settings: Any) -> None:
        """Begin at an instant, given as a text with its offset."""
        self.world = world
        self.app: Fairlane = world.app(**settings)
        self.fire = self.scheduler()
        self.to(at)

    def scheduler(self, wrong_by: float = 0) -> Fire:
        """Return another scheduler, on a machine whose clock is so many seconds ahead."""
        return Fire(MachineClock(self.world, round(wrong_by * SECOND)), must_be_declared=False)

    def to(self, at: str) -> None:
        """Move the store's clock to an instant, without firing."""
        distance = to_instant(datetime.fromisoformat(at)) - self.world.now
        self.world.clock.advance(distance / SECOND)

    async def start(self) -> None:
        """Start a worker's part: publish the tasks, and declare the schedules."""
        tasks = tuple(task_record_of(one, self.app.settings) for one in self.app.client.registry)
        record = WorkerRecord(
            id="w1", host="h", pid=1, version="1", queues=("default",), slots=1, tasks=tasks
        )
        request = RegisterRequest(scope=ALL, record=record, renew_every=4 * SECOND)
        await self.world.store.registry.register(request)
        await self.world.declare()

    async def passes(self, fire: Fire | None = None) -> int:
        """Let a scheduler make passes until it rests; return how long it would rest."""
        while not (rest := await (fire or self.fire)(self.world.store)):
            pass
        return rest

    async def go(self, minutes: float, step: float = 60) -> None:
        """Let so many minutes pass in steps of so many seconds, and fire after each."""
        for _ in range(round(minutes * 60 / step)):
            self.world.clock.advance(step)
            await self.passes()

    async def jobs(self, **filters: Any) -> list[Job[Any]]:
        """Return the jobs that schedules have made, in the order of their slots."""
        page = await self.app.jobs.afind(limit=1_000, **filters)
        return sorted(page.items, key=lambda job: job.slot or job.enqueued_at)

    async def slots(self, name: str) -> list[tuple[str, str]]:
        """Return the time of day of each recorded slot with what became of it, oldest first."""
        page = await self.app.schedules.ahistory(name, limit=1_000)
        return [(f"{one.at:%H:%M}", one.state) for one in reversed(page.items)]

    async def history(self, name: str) -> list[SlotView]:
        """Return the slots of a schedule, oldest first."""
        return list(reversed((await self.app.schedules.ahistory(name, limit=1_000)).items))


def times(jobs: list[Job[Any]]) -> list[str]:
    """Return the time of day of the slot of each job."""
    return [f"{job.slot:%H:%M}" for job in jobs if job.slot is not None]


def utc(instant: Instant | None) -> str:
    """Return an instant to the minute."""
    return "never" if instant is None else f"{to_datetime(instant):%Y-%m-%d %H:%M}"


DAY: Final = timedelta(days=1)
