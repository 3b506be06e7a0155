"""Several schedulers at once keep out of each other's way, and an idle one asks next to nothing (S108)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from fairlane.duties.schedules.fire import EVERY, LEFT_FOR
from fairlane.model.instants import HOUR, SECOND, Instant
from fairlane.model.schedule.timing import At
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.schedules import SchedulesWriteRequest
from tests.contract.schedules.scene import due, keep, new
from tests.contract.world import World
from tests.duties.schedules.scene import (
    declare,
    fire_of,
    jobs_of,
    publish,
    row_of,
    spec,
    states,
    to_minute,
    until_rest,
)
from tests.oracle.clock import DrivenClock
from tests.stores import STORES

SCHEDULES = 2_000


class Asked:
    """What a scheduler has asked a store for."""

    def __init__(self, store: Any) -> None:
        self.calls: Counter[str] = Counter()
        self.items: Counter[str] = Counter()
        self._store = store

    def __getattr__(self, facet: str) -> Any:
        return _AskedFacet(self, facet, getattr(self._store, facet))

    async def call(self, name: str, verb: Any, request: Any) -> Any:
        """Count one call, and what it has."""
        self.calls[name] += 1
        if isinstance(request, EnqueueRequest):
            self.items["jobs"] += len(request.jobs)
        if isinstance(request, SchedulesWriteRequest):
            self.items["schedules"] += len(request.changes)
        return await verb(request)


class _AskedFacet:
    def __init__(self, asked: Asked, name: str, facet: Any) -> None:
        self._asked = asked
        self._name = name
        self._facet = facet

    def __getattr__(self, verb: str) -> Any:
        return lambda request: self._asked.call(f"{self._name}.{verb}", getattr(self._facet, verb), request)


class InTurn(Asked):
    """A store that several ask by turns, call by call."""

    async def call(self, name: str, verb: Any, request: Any) -> Any:
        """Let the others go first."""
        await asyncio.sleep(0)
        return await super().call(name, verb, request)


async def test_several_schedulers_do_little_twice() -> None:
    """S108: each slot has one job, and all together ask for little more than one alone would."""
    clock = DrivenClock(HOUR)
    async with STORES["oracle"](clock) as store:
        world = World(store, clock)
        await publish(world)
        await declare(world, *(spec(f"s{number:04}", tenant=f"t{number % 7}") for number in range(SCHEDULES)))
        world.advance(60)
        asked: Any = [InTurn(world.store) for _ in range(3)]
        await asyncio.gather(*(until_rest(fire_of(world), one) for one in asked))
        assert len(await jobs_of(world)) == SCHEDULES
        items: Counter[str] = sum((one.items for one in asked), Counter())
        assert SCHEDULES <= items["jobs"] < 1.3 * SCHEDULES
        assert SCHEDULES <= items["schedules"] < 1.5 * SCHEDULES
        assert all(one.items["jobs"] > 0.2 * SCHEDULES for one in asked)


async def test_a_pass_makes_the_jobs_of_the_slots_that_it_takes(world: World) -> None:
    """S108: with five calls, however many schedules they are for."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, *(spec(f"s{number}") for number in range(20)))
    await fire(world.store)
    world.advance(60)
    asked: Any = Asked(world.store)
    assert await fire(asked) == 0
    assert [state for number in range(20) for _, state in await states(world, f"s{number}")] == [
        "enqueued"
    ] * 20
    assert asked.calls == {
        "schedules.due": 1,
        "registry.tasks": 1,
        "schedules.write": 1,
        "jobs.enqueue": 1,
        "schedules.end_slots": 1,
    }


async def test_what_another_has_just_taken_is_left_to_it_while_there_is_other_work(world: World) -> None:
    """S108: not for long, and not once there is nothing else to do."""
    fire = fire_of(world)
    await publish(world)
    to_minute(world)
    await declare(world, spec("mine"), spec("theirs", timing=At(instant=world.now + HOUR)))
    theirs = (await row_of(world, "theirs")).record
    world.advance(60)
    await keep(world, theirs, new(world.now))
    assert await fire(world.store) == 0
    assert await left(world) == [world.now]
    assert await fire(world.store) == 0
    assert await left(world) == []
    world.advance(60 - LEFT_FOR / SECOND)
    await keep(world, theirs, new(world.now))
    world.advance(LEFT_FOR / SECOND)
    assert await fire(world.store) == 0
    assert await left(world) == []
    assert [len(await states(world, name)) for name in ("mine", "theirs")] == [2, 2]


async def left(world: World) -> list[Instant]:
    """Return the slots that are pending."""
    return [slot.at for slot in (await due(world)).pending]


async def test_an_idle_scheduler_asks_once_in_five_seconds(world: World) -> None:
    """S108: 0.2 calls a second, however many schedules wait."""
    fire = fire_of(world)
    await declare(world, *(spec(f"s{number}", timing=At(instant=world.now + HOUR)) for number in range(20)))
    assert await fire(world.store) == EVERY
    asked: Any = Asked(world.store)
    for _ in range(60):
        pause = await fire(asked)
        world.advance(pause / SECOND)
    assert asked.calls == {"schedules.due": 60}
    assert asked.calls.total() / (60 * EVERY / SECOND) <= 0.2
