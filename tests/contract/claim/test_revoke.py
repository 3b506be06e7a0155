"""An operator ends the claim of a job by hand: it fails, is dead, or goes back (S72)."""

from __future__ import annotations

import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.fingerprint import marked
from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.model.job import AttemptRecord
from fairlane.model.journal.facts import deaths
from fairlane.model.journal.operations import job_entry
from fairlane.model.lifecycle.states import FINISHED, WAITING, State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, PolicyChange, SubjectKind
from fairlane.model.retry.revoke import RevokeHow
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import RevokedJob
from tests.contract.world import OPERATION, SUCCEEDED, World

HOWS: tuple[RevokeHow, ...] = ("retry", "dead", "return")


async def test_a_failed_job_is_delayed_and_has_one_failure_more(world: World) -> None:
    """S72, S24, S26: after the delay that the caller names; the attempt says why."""
    await world.enqueue(max_attempts=2)
    claim = await world.claim_one()
    world.advance(3)
    assert await world.revoke(claim.job.id, how="retry", delay=MINUTE) == (
        RevokedJob(claim.job.id, "revoked", State.DELAYED),
    )
    job = await world.get(claim.job.id)
    failure = marked("noop", Failure(ErrorClass.RETRYABLE, "FailedByHand", "by hand"))
    started_at = world.now - 3 * SECOND
    assert job.attempts == (AttemptRecord(1, "w1", started_at, world.now, "failed", failure),)
    assert (job.state, job.because) == (State.DELAYED, "retry: retryable: by hand")
    assert (job.run_at, job.worker, job.failures, job.crashes) == (world.now + MINUTE, None, 1, 0)
    world.advance(60)
    again = await world.claim_one()
    assert (again.job.id, again.job.attempt) == (job.id, 2)
    assert again.fence > claim.fence


async def test_a_failed_job_on_its_last_attempt_is_dead(world: World) -> None:
    """S72, S25: by the attempts, or by an expiry before the next one, however it was meant."""
    await world.enqueue(max_attempts=1)
    await world.enqueue(expires_in=HOUR)
    first, second = await world.claim(2)
    replies = await world.revoke(first.job.id, second.job.id, how="retry", delay=HOUR)
    assert [one.state for one in replies] == [State.DEAD, State.DEAD]
    assert (await world.get(first.job.id)).because == "exhausted: by hand"
    assert (await world.get(second.job.id)).because == "expired: the next attempt would be too late"


async def test_a_failed_job_that_is_not_tried_again_is_a_dead_letter(world: World) -> None:
    """S72, S27: because `failed`, class non_retryable, whatever attempts are left."""
    await world.enqueue(max_attempts=9)
    claim = await world.claim_one()
    (reply,) = await world.revoke(claim.job.id, how="dead")
    letter = await world.letter(claim.job.id)
    assert letter is not None
    assert (reply.state, letter.job.because) == (State.DEAD, "failed: by hand")
    assert (letter.error_class, letter.job.failures) == (ErrorClass.NON_RETRYABLE, 1)
    (attempt,) = letter.job.attempts
    assert attempt.failure == marked("noop", Failure(ErrorClass.NON_RETRYABLE, "FailedByHand", "by hand"))
    assert letter.job.settled_at == world.now


async def test_a_job_that_is_taken_back_keeps_its_place_and_its_failures(world: World) -> None:
    """S72, S24: ready again before those behind it; the attempt is recorded as returned, with the reason."""
    first = await world.enqueue()
    await world.enqueue()
    claim = await world.claim_one()
    world.advance(5)
    assert await world.revoke(first.id, how="return") == (RevokedJob(first.id, "revoked", State.READY),)
    job = await world.get(first.id)
    assert (job.state, job.because, job.sort_key) == (State.READY, None, first.sort_key)
    assert (job.attempt, job.failures, job.crashes, job.is_suspect) == (1, 0, 0, False)
    (attempt,) = job.attempts
    assert (attempt.outcome, attempt.ended_at) == ("returned", world.now)
    assert attempt.failure == Failure(ErrorClass.RETRYABLE, "TakenBack", "by hand")
    again = await world.claim_one()
    assert (again.job.id, again.fence > claim.fence) == (first.id, True)


