"""When a claim may be taken back, and what that makes of its job (S37, S38, S63).

Whether reclaiming rests after an outage stands in `test_outage`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.job import AttemptRecord, Claim, JobRecord, Progress
from fairlane.model.lifecycle.states import CancelReply, State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind
from fairlane.model.retry.decision import lose_lease
from fairlane.store.contract.claims import MAX_RECLAIMED, LostClaim, ReclaimReply, RenewReply
from fairlane.store.contract.upkeep import TenantCounters
from tests.contract.world import MICRO, SUCCEEDED, World, failed


def _lost_once(claim: Claim, now: int) -> JobRecord:
    """What a plain job becomes when its claim is taken back: ready, with one loss on its record."""
    job = claim.job
    assert job.worker is not None
    assert job.started_at is not None
    loss = lose_lease(job)
    attempt = AttemptRecord(job.attempt, job.worker, job.started_at, now, "lost", loss.failure)
    return msgspec.structs.replace(
        job,
        state=State.READY,
        because=None,
        worker=None,
        started_at=None,
        lease_until=None,
        progress=None,
        crashes=job.crashes + 1,
        is_suspect=True,
        attempts=(*job.attempts, attempt),
    )


# ── while the lease runs ─────────────────────────────────────────────────────


@pytest.mark.parametrize("after", [0, 11, 12, 13, 86_400])
async def test_a_settlement_is_accepted_however_late_until_someone_reclaims(world: World, after: int) -> None:
    """S37: the lease decides only when a job may be reclaimed."""
    await world.enqueue()
    claim = await world.claim_one()
    world.advance(after)
    assert await world.settle(claim) is State.SUCCEEDED
    assert (await world.reclaim()).lost == ()


@pytest.mark.parametrize(
    ("after", "lease"), [(1, 12), (11, 12), (12, 12), (3600, 12), (1, 5), (2, 1), (0, 60)], ids=str
)
async def test_a_renewal_leases_from_now_on(world: World, after: int, lease: int) -> None:
    """S37: also a lease that has run out and was not taken back, also for shorter than was left."""
    await world.enqueue()
    claim = await world.claim_one()
    now = world.advance(after)
    until = now + lease * SECOND
    assert await world.renew(claim, lease=lease * SECOND) == RenewReply((), (), until)
    assert await world.get(claim.job.id) == msgspec.structs.replace(claim.job, lease_until=until)
    world.advance(lease - MICRO)
    assert await world.reclaim() == ReclaimReply()
    world.advance(MICRO)
    assert [one.id for one in (await world.reclaim()).lost] == [claim.job.id]


async def test_a_renewal_keeps_the_newest_progress_and_tells_of_a_cancel(world: World) -> None:
    """S37, S62: progress travels with it; a renewal without any leaves the last word standing."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.renew(claim, progress=Progress(0.25, "reading"))
    await world.renew(claim, progress=Progress(0.5, "writing"))
    assert (await world.renew(claim)).cancel_asked == ()
    assert (await world.get(claim.job.id)).progress == Progress(0.5, "writing")
    assert await world.cancel(claim.job.id) == {claim.job.id: CancelReply.REQUESTED}
    assert (await world.renew(claim)).cancel_asked == (claim.job.id,)


# ── what is taken back ───────────────────────────────────────────────────────


async def test_only_claims_whose_lease_has_ended_are_taken_back(world: World) -> None:
    """S38: not a microsecond early, and nothing that waits or is renewed."""
    await world.enqueue_many(4)
    (short,) = await world.claim(1, lease=5 * SECOND)
    (renewed,) = await world.claim(1, lease=5 * SECOND)
    (long,) = await world.claim(1, lease=6 * SECOND)
    world.advance(1)
    await world.renew(renewed)
    world.advance(4 - MICRO)
    assert await world.reclaim() == ReclaimReply()
    now = world.advance(MICRO)
    lost = LostClaim(short.job.id, "acme", "default", "w1", short.fence, State.READY)
    assert await world.reclaim() == ReclaimReply((lost,), is_partial=False)
    assert await world.get(short.job.id) == _lost_once(short, now)
    assert await world.get(long.job.id) == long.job
    assert (await world.states())[State.RUNNING] == 2


