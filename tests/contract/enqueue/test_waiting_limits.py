"""How many may wait: per tenant and queue, and in a whole queue (S16, S17, S18)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane.model.instants import HOUR, SECOND
from fairlane.model.lifecycle.admission import Refusal, RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import EVERY, PolicyChange, QueueRules, SubjectKind, TenantRules
from fairlane.model.retry.decision import Unknown
from fairlane.store.contract.jobs import OverLimit
from tests.contract.world import HANDED_BACK, SNOOZED, World, failed


async def limit(world: World, waiting: int, on_full: Any = "reject", queue: str = "default") -> None:
    """Let each tenant have so many waiting in a queue."""
    await world.declare(SubjectKind.QUEUE, queue, QueueRules(limits=Limits(waiting=waiting, on_full=on_full)))


async def is_refused(world: World, tenant: str = "acme", **values: Any) -> bool:
    """Whether one more job is refused by a limit; if not, it is stored."""
    return bool((await world.send(world.new(tenant, **values))).refused)


# ── what counts ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("allowed", [0, 1, 3])
async def test_the_next_after_the_limit_is_the_first_over_it(world: World, allowed: int) -> None:
    """S16: n come in, the n+1st is refused with the facts, and nothing of it is stored."""
    await limit(world, allowed)
    for _ in range(allowed):
        await world.enqueue()
    reply = await world.send(world.new())
    refusal = Refusal(0, RefusalKind.WAITING_LIMIT, "acme", "default", waiting=allowed, limit=allowed)
    assert (reply.enqueued, reply.refused, reply.over) == ((), (refusal,), ())
    assert sum((await world.counts()).values()) == allowed


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        (State.DELAYED, True),
        (State.READY, True),
        (State.RUNNING, False),
        (State.SUCCEEDED, False),
        (State.DEAD, False),
        (State.CANCELLED, False),
    ],
)
async def test_delayed_and_ready_jobs_count_and_no_others(world: World, state: State, counts: bool) -> None:
    """S16: snoozed and handed-back ones wait, running and finished ones do not."""
    await limit(world, 1)
    await world.bring_to(state)
    assert await is_refused(world) is counts


async def test_a_job_for_the_far_future_counts(world: World) -> None:
    """S16: waiting is waiting; and it counts once, before and after it is due."""
    await limit(world, 1)
    await world.enqueue(delay=HOUR)
    assert await is_refused(world)
    assert await is_refused(world, delay=HOUR)
    world.advance(3600)
    await world.promote()
    assert await is_refused(world)
    await world.claim_one()
    assert not await is_refused(world)


@pytest.mark.parametrize("end", ["cancel", "condemn", "expire"])
async def test_a_job_that_stops_waiting_makes_room(world: World, end: str) -> None:
    """S16: in the same step, whichever way it goes."""
    await limit(world, 1)
    job = await world.enqueue(expires_in=SECOND)
    assert await is_refused(world)
    if end == "expire":
        world.advance(1)
        await world.expire()
    else:
        await (world.cancel(job.id) if end == "cancel" else world.condemn(job.id))
    assert not await is_refused(world)
    assert await is_refused(world)


@pytest.mark.parametrize("ending", [failed(), SNOOZED, HANDED_BACK, Unknown()])
async def test_a_job_that_comes_back_is_never_refused(world: World, ending: Any) -> None:
    """S16: its place was taken meanwhile; it waits over the limit and counts for the next enqueue."""
    await limit(world, 1)
    await world.enqueue()
    claim = await world.claim_one()
    other = await world.enqueue()
    assert await world.settle(claim, ending) in {State.DELAYED, State.READY}
    reply = await world.send(world.new())
    assert [(one.waiting, one.limit) for one in reply.refused] == [(2, 1)]
    await world.cancel(other.id)
    assert await is_refused(world)


async def test_a_lost_job_comes_back_over_the_limit(world: World) -> None:
    """S16: reclaiming is no enqueue."""
    await limit(world, 1)
    job = await world.enqueue()
    await world.claim_one()
    await world.enqueue()
    await world.lose()
    assert (await world.get(job.id)).state is State.READY
    assert (await world.states()) == {State.READY: 2}


async def test_a_limit_is_per_tenant_and_queue(world: World) -> None:
    """S16: a full tenant hinders neither another tenant nor itself in another queue."""
    await limit(world, 1)
    await limit(world, 1, queue="bulk")
    await world.enqueue("acme")
    assert await is_refused(world, "acme")
    assert not await is_refused(world, "globex")
    assert not await is_refused(world, "acme", queue="bulk")
    assert not await is_refused(world, "acme", queue="unlimited")
    assert await is_refused(world, "acme", queue="bulk")


async def test_all_tasks_of_a_tenant_count_together(world: World) -> None:
    """S16: the limit is the tenant's, not the strand's."""
    await limit(world, 2)
    await world.enqueue(task="one")
    await world.enqueue(task="two")
    assert await is_refused(world, task="three")


async def test_the_most_specific_limits_hold_as_a_whole(world: World) -> None:
    """S16: the tenant's for the queue, its own for every queue, everyone's, the queue's."""
    await limit(world, 1)
    everyone = {"default": Limits(waiting=2, on_full="reject")}
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules(limits=everyone))
    own = {"default": Limits(waiting=3, on_full="reject"), EVERY: Limits(waiting=0, on_full="reject")}
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits=own))
    await world.declare(SubjectKind.TENANT, "free", TenantRules(limits={EVERY: Limits()}))
    stored = {}
    for tenant in ("acme", "globex", "free"):
        stored[tenant] = [not await is_refused(world, tenant) for _ in range(4)].count(True)
    assert stored == {"acme": 3, "globex": 2, "free": 4}
    assert await is_refused(world, "acme", queue="bulk")