@pytest.mark.parametrize("how", HOWS)
async def test_the_worker_of_a_revoked_claim_is_told_and_can_change_nothing(
    world: World, how: RevokeHow
) -> None:
    """S72, S36: it hears STALE from its next renewal, and its settlement is refused."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.revoke(claim.job.id, how=how, delay=MINUTE)
    before = await world.get(claim.job.id)
    assert (await world.renew(claim)).stale == (claim.job.id,)
    assert (await world.settle_reply(world.verdict(claim, SUCCEEDED))).stale == (claim.job.id,)
    assert await world.get(claim.job.id) == before


@pytest.mark.parametrize("state", sorted(FINISHED | WAITING))
@pytest.mark.parametrize("how", HOWS)
async def test_only_what_runs_is_revoked(world: World, state: State, how: RevokeHow) -> None:
    """S72: any other job stays as it is, but a waiting one is condemned by `dead`."""
    id = (await world.bring_to(state)).job.id
    before = await world.get(id)
    (reply,) = await world.revoke(id, how=how)
    if state in WAITING and how == "dead":
        assert reply == RevokedJob(id, "revoked", State.DEAD)
        after = await world.get(id)
        assert (after.because, after.failures, after.attempts) == (
            "condemned: by hand",
            before.failures,
            before.attempts,
        )
    else:
        assert reply == RevokedJob(id, "not_running", state)
        assert await world.get(id) == before


async def test_what_runs_at_most_once_can_only_be_made_dead(world: World) -> None:
    """S72, S63: its handler may be running still."""
    await world.enqueue(at_most_once=True)
    claim = await world.claim_one()
    before = await world.get(claim.job.id)
    refused = RevokedJob(claim.job.id, "at_most_once", State.RUNNING)
    assert await world.revoke(claim.job.id, how="retry") == (refused,)
    assert await world.revoke(claim.job.id, how="return") == (refused,)
    assert await world.get(claim.job.id) == before
    assert (await world.renew(claim)).stale == ()
    (reply,) = await world.revoke(claim.job.id, how="dead")
    assert reply.state is State.DEAD


@pytest.mark.parametrize("how", HOWS)
async def test_a_cancel_that_was_asked_for_wins(world: World, how: RevokeHow) -> None:
    """S72, S30: with the reason of whoever asked for it; no failure becomes a retry or a dead letter."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.cancel(claim.job.id, reason="ordered twice")
    (reply,) = await world.revoke(claim.job.id, how=how)
    job = await world.get(claim.job.id)
    assert (reply.state, job.state, job.because) == (State.CANCELLED, State.CANCELLED, "asked: ordered twice")
    assert job.attempts[0].outcome == "cancelled"


@pytest.mark.parametrize("how", HOWS[::2])
async def test_a_revoked_claim_makes_no_suspect_and_clears_none(world: World, how: RevokeHow) -> None:
    """S72, S39: the operator knows nothing of the worker's death."""
    for loses in (False, True):
        job = await world.enqueue()
        claim = await world.claim_one()
        if loses:
            await world.lose()
            claim = await world.claim_one()
        await world.revoke(claim.job.id, how=how, delay=HOUR)
        after = await world.get(job.id)
        assert (after.is_suspect, after.crashes) == (loses, int(loses))
        await world.condemn(job.id)


async def test_a_revoked_claim_gives_its_places_back(world: World) -> None:
    """S72, S43, S45: gate, running limit and de-duplication key are put right in the same step."""
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(running=1)))
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    await world.enqueue(task="gated", dedup_key="k", max_attempts=1)
    await world.enqueue(task="gated")
    claim = await world.claim_one()
    assert await world.claim(1) == []
    await world.revoke(claim.job.id, how="retry")
    assert (await world.enqueue(task="gated", dedup_key="k")).id != claim.job.id
    assert (await world.claim_one()).job.id != claim.job.id


async def test_each_job_of_a_request_has_its_own_answer(world: World) -> None:
    """S72: in the order asked, each once; ids that are not found are left out."""
    await world.enqueue_many(2)
    first, second = await world.claim(2)
    waiting = await world.enqueue()
    unknown = world.new().id
    ids = (second.job.id, unknown, waiting.id, first.job.id, second.job.id)
    assert await world.revoke(*ids, how="return") == (
        RevokedJob(second.job.id, "revoked", State.READY),
        RevokedJob(waiting.id, "not_running", State.READY),
        RevokedJob(first.job.id, "revoked", State.READY),
    )
    assert await world.revoke(how="return") == ()


@pytest.mark.parametrize("how", HOWS)
async def test_another_tenants_job_is_not_found(world: World, how: RevokeHow) -> None:
    """S72, S9: a foreign id answers like an unknown one, and its job runs on."""
    await world.enqueue("acme")
    claim = await world.claim_one()
    assert await world.revoke(claim.job.id, how=how, scope=Scope("globex")) == ()
    assert (await world.renew(claim)).stale == ()
    (reply,) = await world.revoke(claim.job.id, how=how, scope=Scope("acme"))
    assert reply.answer == "revoked"


@pytest.mark.parametrize("how", HOWS)
async def test_a_claim_whose_lease_has_ended_can_be_revoked(world: World, how: RevokeHow) -> None:
    """S72, S37: until somebody has reclaimed it; nobody takes it twice."""
    await world.enqueue()
    claim = await world.claim_one()
    world.advance(600)
    (reply,) = await world.revoke(claim.job.id, how=how, delay=HOUR)
    assert reply.answer == "revoked"
    assert (await world.reclaim()).lost == ()


@pytest.mark.parametrize("how", HOWS)
async def test_a_revocation_is_an_entry_of_the_audit(world: World, how: RevokeHow) -> None:
    """S60, S72: one for each job that it changed, with its state before and after; none for the others."""
    ended = await world.bring_to(State.SUCCEEDED, queue="own")
    await world.enqueue()
    claim = await world.claim_one()
    await world.revoke(ended.job.id, claim.job.id, how=how, operation=OPERATION)
    after = await world.get(claim.job.id)
    assert await world.appended("audit") == [job_entry(OPERATION, claim.job, after)]
    seen = await world.sight()
    await world.revoke(ended.job.id, how=how, operation=OPERATION)
    assert await world.sight() == seen


@pytest.mark.parametrize("is_running", [True, False])
async def test_a_death_by_hand_is_an_event(world: World, is_running: bool) -> None:
    """S72, S75, S76: as any other death; the failure of a running job has a fingerprint."""
    job = await world.enqueue()
    if is_running:
        await world.claim_one()
    await world.revoke(job.id, how="dead")
    letter = await world.letter(job.id)
    assert letter is not None
    assert (letter.fingerprint != "") is is_running
    assert await world.appended("events") == list(deaths([letter.job]))
