"""Slots of schedules in virtual time: schedulers are killed between any two calls, and no slot is lost.

Several schedulers, an hour fast or slow, look at one store at the same time; its clock goes on, at times for
hours in which nobody looks, over nights in which clocks are set. Operators pause schedules and resume them.
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from fairlane.duties.schedules.fire import Fire
from fairlane.model.instants import HOUR, MINUTE, SECOND, to_instant
from fairlane.model.policy.overrides import Subject, SubjectKind, TenantRules
from fairlane.model.schedule.records import ScheduleRecord
from fairlane.model.schedule.restart import restarted
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import Cron, Every, Timing
from tests.campaigns.errand import Errand
from tests.campaigns.slot_judge import Judge
from tests.contract.world import World
from tests.duties.schedules.mortal import Killed, Mortal
from tests.duties.schedules.scene import change, declare, fire_of, paused, publish, row_of, spec, until_rest
from tests.oracle.clock import DrivenClock
from tests.simulation.seeds import quiet
from tests.stores import STORES

SLOTS: Final = 1_000
"""How many slots one store sees: the judge reads all of their jobs."""

SCHEDULES: Final = 40
SCHEDULERS: Final = 3
TENANTS: Final = ("acme", "globex", "initech")
MOST_PASSES: Final = 1_000

NIGHTS: Final = (
    ("America/New_York", datetime(2027, 3, 14, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2027, 11, 7, 6, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2027, 3, 28, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2027, 10, 31, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2027, 4, 3, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2027, 10, 2, 15, 30, tzinfo=UTC)),
)
"""Zones, and when their clocks are set back or forward."""

CRONS: Final = (
    "*/5 * * * *",
    "*/7 0-5 * * *",
    "30 * * * *",
    "15,45 0-3 * * *",
    "*/10 1,2,3 * * *",
    "0 */2 * * *",
)


async def fire_slots(errand: Errand) -> None:
    """Live through nights until there were enough slots."""
    while errand.goes_on:
        seed = errand.draw.getrandbits(32)
        with quiet():
            judge = await live(errand.store, seed, SLOTS)
        for wrong in judge.wrong[:5]:
            errand.fail(f"night {seed}: {wrong}")
        for _ in range(judge.figures.pop("slots")):
            errand.done()
        errand.figures.update(judge.figures, nights=1)


async def live(store: str, seed: int, wanted: int) -> Judge:
    """Live through one night on an empty store; return what was found."""
    draw = random.Random(seed)
    zone, change_at = draw.choice(NIGHTS)
    start = to_instant(change_at - timedelta(minutes=draw.randrange(30, 180)))
    clock = DrivenClock(start)
    async with STORES[store](clock) as opened:
        night = Night(World(opened, clock), draw, zone)
        await night.begin()
        while night.judge.figures["slots"] < wanted:
            await night.step()
        await night.end()
    return night.judge


class Night:
    """A store with schedules, and those who look at it."""

    def __init__(self, world: World, draw: random.Random, zone: str) -> None:
        """Draw the schedules and the schedulers."""
        self._world = world
        self._draw = draw
        self._specs = [_schedule(f"s{number:02}", draw, zone) for number in range(SCHEDULES)]
        self._schedulers = [self._scheduler() for _ in range(SCHEDULERS)]
        self._paused: set[str] = set()
        self.judge = Judge(world, TENANTS)

    def _scheduler(self) -> Fire:
        return fire_of(self._world, self._draw.choice((-HOUR, 0, HOUR)))

    async def begin(self) -> None:
        """Let the schedules go on from now."""
        await publish(self._world)
        await self._world.put({Subject(SubjectKind.TENANT, tenant): TenantRules() for tenant in TENANTS})
        await declare(self._world, *self._specs)
        self.judge.begins(self._specs)

    async def step(self) -> None:
        """Let time pass, an operator do something, some schedulers look at once."""
        self._world.advance(self._pause() / SECOND)
        await publish(self._world)  # a worker is there all the time
        if self._draw.random() < 0.1:
            await self._operate()
        looking = self._draw.sample(range(SCHEDULERS), self._draw.randint(1, SCHEDULERS))
        are_done = await asyncio.gather(*map(self._look, looking))
        if any(are_done):
            self.judge.rested()
            self.judge.figures["slots"] = await self.judge.count()

    def _pause(self) -> int:
        chance = self._draw.random()
        if chance < 0.03:
            return self._draw.randrange(HOUR, 30 * HOUR)
        return self._draw.randrange(10 * MINUTE) if chance < 0.2 else self._draw.randrange(MINUTE)

    async def _look(self, number: int) -> bool:
        """Let one scheduler look until it rests; whether it has lived so long."""
        dies_at = self._draw.randrange(10) if self._draw.random() < 0.5 else MOST_PASSES * 100
        store: Any = _Slow(self._world.store, dies_at, self._draw)
        try:
            await until_rest(self._schedulers[number], store, MOST_PASSES)
        except Killed:
            self.judge.figures["kills"] += 1
            self._schedulers[number] = self._scheduler()
            return False
        return True

    async def _operate(self) -> None:
        name = self._draw.choice(self._specs).name
        record = (await row_of(self._world, name)).record
        if name in self._paused:
            self._paused.remove(name)
            await change(self._world, name, self._resumed)
            self.judge.resumed(name)
        elif len(self._paused) < SCHEDULES // 4:
            self._paused.add(name)
            await change(self._world, name, paused)
            self.judge.paused(name, record.settled_to)

    def _resumed(self, record: ScheduleRecord) -> ScheduleRecord:
        return restarted(replace(record, paused=None), self._world.now)

    async def end(self) -> None:
        """Let one scheduler look that nobody kills, and judge."""
        await until_rest(self._scheduler(), self._world.store, MOST_PASSES)
        self.judge.rested()
        await self.judge.judge()


class _Slow(Mortal):
    """A store at which the calls of several users are mixed."""

    def __init__(self, store: Any, at: int, draw: random.Random) -> None:
        super().__init__(store, at, is_sent=draw.random() < 0.5)
        self._draw = draw

    async def call(self, verb: Any, request: Any) -> Any:
        """Let others go first, at times."""
        for _ in range(self._draw.randrange(3)):
            await asyncio.sleep(0)
        return await super().call(verb, request)


def _schedule(name: str, draw: random.Random, zone: str) -> ScheduleSpec:
    timing: Timing
    if draw.random() < 0.3:
        timing = Every(interval=draw.randrange(2, 20) * MINUTE, anchor=draw.randrange(1_000) * SECOND)
    else:
        timing = Cron(
            draw.choice(CRONS),
            timezone=zone,
            missing=draw.choice((None, "first_valid", "shift", "skip")),
            repeated=draw.choice((None, "first", "second", "both")),
        )
    is_for_many = draw.random() < 0.1
    return spec(
        name,
        tenant=draw.choice(TENANTS),
        timing=timing,
        catch_up=draw.choice(("skip", "latest", 10)),
        for_tenants={} if is_for_many else None,
        spread=HOUR if is_for_many else 0,
    )
