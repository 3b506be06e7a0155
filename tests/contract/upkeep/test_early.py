"""History that goes before its time, because the store is nearly full (S126)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.instants import DAY, SECOND
from fairlane.model.lifecycle.states import HOT, State
from fairlane.model.policy.prune_mark import NO_MARK
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Succeeded
from fairlane.store.contract.history import BatchRequest
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from tests.contract.upkeep.test_retention_rules import end, known, prune
from tests.contract.world import ALL, World

A_DAY = DAY / SECOND
MANY = 30
"""More passes than any of these tests needs."""
LONG = {"succeeded": 99 * DAY, "cancelled": 99 * DAY, "results": 99 * DAY}


async def daily(world: World, *states: State, **values: Any) -> list[Any]:
    """Let one job end each day, on which a duty works as always; return their ids."""
    ids: list[Any] = []
    for state in states:
        await prune(world)
        ids += await end(world, state, apart=A_DAY, **values)
    return ids


class Early:
    """Early passes, each from where the one before has come to."""

    def __init__(self, world: World, limit: int = 1, *, is_archived: bool = False, **times: Any) -> None:
        """Begin anew."""
        self._world = world
        self._mark = NO_MARK
        self._limit = limit
        self._is_archived = is_archived
        self._retention = Retention(**(LONG | times))

    async def __call__(self, *, is_early: bool = True) -> PruneReply:
        """Make one pass."""
        request = PruneRequest(
            scope=ALL,
            retention=self._retention,
            limit=self._limit,
            mark=self._mark,
            is_archived=self._is_archived,
            is_early=is_early,
        )
        reply = await self._world.store.upkeep.prune(request)
        self._mark = reply.mark
        return reply

    async def all(self) -> int:
        """Make passes until nothing more can go; return how many jobs went."""
        jobs = 0
        for _ in range(MANY):
            reply = await self()
            jobs += reply.jobs
            if not reply.is_partial and not reply.has_more_early:
                return jobs
        return pytest.fail("it never ends")


async def test_the_oldest_go_first_though_their_time_has_not_come(world: World) -> None:
    """S126: succeeded and cancelled ones, a part at a time: here a day, which any store can take."""
    succeeded, cancelled = State.SUCCEEDED, State.CANCELLED
    ids = await daily(world, succeeded, cancelled, cancelled, succeeded)
    early = Early(world)
    assert (await early(is_early=False)).jobs == 0
    for left in (3, 2, 1, 0):
        reply = await early()
        assert (reply.jobs, reply.has_more_early) == (1, True)
        assert await known(world, ids) == [number >= 4 - left for number in range(4)]
    assert await early.all() == 0
    await world.check_invariants()


@pytest.mark.parametrize("state", [*sorted(HOT), State.DEAD])
async def test_what_lives_and_what_is_dead_stays(world: World, state: State) -> None:
    """S126: a dead letter is work for people, whatever they have decided."""
    claim = await world.bring_to(state, queue="other")
    if state is State.DEAD:
        await world.review("resolve", claim.job.id, note="fine")
    ids = await daily(world, State.SUCCEEDED)
    assert await Early(world).all() == 1
    assert await known(world, [claim.job.id, *ids]) == [True, False]


@pytest.mark.parametrize("own", [{"tasks": {"rollup": 50 * DAY}}, {"queues": {"default": 50 * DAY}}])
async def test_a_time_by_name_is_kept_and_stops_nothing_behind_it(world: World, own: Any) -> None:
    """S103, S126: a pass goes past such jobs, also if they are more than it may remove."""
    kept = await daily(world, *[State.SUCCEEDED] * 3, task="rollup")
    gone = await daily(world, State.SUCCEEDED, State.CANCELLED, queue="other")
    assert await Early(world, **own).all() == 2
    assert await known(world, [*kept, *gone]) == [True] * 3 + [False] * 2


async def test_jobs_that_ended_together_go_together(world: World) -> None:
    """S126: more than one pass may remove; none is left behind and none is removed twice."""
    ids = await end(world, *[State.SUCCEEDED] * 5, apart=0)
    world.advance(A_DAY)
    later = await daily(world, State.SUCCEEDED)
    early = Early(world, limit=2, is_archived=True)
    jobs = 0
    while True:
        reply = await early()
        jobs += reply.jobs
        if not reply.is_partial:
            break
    assert jobs == 5
    assert await known(world, [*ids, *later]) == [False] * 5 + [True]


async def test_an_archive_has_what_goes_early(world: World) -> None:
    """S105, S126: in the same step."""
    ids = await daily(world, State.SUCCEEDED, State.CANCELLED)
    assert await Early(world, is_archived=True).all() == 2
    batch = await world.store.history.next_batch(BatchRequest(scope=ALL))
    assert batch is not None
    assert {one.job.id for one in batch.jobs} == set(ids)


async def test_a_pass_after_early_ones_keeps_what_has_its_time(world: World) -> None:
    """S126: once there is room, ages and numbers count as before."""
    ids = await daily(world, *[State.SUCCEEDED] * 3)
    early = Early(world)
    await early()
    for _ in range(3):
        assert (await early(is_early=False)).jobs == 0
    assert await known(world, ids) == [False, True, True]


async def test_a_store_says_how_large_it_is(world: World) -> None:
    """S126: after a pass if asked, and when it is inspected."""
    await world.enqueue(payload=b'"' + b"x" * 100_000 + b'"')
    await world.run(Succeeded())
    assert (await Early(world)(is_early=False)).size is None
    request = PruneRequest(scope=ALL, retention=Retention(), is_measured=True)
    measured = (await world.store.upkeep.prune(request)).size
    inspected = (await world.store.upkeep.inspect(InspectRequest(scope=ALL))).size
    assert measured is not None
    assert inspected is not None
    assert min(measured.used, inspected.used) >= 100_000
