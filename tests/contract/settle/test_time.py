"""Time comes from the store's own clock, in whole microseconds (S1, S2). Nothing here waits for anything."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.model.identifiers import made_at
from fairlane.model.instants import DAY, HOUR, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import PolicyChange, SubjectKind
from fairlane.model.scheduling.priority import sort_key
from tests.contract.world import LEASE, SNOOZED, World, failed

MICRO = 0.000001


async def test_an_enqueue_takes_its_instants_from_the_clock_of_the_store(world: World) -> None:
    """S1: the time at which the id was made has no part in it."""
    new = world.new()
    world.advance(90)
    reply = await world.send(new)
    job = reply.enqueued[0].job
    assert made_at(new.id) < world.now
    assert (job.enqueued_at, job.run_at, job.sort_key) == (world.now, world.now, world.now)
    assert await world.get(job.id) == job


async def test_a_relative_time_is_counted_from_the_clock_of_the_store(world: World) -> None:
    """S1: a delay and a time to live begin when the store takes the job, not when the caller made it."""
    new = world.new(delay=5 * SECOND, expires_in=HOUR)
    world.advance(90)
    job = (await world.send(new)).enqueued[0].job
    assert (job.run_at, job.expires_at) == (world.now + 5 * SECOND, world.now + HOUR)


async def test_an_absolute_time_stays_what_the_caller_said(world: World) -> None:
    """S1, S2: to the microsecond, near or far."""
    wanted = world.now + 400 * DAY + 123_457
    job = await world.enqueue(run_at=wanted, expires_at=wanted + 1)
    assert (job.state, job.run_at, job.expires_at) == (State.DELAYED, wanted, wanted + 1)
    assert await world.get(job.id) == job


async def test_a_claim_is_started_and_leased_by_the_clock_of_the_store(world: World) -> None:
    """S1: the reply, the record and the fence speak of the same instant."""
    await world.enqueue()
    now = world.advance(7)
    claim = await world.claim_one(lease=3 * SECOND)
    assert (claim.lease_until, claim.fence) == (now + 3 * SECOND, now)
    assert (claim.job.started_at, claim.job.lease_until) == (now, now + 3 * SECOND)
    assert await world.get(claim.job.id) == claim.job


async def test_a_renewal_extends_the_lease_from_now(world: World) -> None:
    """S1: not from the end of the old lease, and the start of the attempt stays."""
    await world.enqueue()
    claim = await world.claim_one()
    now = world.advance(5)
    reply = await world.renew(claim)
    assert reply.lease_until == now + LEASE
    renewed = msgspec.structs.replace(claim.job, lease_until=now + LEASE)
    assert await world.get(claim.job.id) == renewed


async def test_a_settlement_is_dated_by_the_clock_of_the_store(world: World) -> None:
    """S1: the job's end and its attempt's end are when the store was told."""
    await world.enqueue()
    started = world.now
    claim = await world.claim_one()
    verdict = world.verdict(claim)
    ended = world.advance(2.5)
    await world.settle_reply(verdict)
    job = await world.get(claim.job.id)
    assert job.settled_at == ended
    assert [(one.started_at, one.ended_at) for one in job.attempts] == [(started, ended)]


@pytest.mark.parametrize(("ending", "delay"), [(failed(), SECOND), (SNOOZED, 60 * SECOND)])
async def test_a_delay_counts_from_the_settling_and_not_from_the_verdict(
    world: World, ending: object, delay: int
) -> None:
    """S1: a settlement carries a delay; a worker's own idea of the time has no way in."""
    await world.enqueue(priority=3)
    claim = await world.claim_one()
    verdict = world.verdict(claim, ending)  # type: ignore[arg-type]
    told = world.advance(4)
    await world.settle_reply(verdict)
    job = await world.get(claim.job.id)
    assert (job.run_at, job.sort_key) == (told + delay, sort_key(told + delay, 3))


