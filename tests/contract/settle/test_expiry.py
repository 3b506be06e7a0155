"""`expires_at` bounds the start of any attempt (S21)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.claims import ExpireReply, PassRequest
from tests.contract.world import ALL, HANDED_BACK, SNOOZED, World, failed

MICRO = 0.000001


async def test_a_job_may_start_until_the_microsecond_before_its_expiry(world: World) -> None:
    """S21: the last instant before it still starts an attempt."""
    job = await world.enqueue(expires_in=SECOND)
    assert job.expires_at == world.now + SECOND
    world.advance(1 - MICRO)
    assert await world.expire() == 0
    assert (await world.claim_one()).job.id == job.id


async def test_at_its_expiry_a_job_is_not_handed_out_any_more(world: World) -> None:
    """S21: before any pass has come by; the jobs behind it go on."""
    late = await world.enqueue(expires_in=SECOND)
    good = await world.enqueue()
    world.advance(1)
    assert [claim.job.id for claim in await world.claim(5)] == [good.id]
    assert (await world.get(late.id)).attempt == 0


@pytest.mark.parametrize("delay", [0, SECOND // 2, HOUR])
async def test_a_waiting_job_past_its_expiry_is_cancelled(world: World, delay: int) -> None:
    """S21: ready, due or still delayed; because `expired`, as history, without a dead letter."""
    job = await world.enqueue(delay=delay, expires_in=SECOND)
    world.advance(1 - MICRO)
    assert await world.expire() == 0
    assert await world.get(job.id) == job
    world.advance(MICRO)
    assert await world.expire() == 1
    expected = {"state": State.CANCELLED, "because": "expired", "settled_at": world.now}
    assert await world.get(job.id) == msgspec.structs.replace(job, **expected)
    assert await world.letter(job.id) is None


async def test_a_job_that_was_due_and_promoted_expires_too(world: World) -> None:
    """S21: the way it became ready does not matter, nor does run_now."""
    by_time = await world.enqueue(delay=SECOND, expires_in=2 * SECOND)
    by_hand = await world.enqueue(delay=HOUR, expires_in=2 * SECOND)
    world.advance(1)
    await world.promote()
    await world.run_now(by_hand.id)
    world.advance(1)
    assert await world.claim(2) == []
    await world.expire()
    assert [(await world.get(job.id)).because for job in (by_time, by_hand)] == ["expired", "expired"]


async def test_a_job_that_is_due_only_after_its_expiry_never_runs(world: World) -> None:
    """S21: nobody notices before; then it is cancelled, and a claim at its time finds nothing."""
    job = await world.enqueue(delay=10 * SECOND, expires_in=5 * SECOND)
    world.advance(10)
    assert await world.claim(1) == []
    await world.expire()
    assert (await world.get(job.id)).state is State.CANCELLED


async def test_a_job_that_is_too_late_already_is_never_handed_out(world: World) -> None:
    """S21: an expiry that has passed at the enqueue is an expiry."""
    job = await world.enqueue(expires_at=world.now)
    assert await world.claim(1) == []
    await world.expire()
    assert (await world.get(job.id)).because == "expired"


async def test_expired_jobs_do_not_stand_in_the_way_of_a_claim(world: World) -> None:
    """S21, S35: a whole backlog of them is passed by, and the reply is not empty for their sake."""
    await world.enqueue_many(70, expires_in=SECOND)
    await world.enqueue_many(70, "globex", expires_in=SECOND)
    good = [await world.enqueue(), await world.enqueue("globex")]
    world.advance(1)
    assert {claim.job.id for claim in await world.claim(5)} == {job.id for job in good}
    await world.expire()
    assert (await world.states()) == {State.CANCELLED: 140, State.RUNNING: 2}


async def test_a_running_attempt_is_not_disturbed(world: World) -> None:
    """S21: nor its lease, nor its success."""
    job = await world.enqueue(expires_in=SECOND)
    claim = await world.claim_one()
    world.advance(5)
    assert await world.expire() == 0
    assert await world.get(job.id) == claim.job
    assert (await world.renew(claim)).stale == ()
    assert await world.settle(claim) is State.SUCCEEDED


@pytest.mark.parametrize(
    ("left", "state"),
    [
        (SECOND + 1, State.DELAYED),
        (SECOND, State.DEAD),
        (SECOND - 1, State.DEAD),
        (0, State.DEAD),
        (-HOUR, State.DEAD),
    ],
)
async def test_a_retry_that_would_come_too_late_is_dead(world: World, left: int, state: State) -> None:
    """S21: the store compares at the settling, with its own clock; at the expiry itself is too late."""
    await world.enqueue(expires_in=2 * HOUR)
    claim = await world.claim_one()
    world.advance((2 * HOUR - left) / SECOND)
    assert await world.settle(claim, failed(ErrorClass.TRANSIENT)) is state
    job = await world.get(claim.job.id)
    assert (job.failures, job.attempts[-1].outcome) == (1, "failed")
    letter = await world.letter(job.id)
    if state is State.DELAYED:
        assert (job.run_at, letter) == (world.now + SECOND, None)
    else:
        assert job.because == "expired: the next attempt would be too late"
        assert job.run_at == job.enqueued_at
        assert letter is not None
        assert (letter.error_class, letter.job) == (ErrorClass.TRANSIENT, job)


@pytest.mark.parametrize(
    ("ending", "state"), [(SNOOZED, State.DELAYED), (HANDED_BACK, State.READY), ("lost", State.READY)]
)
async def test_a_job_that_comes_back_without_failing_waits_and_then_expires(
    world: World, ending: Any, state: State
) -> None:
    """S21: only a retry is dead; snoozed, returned and lost ones are waiting jobs like others."""
    job = await world.enqueue(expires_in=30 * SECOND)
    claim = await world.claim_one()
    if ending == "lost":
        await world.lose()
    else:
        await world.settle(claim, ending)
    assert (await world.get(job.id)).state is state
    world.advance(30)
    assert await world.claim(1) == []
    await world.expire()
    assert (await world.get(job.id)).because == "expired"
    assert await world.letter(job.id) is None


async def test_a_job_that_ran_long_past_its_expiry_expires_when_it_comes_back(world: World) -> None:
    """S21: however many passes have left it alone while it ran."""
    await world.enqueue(expires_in=SECOND)
    claim = await world.claim_one()
    for _ in range(3):
        world.advance(3_600)
        assert await world.expire() == 0
    await world.settle(claim, HANDED_BACK)
    assert await world.expire() == 1
    assert (await world.get(claim.job.id)).state is State.CANCELLED


async def test_a_failure_that_is_not_retried_keeps_its_own_reason(world: World) -> None:
    """S21: exhausted before the expiry is looked at."""
    await world.enqueue(max_attempts=1, expires_in=SECOND)
    claim = await world.claim_one()
    world.advance(5)
    await world.settle(claim, failed())
    assert (await world.get(claim.job.id)).because == "exhausted: boom"


async def test_the_pass_over_expired_jobs_is_bounded(world: World) -> None:
    """S21: earliest expiry first, over queues and tenants, and it says whether there is more."""
    times = {"acme": 3, "globex": 1, "initech": 2}
    jobs = {
        tenant: await world.enqueue(tenant, queue=tenant, expires_in=seconds * SECOND)
        for tenant, seconds in times.items()
    }
    kept = await world.enqueue(expires_in=HOUR)
    world.advance(10)

    async def expire() -> ExpireReply:
        return await world.store.claims.expire(PassRequest(scope=ALL, limit=1))

    for tenant in ("globex", "initech", "acme"):
        assert (await world.get(jobs[tenant].id)).state is State.READY
        reply = await expire()
        assert (reply.expired, reply.is_partial) == (1, tenant != "acme")
        assert (await world.get(jobs[tenant].id)).state is State.CANCELLED
    assert await expire() == ExpireReply(0, is_partial=False)
    assert await world.get(kept.id) == kept


async def test_a_job_without_an_expiry_never_expires(world: World) -> None:
    """S21: however long it has waited."""
    job = await world.enqueue()
    world.advance(400 * 86_400)
    assert await world.expire() == 0
    assert (await world.claim_one()).job.id == job.id
