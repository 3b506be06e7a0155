"""A claim that is older than it may be is taken back, although its worker reports (S31)."""

from __future__ import annotations

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import PolicyChange, SubjectKind
from fairlane.model.retry.stuck import REQUEUE_DELAY
from fairlane.store.contract.claims import StuckClaim, StuckReply
from tests.contract.world import SUCCEEDED, World, failed

MINUTE = 60 * SECOND


async def _hold(world: World, claim: Claim, seconds: float) -> None:
    """Let time pass while the worker of a claim reports."""
    world.advance(seconds)
    assert (await world.renew(claim)).stale == ()


async def test_a_claim_is_stuck_at_twice_its_timeout_and_not_before(world: World) -> None:
    """S31: dead, with the class, the reason and one attempt."""
    await world.enqueue(timeout=MINUTE)
    claim = await world.claim_one()
    await _hold(world, claim, 119)
    assert await world.take_stuck() == StuckReply()
    world.advance(1)
    job = claim.job
    assert await world.take_stuck() == StuckReply(
        (StuckClaim(job.id, "acme", "default", "noop", "w1", claim.fence, job.started_at or 0, State.DEAD),)
    )
    letter = await world.letter(job.id)
    assert letter is not None
    assert letter.error_class is ErrorClass.STUCK
    assert letter.job.because == ("stuck: exceeded timeout threshold of 120 s: it ran for 120 s on worker w1")
    assert (letter.job.failures, letter.job.crashes, letter.job.is_suspect) == (1, 0, False)
    (attempt,) = letter.job.attempts
    assert (attempt.outcome, attempt.ended_at) == ("failed", world.now)
    assert await world.take_stuck() == StuckReply()


async def test_a_limit_of_its_own_counts_instead_also_without_a_timeout(world: World) -> None:
    """S31: absolute, however long the timeout is."""
    for values in ({"timeout": MINUTE}, {"timeout": None}):
        await world.enqueue(stuck_after=HOUR, **values)
        claim = await world.claim_one()
        await _hold(world, claim, 3_599)
        assert await world.take_stuck() == StuckReply()
        world.advance(1)
        assert [one.id for one in (await world.take_stuck()).stuck] == [claim.job.id]


async def test_a_claim_without_any_limit_is_never_stuck(world: World) -> None:
    """S31: a task without timeout that names no limit has none."""
    await world.enqueue(timeout=None)
    claim = await world.claim_one()
    await _hold(world, claim, 10 * 86_400)
    assert await world.take_stuck() == StuckReply()


async def test_a_lost_claim_is_not_stuck(world: World) -> None:
    """S31, S38: its worker does not report, so it is reclaimed; nobody takes it twice."""
    await world.enqueue(timeout=MINUTE)
    await world.claim_one()
    world.advance(600)
    assert await world.take_stuck() == StuckReply()
    assert len((await world.reclaim()).lost) == 1
    assert await world.take_stuck() == StuckReply()


async def test_the_worker_of_a_stuck_claim_is_told_and_can_change_nothing(world: World) -> None:
    """S36: it hears STALE from its next renewal, and its settlement is refused."""
    await world.enqueue(timeout=MINUTE, on_stuck="requeue")
    claim = await world.claim_one()
    await _hold(world, claim, 120)
    await world.take_stuck()
    assert (await world.renew(claim)).stale == (claim.job.id,)
    assert (await world.settle_reply(world.verdict(claim, SUCCEEDED))).stale == (claim.job.id,)
    assert (await world.get(claim.job.id)).state is State.DELAYED


