"""`run_now` makes a delayed job ready, and moves nothing else (S53)."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.model.lifecycle.states import Because, State
from fairlane.model.retry.decision import AttemptResult, Snoozed, Unknown
from fairlane.model.scheduling.priority import sort_key
from tests.contract.world import SNOOZED, World, failed

DELAYS: list[AttemptResult | None] = [
    None,
    failed(),
    SNOOZED,
    Snoozed(MINUTE, "mail is down", Because.BREAKER),
    Unknown(),
]
"""Every way to become delayed: at enqueue, or by how an attempt ended."""


@pytest.mark.parametrize("ending", DELAYS, ids=["time", "retry", "snooze", "breaker", "unknown task"])
async def test_a_delayed_job_becomes_ready_and_due_now(world: World, ending: AttemptResult | None) -> None:
    """S53: whatever it waited for; it has no because any more, and its counters stay."""
    job = await world.enqueue(delay=HOUR if ending is None else 0, priority=4)
    if ending is not None:
        job = await world.run(ending)
    now = world.advance(0.5)
    assert await world.run_now(job.id) == (job.id,)
    assert await world.get(job.id) == msgspec.structs.replace(
        job, state=State.READY, because=None, run_at=now, sort_key=sort_key(now, 4)
    )
    assert await world.counts() == {("acme", "default", State.READY): 1}
    assert (await world.claim_one()).job.id == job.id


@pytest.mark.parametrize("state", [state for state in State if state is not State.DELAYED])
async def test_a_job_that_is_not_delayed_is_left_as_it_is(world: World, state: State) -> None:
    """S23, S53: a ready job keeps its place, and finished jobs never come back under their id."""
    claim = await world.bring_to(state)
    world.advance(1)
    before = await world.sight()
    assert await world.run_now(claim.job.id) == ()
    assert await world.sight() == before


async def test_of_many_those_that_moved_are_named_in_order(world: World) -> None:
    """S53: once each, also if named twice; unknown and ready ones are left out."""
    ready = await world.enqueue()
    late, later = await world.enqueue_many(2, delay=HOUR)
    moved = await world.run_now(later.id, ready.id, world.new().id, late.id, later.id)
    assert moved == (later.id, late.id)
    assert await world.run_now(later.id, late.id) == ()
    assert await world.run_now() == ()


async def test_it_goes_behind_those_that_were_due_before(world: World) -> None:
    """S20, S53: due now is due now, however long it has waited."""
    late = await world.enqueue(delay=HOUR)
    world.advance(1)
    ready = await world.enqueue()
    world.advance(1)
    await world.run_now(late.id)
    assert [claim.job.id for claim in await world.claim(2)] == [ready.id, late.id]


async def test_the_old_time_means_nothing_any_more(world: World) -> None:
    """S53: no claim waits for it, and a promotion at that time moves nothing."""
    late = await world.enqueue(delay=5 * SECOND)
    await world.run_now(late.id)
    claim = await world.claim_one()
    assert (await world.claim_reply()).next_due_at is None
    world.advance(5)
    assert (await world.promote()).promoted == 0
    assert await world.get(late.id) == claim.job


async def test_an_expired_job_is_not_saved_by_it(world: World) -> None:
    """S21, S53: ready again, yet never handed out."""
    late = await world.enqueue(delay=HOUR, expires_in=SECOND)
    world.advance(1)
    await world.run_now(late.id)
    assert await world.claim() == []
    await world.expire()
    assert (await world.get(late.id)).because == "expired"