# ── over the limit ───────────────────────────────────────────────────────────


async def test_a_warning_limit_stores_the_job_and_reports_it(world: World) -> None:
    """S17: each job above it is told of, with what waits now; those below are not."""
    await limit(world, 2, "warn")
    reply = await world.send(*(world.new() for _ in range(4)))
    assert [one.is_created for one in reply.enqueued] == [True] * 4
    assert reply.over == (OverLimit("acme", "default", 3, 2), OverLimit("acme", "default", 4, 2))
    again = await world.send(world.new(), world.new("globex"))
    assert again.over == (OverLimit("acme", "default", 5, 2),)
    assert len(await world.claim(10)) == 6


async def test_a_warning_goes_when_there_is_room_again(world: World) -> None:
    """S17: it is about this enqueue, not about the past."""
    await limit(world, 1, "warn")
    await world.enqueue_many(2)
    await world.claim(2)
    assert (await world.send(world.new())).over == ()


async def test_a_batch_is_counted_item_by_item(world: World) -> None:
    """S17, S12: only those over the limit are named, yet none is stored."""
    await limit(world, 3)
    await world.enqueue()
    reply = await world.send(world.new(), world.new("globex"), world.new(), world.new(), world.new())
    assert [(one.index, one.waiting) for one in reply.refused] == [(3, 3), (4, 3)]
    assert await world.counts() == {("acme", "default", State.READY): 1}
    exact = await world.send(world.new(), world.new("globex"), world.new())
    assert len(exact.enqueued) == 3


async def test_a_refused_batch_reports_nothing_as_over(world: World) -> None:
    """S17, S12: a warning of an item that was not stored would be a lie."""
    await limit(world, 0, "warn")
    await limit(world, 0, "reject", queue="bulk")
    reply = await world.send(world.new(), world.new(queue="bulk"))
    assert ([one.index for one in reply.refused], reply.over) == ([1], ())
    assert await world.counts() == {}


async def test_a_repeat_never_counts(world: World) -> None:
    """S15, S16: neither against the limit nor as waiting, for both kinds of keys and both policies."""
    for on_full in ("warn", "reject"):
        await limit(world, 2, on_full, queue=on_full)
        keys = {"queue": on_full, "idempotency_key": on_full, "dedup_key": on_full}
        reply = await world.send(world.new(**keys), world.new(**keys), world.new(queue=on_full))
        assert [one.is_created for one in reply.enqueued] == [True, False, True]
        full = await world.send(world.new(**keys))
        assert ([one.is_created for one in full.enqueued], full.over, full.refused) == ([False], (), ())