async def test_a_lost_attempt_ends_when_it_is_taken_back(world: World) -> None:
    """S1: not when its lease ran out."""
    job = await world.enqueue(at_most_once=True)
    await world.claim_one()
    taken = world.advance(60)
    await world.reclaim()
    lost = await world.get(job.id)
    assert (lost.settled_at, lost.attempts[-1].ended_at) == (taken, taken)


async def test_what_operators_do_is_dated_by_the_clock_of_the_store(world: World) -> None:
    """S1: a cancel, a run_now, an override and a pause."""
    cancelled, hurried = await world.enqueue_many(2, delay=HOUR)
    now = world.advance(11)
    await world.cancel(cancelled.id)
    await world.run_now(hurried.id)
    assert (await world.get(cancelled.id)).settled_at == now
    assert (await world.get(hurried.id)).run_at == now
    override = (await world.override(SubjectKind.QUEUE, "default", PolicyChange(max_waiting=9))).override
    paused = (await world.pause(SubjectKind.QUEUE, "default")).paused
    assert override is not None
    assert paused is not None
    assert (override.set_at, paused.set_at) == (now, now)


@pytest.mark.parametrize("early", [1, SECOND, 30 * DAY])
async def test_a_time_in_the_past_means_now_and_is_stored_as_now(world: World, early: int) -> None:
    """S2: so that nobody gains a place by naming an early time."""
    job = await world.enqueue(run_at=world.now - early)
    assert (job.state, job.because, job.run_at, job.sort_key) == (State.READY, None, world.now, world.now)
    assert (await world.claim_one()).job.id == job.id


@pytest.mark.parametrize(("ahead", "state"), [(0, State.READY), (1, State.DELAYED), (SECOND, State.DELAYED)])
async def test_a_time_that_has_come_is_ready_and_the_next_microsecond_is_not(
    world: World, ahead: int, state: State
) -> None:
    """S2: the boundary is exact, for instants and for delays."""
    by_instant = await world.enqueue(run_at=world.now + ahead)
    by_delay = await world.enqueue(delay=ahead)
    for job in (by_instant, by_delay):
        because = "time" if state is State.DELAYED else None
        assert (job.state, job.because, job.run_at) == (state, because, world.now + ahead)


async def test_a_delayed_job_is_claimable_from_its_microsecond_on(world: World) -> None:
    """S2: not one microsecond before, and without any pass in between."""
    job = await world.enqueue(delay=SECOND)
    world.advance(1 - MICRO)
    early = await world.claim_reply()
    assert (early.claims, early.next_due_at) == ((), job.run_at)
    world.advance(MICRO)
    assert (await world.claim_one()).job.id == job.id


async def test_the_pass_over_due_jobs_takes_those_of_this_microsecond(world: World) -> None:
    """S2: one that is due a microsecond from now stays, and the pass says when to come back."""
    due = await world.enqueue(delay=SECOND)
    soon = await world.enqueue(delay=SECOND + 1)
    world.advance(1)
    reply = await world.promote()
    assert (reply.promoted, reply.next_due_at) == (1, soon.run_at)
    ready = msgspec.structs.replace(due, state=State.READY, because=None)
    assert await world.get(due.id) == ready
    assert await world.get(soon.id) == soon


async def test_a_microsecond_decides_the_order(world: World) -> None:
    """S2: no store rounds to milliseconds, whatever the ids say."""
    late, early = world.new(run_at=world.now + 2), world.new(run_at=world.now + 1)
    await world.send(late, early)
    world.advance(0.001)
    assert [claim.job.id for claim in await world.claim(2)] == [early.id, late.id]


async def test_a_lease_of_odd_microseconds_is_kept_exactly(world: World) -> None:
    """S2: lease and timeout are whole microseconds, too."""
    job = await world.enqueue(timeout=1_234_567)
    claim = await world.claim_one(lease=7_654_321)
    assert (job.timeout, claim.lease_until) == (1_234_567, world.now + 7_654_321)
    world.advance(7.654321 - MICRO)
    assert (await world.reclaim()).lost == ()
    world.advance(MICRO)
    assert [one.id for one in (await world.reclaim()).lost] == [job.id]