async def test_the_oldest_lease_goes_first_and_a_pass_is_bounded(world: World) -> None:
    """S38: `is_partial` says that there were more, and only then."""
    await world.enqueue_many(5)
    claims = [await world.claim_one(lease=seconds * SECOND) for seconds in (3, 5, 1, 4, 2)]
    by_age = [claims[n].job.id for n in (2, 4, 0, 3, 1)]
    world.advance(10)
    first = await world.reclaim(limit=2)
    assert ([one.id for one in first.lost], first.is_partial) == (by_age[:2], True)
    rest = await world.reclaim(limit=3)
    assert ([one.id for one in rest.lost], rest.is_partial) == (by_age[2:], False)
    assert await world.reclaim() == ReclaimReply(is_idle=True)


async def test_a_pass_says_whether_anybody_holds_anything(world: World) -> None:
    """S38: where nobody does, nothing can lapse sooner than a lease from now; what waits is not held."""
    await world.enqueue_many(2)
    await world.enqueue(run_at=world.now + HOUR)
    assert await world.reclaim() == ReclaimReply(is_idle=True)
    first, second = await world.claim(2, lease=HOUR)
    assert await world.reclaim() == ReclaimReply(is_idle=False)
    await world.settle(first)
    assert await world.reclaim() == ReclaimReply(is_idle=False)
    await world.settle(second)
    assert await world.reclaim() == ReclaimReply(is_idle=True)


async def test_a_lease_that_ended_after_the_pulse_was_read_is_left_alone(world: World) -> None:
    """S38: whether its worker could renew since, nobody knows. A bound that lies ahead bounds nothing."""
    await world.enqueue_many(3)
    first, second, third = [await world.claim_one(lease=seconds * SECOND) for seconds in (3, 5, 9)]
    bound = world.advance(5) - 1
    world.advance(60)
    assert await world.reclaim(expired_by=first.lease_until - 1) == ReclaimReply()
    for by, claim in ((bound, first), (bound + 1, second), (world.now + HOUR, third)):
        reply = await world.reclaim(expired_by=by)
        assert ([one.id for one in reply.lost], reply.is_partial) == ([claim.job.id], False)
        assert (await world.get(claim.job.id)).attempts[-1].ended_at == world.now


async def test_a_pass_takes_at_most_five_hundred(world: World) -> None:
    """S38: 501 claims, because the bound itself is the rule."""
    await world.enqueue_many(MAX_RECLAIMED + 1)
    assert len(await world.claim(MAX_RECLAIMED + 1)) == MAX_RECLAIMED + 1
    first = await world.lose()
    assert (len(first.lost), first.is_partial) == (500, True)
    second = await world.reclaim()
    assert (len(second.lost), second.is_partial) == (1, False)


async def test_a_reclaimed_job_keeps_its_place_and_is_a_suspect(world: World) -> None:
    """S38, S39: it runs again before what was enqueued after it."""
    old, *_ = await world.enqueue_many(3)
    claim = await world.claim_one()
    assert claim.job.id == old.id
    await world.enqueue()
    await world.lose()
    assert await world.get(old.id) == _lost_once(claim, world.now)
    again = await world.claim_one(worker="w2")
    assert (again.job.id, again.job.attempt, again.job.is_suspect) == (old.id, 2, True)


