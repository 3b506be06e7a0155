"""Which retention counts, and how many jobs a limit by number keeps (S103)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from fairlane.model.instants import DAY, HOUR, SECOND, Micros
from fairlane.model.lifecycle.states import HOT, State
from fairlane.model.policy.prune_mark import NO_MARK, PruneMark
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from tests.contract.world import ALL, World, numbers_of

ENDED: Final = (State.SUCCEEDED, State.CANCELLED, State.DEAD)


async def prune(
    world: World, limit: int = 1_000, mark: PruneMark = NO_MARK, scope: Scope = ALL, **times: Any
) -> PruneReply:
    """Make one bounded pass."""
    request = PruneRequest(scope=scope, retention=Retention(**times), limit=limit, mark=mark)
    return await world.store.upkeep.prune(request)


async def end(world: World, *states: State, apart: float = 1, **values: Any) -> list[Any]:
    """Let jobs end one after the other, so many seconds apart; return their ids."""
    ids = []
    for state in states:
        ids.append((await world.bring_to(state, **values)).job.id)
        world.advance(apart)
    return ids


async def known(world: World, ids: list[Any]) -> list[bool]:
    """Return which are still stored."""
    return [await world.is_known(id) for id in ids]


# ── the most specific time ───────────────────────────────────────────────────

MOST_SPECIFIC: Final[list[tuple[dict[str, Any], Micros]]] = [
    ({"tasks": {"noop": 9 * DAY}, "tenants": {"acme": 0}, "queues": {"default": 0}}, 9 * DAY),
    ({"tasks": {"noop": SECOND}, "tenants": {"acme": HOUR}, "queues": {"default": HOUR}}, SECOND),
    ({"tasks": {"other": 0}, "tenants": {"acme": HOUR}, "queues": {"default": 0}}, HOUR),
    ({"tasks": {"other": 0}, "tenants": {"globex": 0}, "queues": {"default": HOUR}}, HOUR),
    ({"tasks": {"noop": 90 * DAY}}, 90 * DAY),
]


@pytest.mark.parametrize("state", ENDED)
@pytest.mark.parametrize(("times", "kept"), MOST_SPECIFIC)
async def test_a_task_counts_before_its_tenant_and_that_before_the_queue(
    world: World, state: State, times: dict[str, Any], kept: Micros
) -> None:
    """S103: whatever the state, however long or short the others are."""
    claim = await world.bring_to(state)
    world.advance(kept / SECOND - 0.000_001)
    assert numbers_of(await prune(world, **times)) == PruneReply()
    world.advance(0.000_001)
    reply = await prune(world, **times)
    assert (reply.jobs, reply.states) == (1, {state: 1})
    assert not await world.is_known(claim.job.id)


async def test_one_task_is_kept_among_others(world: World) -> None:
    """S103: a time of its own takes nothing with it and holds nothing back."""
    kept = await end(world, *ENDED, task="rollup")
    gone = await end(world, *ENDED)
    world.advance(31 * DAY / SECOND)
    reply = await prune(world, tasks={"rollup": 90 * DAY})
    assert reply.states == dict.fromkeys(ENDED, 1)
    assert await known(world, [*kept, *gone]) == [True] * 3 + [False] * 3


# ── the newest ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("newest", [1, 2, 3, 4, 5, 6, 7])
async def test_the_newest_stay(world: World, newest: int) -> None:
    """S103: succeeded and cancelled ones together, in the order of their ends; no dead letters."""
    cancelled, succeeded, dead = State.CANCELLED, State.SUCCEEDED, State.DEAD
    ids = await end(world, succeeded, cancelled, cancelled, succeeded, succeeded, cancelled)
    letter = await end(world, dead)
    reply = await prune(world, newest_finished=newest)
    assert reply.jobs == max(0, 6 - newest)
    assert await known(world, ids) == [number >= 6 - newest for number in range(6)]
    assert await known(world, letter) == [True]
    again = await prune(world, newest_finished=newest)
    assert numbers_of(again) == PruneReply()
    oldest = (await world.get(ids[-newest])).settled_at if newest <= len(ids) else 0
    assert again.mark.cut == oldest
    await world.check_invariants()


async def test_the_dead_letters_that_died_last_stay(world: World) -> None:
    """S103: whatever was decided; other finished jobs are not among them."""
    ids = await end(world, *[State.DEAD] * 4)
    others = await end(world, State.SUCCEEDED, State.CANCELLED)
    reply = await prune(world, newest_dead=3)
    assert reply.states == {State.DEAD: 1}
    assert await known(world, [*ids, *others]) == [False] + [True] * 5
    assert numbers_of(await prune(world, newest_dead=4)) == PruneReply()


async def test_jobs_that_ended_together_stay_together(world: World) -> None:
    """S103: a job goes when so many have ended after it, so the number is exceeded rather than undercut."""
    ids = await end(world, *[State.SUCCEEDED] * 5, apart=0)
    world.advance(1)
    assert (await prune(world, newest_finished=2)).jobs == 0
    later = await end(world, State.SUCCEEDED, State.SUCCEEDED)
    assert (await prune(world, newest_finished=3)).jobs == 0
    assert (await prune(world, newest_finished=2)).jobs == 5
    assert await known(world, [*ids, *later]) == [False] * 5 + [True] * 2


async def test_a_time_of_its_own_is_stronger_than_the_number(world: World) -> None:
    """S103: such a job is counted, and kept; a letter too."""
    rollup = await end(world, State.SUCCEEDED, State.DEAD, task="rollup")
    acme = await end(world, State.SUCCEEDED, State.DEAD)
    globex = await end(world, State.SUCCEEDED, State.DEAD, tenant="globex")
    last = await end(world, State.SUCCEEDED, State.DEAD, task="rollup")
    own: dict[str, Any] = {"tasks": {"rollup": DAY}, "tenants": {"globex": DAY}}
    reply = await prune(world, newest_finished=1, newest_dead=1, **own)
    assert (reply.states, reply.results) == ({State.SUCCEEDED: 1, State.DEAD: 1}, 0)
    assert await known(world, [*rollup, *acme, *globex, *last]) == [True] * 2 + [False] * 2 + [True] * 4


async def test_within_the_number_age_counts_as_before(world: World) -> None:
    """S103: the limit by number keeps nothing for longer."""
    await end(world, State.SUCCEEDED, State.DEAD)
    world.advance(30 * DAY / SECOND)
    assert (await prune(world, newest_finished=9, newest_dead=9)).jobs == 2


@pytest.mark.parametrize("state", sorted(HOT))
async def test_no_number_removes_a_job_that_lives(world: World, state: State) -> None:
    """S103: nor is it counted."""
    live = await world.bring_to(state, queue="other")
    ids = await end(world, State.SUCCEEDED, State.SUCCEEDED)
    assert (await prune(world, newest_finished=2, newest_dead=1)).jobs == 0
    assert (await prune(world, newest_finished=1, newest_dead=1)).jobs == 1
    assert await known(world, [live.job.id, *ids]) == [True, False, True]


async def test_a_scope_loses_its_own_jobs_beyond_the_number(world: World) -> None:
    """S9, S103: counted is the whole store, removed are the jobs of the scope."""
    acme = await end(world, State.SUCCEEDED, State.DEAD)
    globex = await end(world, State.SUCCEEDED, State.DEAD, tenant="globex")
    last = await end(world, State.SUCCEEDED, State.DEAD)
    reply = await prune(world, scope=Scope("globex"), newest_finished=1, newest_dead=1)
    assert reply.jobs == 2
    assert await known(world, [*acme, *globex, *last]) == [True, True, False, False, True, True]


async def test_the_number_holds_over_times_that_differ_much(world: World) -> None:
    """S103: bursts, pauses of days, and many at one instant; the last of the newest is found."""
    ids = []
    for apart in (0, 0, 0, 0.000_001, 0.000_001, 3, 0, 86_400, 0, 3_600, 0.5, 259_200, 0.000_001, 60):
        ids += await end(world, State.SUCCEEDED, apart=apart)
    for newest in range(13, 0, -1):
        ended = [
            (await world.get(id)).settled_at or 0
            for id, is_kept in zip(ids, await known(world, ids), strict=True)
            if is_kept
        ]
        await prune(world, newest_finished=newest)
        left = [at for at in ended if at >= sorted(ended)[-min(newest, len(ended))]]
        assert sum(await known(world, ids)) == len(left)


async def test_passes_by_number_are_bounded(world: World) -> None:
    """S103: each says whether there was more, and takes the oldest first."""
    ids = await end(world, *[State.SUCCEEDED, State.CANCELLED] * 4)
    replies: list[PruneReply] = []
    mark = NO_MARK
    while not replies or replies[-1].is_partial:
        replies.append(await prune(world, limit=2, newest_finished=3, mark=mark))
        mark = replies[-1].mark
        done = sum(one.jobs for one in replies)
        assert await known(world, ids) == [number >= done for number in range(8)]
    assert [one.jobs for one in replies] == [2, 2, 1]


# ── from pass to pass ────────────────────────────────────────────────────────


async def test_a_pass_goes_on_from_the_one_before(world: World) -> None:
    """S103: each job goes in the pass in which its time is over, by each of the times; results do, too."""
    times: dict[str, Any] = {"results": HOUR, "tasks": {"rollup": 3 * DAY}, "queues": {"default": DAY}}
    mark = NO_MARK
    removed: list[tuple[int, int]] = []
    for _ in range(6):
        await world.enqueue()
        await world.run(Succeeded(b"1"))
        await end(world, State.SUCCEEDED, task="rollup", apart=0)
        world.advance(43_200)
        reply = await prune(world, mark=mark, **times)
        removed.append((reply.jobs, reply.results))
        mark = reply.mark
    assert removed == [(0, 1), (1, 1), (1, 1), (1, 1), (1, 1), (2, 1)]


async def test_what_was_read_is_not_read_again(world: World) -> None:
    """S103: a job that a wrong clock has put among it is found by the next pass without a mark."""
    world.advance(9 * DAY / SECOND)
    mark = (await prune(world)).mark
    world.advance(-9 * DAY / SECOND)
    ids = await end(world, State.SUCCEEDED, apart=9 * 86_400)
    assert (await prune(world, mark=mark)).jobs == 0
    assert await known(world, ids) == [True]
    assert (await prune(world)).jobs == 1


async def test_a_mark_hides_nothing_of_a_sweep_in_parts(world: World) -> None:
    """S103: what becomes old while a sweep of several passes is under way is found by the next."""
    await end(world, State.SUCCEEDED, task="rollup")
    await end(world, *[State.SUCCEEDED] * 4, apart=1)
    world.advance(14)
    times: dict[str, Any] = {"succeeded": 5 * SECOND, "tasks": {"rollup": 20 * SECOND}}
    mark, removed = NO_MARK, 0
    for _ in range(9):  # the rollup becomes old after a pass has removed what was settled later
        reply = await prune(world, limit=1, mark=mark, **times)
        removed, mark = removed + reply.jobs, reply.mark
        world.advance(2)
    assert removed == 5
