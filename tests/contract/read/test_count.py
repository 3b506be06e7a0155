"""Counts per tenant, queue and state are exact at every step (S51)."""

from __future__ import annotations

import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import AttemptResult
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from tests.contract.world import ALL, CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, World, failed, ruined


async def test_an_empty_store_counts_nothing(world: World) -> None:
    """S51: zero counts are left out."""
    assert await world.store.jobs.count(CountRequest(scope=ALL)) == CountPage((), None)


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (SUCCEEDED, State.SUCCEEDED),
        (failed(), State.DELAYED),
        (SNOOZED, State.DELAYED),
        (HANDED_BACK, State.READY),
        (CANCELLED, State.CANCELLED),
        (ruined(), State.DEAD),
    ],
)
async def test_counts_follow_a_job_through_its_life(
    world: World, ending: AttemptResult, state: State
) -> None:
    """S51: each step moves exactly one, and what falls to zero is left out."""

    def one(state: State) -> dict[tuple[str, str, State], int]:
        return {("acme", "default", state): 1}

    await world.enqueue(delay=5_000_000)
    assert await world.counts() == one(State.DELAYED)
    world.advance(5)
    await world.promote()
    assert await world.counts() == one(State.READY)
    claim = await world.claim_one()
    assert await world.counts() == one(State.RUNNING)
    await world.renew(claim)
    assert await world.counts() == one(State.RUNNING)
    await world.settle(claim, ending)
    assert await world.counts() == one(state)
    await world.settle_reply(world.verdict(claim))  # stale by now
    assert await world.counts() == one(state)


async def test_counts_are_kept_per_tenant_and_queue_and_sorted(world: World) -> None:
    """S51: one entry for each (tenant, queue, state), in that order."""
    await world.enqueue_many(2, "globex", queue="mail")
    await world.enqueue_many(3, "acme", queue="mail")
    await world.enqueue_many(1, "acme", queue="bulk")
    await world.enqueue("acme", queue="bulk", delay=1)
    await world.claim(1, "bulk")
    page = await world.store.jobs.count(CountRequest(scope=ALL))
    assert page.counts == (
        Count("acme", "bulk", State.DELAYED, 1),
        Count("acme", "bulk", State.RUNNING, 1),
        Count("acme", "mail", State.READY, 3),
        Count("globex", "mail", State.READY, 2),
    )


async def test_counts_of_one_queue_leave_out_the_others(world: World) -> None:
    """S51: the queue filter is exact, and an unknown queue has nothing."""
    await world.enqueue(queue="mail")
    await world.enqueue(queue="mail.eu")
    assert await world.counts(queue="mail") == {("acme", "mail", State.READY): 1}
    assert await world.counts(queue="mai") == {}
    assert await world.counts(Scope("globex"), queue="mail") == {}


async def test_a_refused_batch_leaves_the_counts_alone(world: World) -> None:
    """S12, S51: what was not stored is not counted."""
    first = await world.enqueue()
    reply = await world.send(world.new(), world.new(id=first.id))
    assert reply.refused
    assert await world.counts() == {("acme", "default", State.READY): 1}


async def test_every_way_out_of_waiting_is_counted(world: World) -> None:
    """S51: cancelled, condemned, expired and purged jobs leave the waiting counts in the same step."""
    cancelled, condemned, *_ = await world.enqueue_many(3, queue="bulk")
    await world.enqueue(queue="late", expires_in=1)
    await world.cancel(cancelled.id)
    await world.condemn(condemned.id)
    world.advance(1)
    await world.expire()
    await world.purge(queue="bulk")
    assert await world.counts() == {
        ("acme", "bulk", State.CANCELLED): 2,
        ("acme", "bulk", State.DEAD): 1,
        ("acme", "late", State.CANCELLED): 1,
    }


async def test_counts_of_finished_jobs_follow_what_is_kept(world: World) -> None:
    """S51, S52: history counts are of what retention has left; dead letters have a longer time."""
    await world.bring_to(State.SUCCEEDED)
    await world.bring_to(State.DEAD)
    world.advance(10)
    await world.prune(succeeded=10_000_000)
    assert await world.counts() == {("acme", "default", State.DEAD): 1}