async def test_a_reclaim_puts_counts_limits_and_gates_right_in_the_same_step(world: World) -> None:
    """S38, S43, S45: the place of the lost claim can be taken at once."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(running=1)))
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=2))
    await world.put_gate("door", "noop", "other")
    await world.send(
        world.new("acme"), world.new("globex", task="other"), world.new("acme"), world.new("umbra")
    )
    claims = await world.claim(9)
    assert [claim.job.tenant for claim in claims] == ["acme", "globex"]
    await world.lose()
    census = await world.census()
    assert census.gates == ()
    assert census.tenants == (
        TenantCounters("default", "acme", 2, 0),
        TenantCounters("default", "globex", 1, 0),
        TenantCounters("default", "umbra", 1, 0),
    )
    assert len(await world.claim(9)) == 2


@pytest.mark.parametrize(
    ("values", "state", "is_free"),
    [
        ({}, State.READY, False),
        ({"dedup_until": "started"}, State.READY, True),
        ({"max_attempts": 1}, State.READY, False),
        ({"at_most_once": True}, State.DEAD, True),
    ],
    ids=["goes on", "free since its start", "one attempt", "at most once"],
)
async def test_a_reclaim_frees_a_key_if_and_only_if_the_job_ends(
    world: World, values: dict[str, Any], state: State, *, is_free: bool
) -> None:
    """S14, S38: a lost job that runs again still stands for its key."""
    job = await world.enqueue(dedup_key="k", **values)
    await world.claim_one()
    (lost,) = (await world.lose()).lost
    assert lost.state is state
    (answer,) = (await world.send(world.new(dedup_key="k"))).enqueued
    assert (answer.is_created, answer.job.id != job.id) == (is_free, is_free)


async def test_a_lost_attempt_of_what_runs_at_most_once_is_dead(world: World) -> None:
    """S38, S63: a dead letter of class `crash`, and nobody runs it again."""
    await world.enqueue(at_most_once=True)
    claim = await world.claim_one()
    (lost,) = (await world.lose()).lost
    job = await world.get(claim.job.id)
    assert (lost.state, job.state, job.settled_at) == (State.DEAD, State.DEAD, world.now)
    assert job.because == "lost: the task runs at most once"
    letter = await world.letter(job.id)
    assert letter is not None
    assert (letter.job, letter.error_class) == (job, ErrorClass.CRASH)
    world.advance(3600)
    assert await world.claim(5) == []


async def test_a_lost_lease_costs_no_attempt(world: World) -> None:
    """S24, S25: only failures are compared with `max_attempts`, and nobody has seen this job fail."""
    await world.enqueue(max_attempts=1)
    claim = await world.claim_one()
    await world.lose()
    job = await world.get(claim.job.id)
    assert (job.state, job.failures, job.crashes, job.attempt) == (State.READY, 0, 1, 1)
    assert (await world.run(failed())).state is State.DEAD


async def test_an_orderly_retry_is_no_lost_attempt(world: World) -> None:
    """S63: `at_most_once` bounds repetition after a loss; a failure that was reported may be retried."""
    await world.enqueue(at_most_once=True)
    assert (await world.run(failed())).state is State.DELAYED


async def test_a_lost_job_that_was_asked_to_cancel_is_cancelled(world: World) -> None:
    """S23, S30, S38: with the reason of whoever asked, and without another attempt."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.cancel(claim.job.id, reason="ordered twice")
    (lost,) = (await world.lose()).lost
    job = await world.get(claim.job.id)
    assert (lost.state, job.state, job.because) == (State.CANCELLED, State.CANCELLED, "asked: ordered twice")
    assert (job.attempts[0].outcome, job.failures, job.settled_at) == ("lost", 0, world.now)


# ── the worker that comes back ───────────────────────────────────────────────


@pytest.mark.parametrize("is_claimed_again", [False, True], ids=["ready again", "running elsewhere"])
async def test_a_worker_that_comes_back_after_a_reclaim_changes_nothing(
    world: World, *, is_claimed_again: bool
) -> None:
    """S37, S63: its renewals and settlements are stale, whoever has the job now, itself included."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.lose()
    if is_claimed_again:
        await world.claim_one()
    before = await world.sight()
    assert (await world.renew(claim)).stale == (claim.job.id,)
    for ending in (SUCCEEDED, failed()):
        reply = await world.settle_reply(world.verdict(claim, ending))
        assert (reply.settled, reply.stale) == ((), (claim.job.id,))
    assert await world.sight() == before


async def test_concurrent_reclaimers_take_each_claim_once(world: World) -> None:
    """S38, S61: correctness does not depend on there being one."""
    await world.enqueue_many(12)
    claims = await world.claim(12)
    world.advance(12)
    replies = await asyncio.gather(*(world.reclaim(limit=5) for _ in range(4)))
    rest = await world.reclaim()
    lost = [one.id for reply in (*replies, rest) for one in reply.lost]
    assert sorted(lost) == sorted(claim.job.id for claim in claims)
    assert {job.crashes for job in await world.find_all()} == {1}


# ── clocks ───────────────────────────────────────────────────────────────────


async def test_a_lease_of_a_clock_that_was_back_for_a_while_is_over_like_any_other(world: World) -> None:
    """S38: it ends long before what the last pass has seen, and no pass noticed that the clock was back."""
    await world.enqueue()
    for _ in range(3):
        world.advance(20)
        await world.reclaim()
    world.advance(-60)
    claim = await world.claim_one()
    world.advance(60)
    assert [lost.id for lost in (await world.reclaim()).lost] == [claim.job.id]