# ── the whole queue ──────────────────────────────────────────────────────────


async def test_the_total_of_a_queue_counts_all_tenants(world: World) -> None:
    """S18: delayed and ready ones, whoever they belong to; it always refuses."""
    await world.declare(
        SubjectKind.QUEUE, "default", QueueRules(limits=Limits(on_full="warn"), max_waiting=3)
    )
    await world.enqueue("acme")
    await world.enqueue("globex", delay=HOUR)
    await world.enqueue("initech")
    reply = await world.send(world.new("hooli"))
    refusal = Refusal(0, RefusalKind.QUEUE_FULL, "hooli", "default", waiting=3, limit=3)
    assert (reply.enqueued, reply.refused) == ((), (refusal,))
    assert not await is_refused(world, "hooli", queue="other")


async def test_running_jobs_leave_the_total_of_a_queue(world: World) -> None:
    """S18: a claim makes room; a retry comes back in regardless."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(max_waiting=1))
    await world.enqueue("acme")
    claim = await world.claim_one()
    assert not await is_refused(world, "globex")
    assert await world.settle(claim, failed()) is State.DELAYED
    (refusal,) = (await world.send(world.new("globex"))).refused
    assert (refusal.kind, refusal.waiting) == (RefusalKind.QUEUE_FULL, 2)


async def test_the_total_is_counted_item_by_item_within_a_batch(world: World) -> None:
    """S18, S12: the last item of the batch is the one too many."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(max_waiting=2))
    reply = await world.send(*(world.new(tenant) for tenant in ("acme", "globex", "initech")))
    assert [(one.index, one.kind, one.waiting) for one in reply.refused] == [(2, RefusalKind.QUEUE_FULL, 2)]
    assert await world.counts() == {}
    assert len((await world.send(world.new("acme"), world.new("globex"))).enqueued) == 2


# ── changes and company ──────────────────────────────────────────────────────


async def test_a_limit_changes_at_run_time(world: World) -> None:
    """S16, S54: raised, lowered below what waits, and reset; each counts from the next enqueue on."""
    await limit(world, 2)
    await world.enqueue_many(2)
    await world.override(
        SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(waiting=3, on_full="reject"))
    )
    assert [await is_refused(world) for _ in range(2)] == [False, True]
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(waiting=1, on_full="warn")))
    assert (await world.send(world.new())).over == (OverLimit("acme", "default", 4, 1),)
    await world.reset(SubjectKind.QUEUE, "default")
    assert [(one.waiting, one.limit) for one in (await world.send(world.new())).refused] == [(4, 2)]
    assert (await world.states()) == {State.READY: 4}


async def test_a_limit_that_is_overridden_for_a_while_comes_back(world: World) -> None:
    """S16, S54: at the end of the override, to the microsecond."""
    await limit(world, 0)
    limits = {"default": Limits(waiting=9, on_full="reject")}
    await world.override(
        SubjectKind.TENANT, "acme", PolicyChange(queue_limits=limits), until=world.now + SECOND
    )
    world.advance(0.999999)
    assert not await is_refused(world)
    world.advance(0.000001)
    assert await is_refused(world)


async def test_the_total_of_a_queue_changes_at_run_time(world: World) -> None:
    """S18, S54: lowered it removes nothing and refuses the next, lifted it lets everyone in."""
    await world.enqueue_many(3)
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(max_waiting=1))
    assert await is_refused(world)
    assert (await world.states()) == {State.READY: 3}
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(max_waiting=None))
    assert not await is_refused(world)


async def test_enqueues_at_the_same_time_that_leave_room_are_all_stored(world: World) -> None:
    """S16, S18: exactly as many as fit; no count is lost, and none is refused before its time."""
    await world.declare(
        SubjectKind.QUEUE, "default", QueueRules(limits=Limits(waiting=8, on_full="reject"), max_waiting=16)
    )
    tenants = ("acme", "globex")
    replies = await asyncio.gather(*(world.send(world.new(tenant)) for tenant in tenants for _ in range(8)))
    assert [reply.refused for reply in replies] == [()] * 16
    assert all([await is_refused(world, tenant) for tenant in (*tenants, "initech")])