async def test_a_stuck_job_may_go_back_as_a_failure_and_no_suspect(world: World) -> None:
    """S31: after the time in which its old worker stops it; the next attempt has a higher fence."""
    await world.enqueue(timeout=MINUTE, on_stuck="requeue", max_attempts=2)
    claim = await world.claim_one()
    await _hold(world, claim, 120)
    (stuck,) = (await world.take_stuck()).stuck
    job = await world.get(claim.job.id)
    assert (stuck.state, job.state, job.run_at) == (State.DELAYED, State.DELAYED, world.now + REQUEUE_DELAY)
    assert str(job.because).startswith("retry: stuck: exceeded timeout threshold of 120 s")
    assert (job.failures, job.crashes, job.is_suspect, len(job.attempts)) == (1, 0, False, 1)
    world.advance(15)
    again = await world.claim_one()
    assert again.fence > claim.fence
    await _hold(world, again, 120)
    await world.take_stuck()
    assert str((await world.get(job.id)).because).startswith("exhausted: exceeded timeout threshold")


async def test_what_runs_at_most_once_does_not_go_back(world: World) -> None:
    """S31, S63: its handler may be running still."""
    await world.enqueue(timeout=MINUTE, on_stuck="requeue", at_most_once=True)
    claim = await world.claim_one()
    await _hold(world, claim, 120)
    assert [one.state for one in (await world.take_stuck()).stuck] == [State.DEAD]


async def test_a_stuck_job_that_was_asked_to_cancel_is_cancelled(world: World) -> None:
    """S30, S31: with the reason of whoever asked."""
    await world.enqueue(timeout=MINUTE, on_stuck="requeue")
    claim = await world.claim_one()
    await world.cancel(claim.job.id, reason="ordered twice")
    await _hold(world, claim, 120)
    assert [one.state for one in (await world.take_stuck()).stuck] == [State.CANCELLED]
    assert (await world.get(claim.job.id)).because == "asked: ordered twice"


async def test_a_stuck_job_that_would_come_back_too_late_is_dead(world: World) -> None:
    """S21, S31: its expiry bounds the next start."""
    await world.enqueue(timeout=MINUTE, on_stuck="requeue", expires_in=125 * SECOND)
    claim = await world.claim_one()
    await _hold(world, claim, 120)
    assert [one.state for one in (await world.take_stuck()).stuck] == [State.DEAD]


async def test_the_oldest_claim_goes_first_and_a_pass_is_bounded(world: World) -> None:
    """S31: the rest is taken by the next pass."""
    claims = []
    for _ in range(3):
        await world.enqueue(timeout=MINUTE)
        claims.append(await world.claim_one())
        world.advance(1)
    world.advance(120)
    await world.renew(*claims)
    first = await world.take_stuck(limit=2)
    assert ([one.id for one in first.stuck], first.is_partial) == ([one.job.id for one in claims[:2]], True)
    rest = await world.take_stuck(limit=2)
    assert ([one.id for one in rest.stuck], rest.is_partial) == ([claims[2].job.id], False)


async def test_claims_of_before_a_jump_of_the_clock_are_left_alone(world: World) -> None:
    """S31, S38: how long they have run is not known; those since are judged."""
    await world.enqueue_many(2, timeout=MINUTE)
    old = await world.claim_one()
    world.advance(1)
    new = await world.claim_one()
    world.advance(120)
    await world.renew(old, new)
    reply = await world.take_stuck(started_after=new.job.started_at)
    assert [one.id for one in reply.stuck] == [new.job.id]


async def test_a_stuck_claim_gives_its_places_back(world: World) -> None:
    """S43, S45: the gate and the running limit are free for the next, in the same step."""
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(running=1)))
    await world.enqueue_many(2, timeout=MINUTE)
    claim = await world.claim_one()
    assert await world.claim(1) == []
    await _hold(world, claim, 120)
    await world.take_stuck()
    assert (await world.claim_one()).job.id != claim.job.id


@pytest.mark.parametrize("ending", [SUCCEEDED, failed()], ids=["succeeded", "failed"])
async def test_a_claim_that_was_settled_in_time_is_not_stuck(world: World, ending: object) -> None:
    """S31: however long it took."""
    await world.enqueue(timeout=MINUTE, max_attempts=1)
    claim = await world.claim_one()
    await _hold(world, claim, 500)
    await world.settle(claim, ending)  # type: ignore[arg-type]
    assert await world.take_stuck() == StuckReply()
