"""Stop a job: at once while it waits, by asking while it runs (S30)."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.lifecycle.states import FINISHED, WAITING, Because, CancelReply, State, because
from fairlane.model.retry.decision import Succeeded, Unknown
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import WorkerRequest
from tests.contract.world import ALL, CANCELLED, HANDED_BACK, SNOOZED, World, failed, ruined


async def asked(world: World, worker: str = "w1", scope: Scope = ALL) -> set[UUID]:
    """Name the running jobs of a worker that are asked to stop."""
    return set(await world.store.claims.cancel_asked(WorkerRequest(scope=scope, worker=worker)))


@pytest.mark.parametrize("state", sorted(WAITING))
async def test_a_waiting_job_is_cancelled_at_once(world: World, state: State) -> None:
    """S30: with the reason, without a dead letter; nothing else about it changes."""
    claim = await world.bring_to(state)
    before = await world.get(claim.job.id)
    now = world.advance(1)
    assert await world.cancel(before.id, reason="ordered twice") == {before.id: CancelReply.CANCELLED}
    expected = {"state": State.CANCELLED, "because": "asked: ordered twice", "settled_at": now}
    assert await world.get(before.id) == msgspec.structs.replace(before, **expected)
    assert await world.letter(before.id) is None
    world.advance(600)
    assert ((await world.promote()).promoted, await world.claim(1)) == (0, [])


async def test_a_job_that_was_never_claimed_is_cancelled_at_once(world: World) -> None:
    """S30: its number of attempts stays zero, and an empty reason leaves the bare word."""
    job = await world.enqueue()
    await world.cancel(job.id)
    after = await world.get(job.id)
    assert (after.state, after.because, after.attempt, after.attempts) == (State.CANCELLED, "asked", 0, ())


async def test_a_running_job_is_asked_and_goes_on(world: World) -> None:
    """S30: a flag and the reason, nothing more; its claim is as good as before."""
    claim = await world.bring_to(State.RUNNING)
    world.advance(1)
    assert await world.cancel(claim.job.id, reason="ordered twice") == {claim.job.id: CancelReply.REQUESTED}
    flagged = msgspec.structs.replace(claim.job, is_cancel_asked=True, because="asked: ordered twice")
    assert await world.get(claim.job.id) == flagged
    assert await world.claim(1) == []


@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_a_finished_job_stays_as_it_is(world: World, state: State) -> None:
    """S30: the reply says so."""
    claim = await world.bring_to(state)
    before = await world.get(claim.job.id)
    world.advance(1)
    assert await world.cancel(before.id, reason="too late") == {before.id: CancelReply.FINISHED}
    assert await world.get(before.id) == before


async def test_asking_twice_keeps_the_first_reason(world: World) -> None:
    """S30: of a running job and of one that is cancelled already."""
    running = await world.bring_to(State.RUNNING)
    waiting = await world.enqueue()
    first = await world.cancel(running.job.id, waiting.id, reason="first")
    records = [await world.get(id) for id in (running.job.id, waiting.id)]
    world.advance(1)
    second = await world.cancel(running.job.id, waiting.id, reason="second")
    assert first == {running.job.id: CancelReply.REQUESTED, waiting.id: CancelReply.CANCELLED}
    assert second == {running.job.id: CancelReply.REQUESTED, waiting.id: CancelReply.FINISHED}
    assert [await world.get(id) for id in (running.job.id, waiting.id)] == records


@pytest.mark.parametrize("reason", ["é🔑" * 400, 'it\'s: 100% "done"\n\tand: more', "x" * 501])
async def test_a_long_or_odd_reason_is_kept_as_the_model_bounds_it(world: World, reason: str) -> None:
    """S30, S23: whichever way the job goes, every store shows the same words."""
    running = await world.bring_to(State.RUNNING)
    waiting = await world.enqueue()
    await world.cancel(running.job.id, waiting.id, reason=reason)
    await world.settle(running, failed())
    expected = because(Because.ASKED, reason)
    assert [(await world.get(id)).because for id in (running.job.id, waiting.id)] == [expected, expected]


async def test_one_call_answers_for_each_job_by_itself(world: World) -> None:
    """S30: jobs in all states together; an unknown id is left out and hinders nobody."""
    ids = {state: (await world.bring_to(state, queue=f"q-{state}")).job.id for state in State}
    reply = await world.cancel(UUID(int=7), *ids.values())
    assert {state: reply.get(id) for state, id in ids.items()} == {
        State.DELAYED: CancelReply.CANCELLED,
        State.READY: CancelReply.CANCELLED,
        State.RUNNING: CancelReply.REQUESTED,
        State.SUCCEEDED: CancelReply.FINISHED,
        State.DEAD: CancelReply.FINISHED,
        State.CANCELLED: CancelReply.FINISHED,
    }
    assert len(reply) == len(ids)


@pytest.mark.parametrize("state", list(State))
async def test_a_foreign_job_answers_like_an_unknown_one(world: World, state: State) -> None:
    """S30, S9: left out of the reply, and not touched."""
    claim = await world.bring_to(state, "globex")
    before = await world.get(claim.job.id)
    assert await world.cancel(before.id, scope=Scope("acme")) == {}
    assert await world.get(before.id) == before
    assert len(await world.cancel(before.id, scope=Scope("globex"))) == 1


async def test_a_job_that_returns_normally_has_succeeded(world: World) -> None:
    """S30: asked or not; with its result, and without a reason."""
    claim = await world.bring_to(State.RUNNING)
    await world.cancel(claim.job.id, reason="too late")
    assert await world.settle(claim, Succeeded(b"1")) is State.SUCCEEDED
    job = await world.get(claim.job.id)
    assert (job.state, job.because, job.result, job.is_cancel_asked) == (State.SUCCEEDED, None, b"1", False)
    assert [one.outcome for one in job.attempts] == ["succeeded"]


@pytest.mark.parametrize(
    ("ending", "failures"),
    [
        (failed(), 1),
        (failed(ErrorClass.TIMEOUT), 1),
        (ruined(), 1),
        (SNOOZED, 0),
        (HANDED_BACK, 0),
        (Unknown(), 0),
        (CANCELLED, 0),
    ],
)
async def test_any_other_end_of_an_asked_job_is_cancelled(world: World, ending: Any, failures: int) -> None:
    """S30: never retried, never dead, for the reason of whoever asked."""
    await world.enqueue(max_attempts=1)
    claim = await world.claim_one()
    await world.cancel(claim.job.id, reason="ordered twice")
    verdict = world.verdict(claim, ending)
    ended = world.advance(1)
    reply = await world.settle_reply(verdict)
    assert [(one.id, one.state) for one in reply.settled] == [(claim.job.id, State.CANCELLED)]
    job = await world.get(claim.job.id)
    assert (job.because, job.settled_at, job.failures) == ("asked: ordered twice", ended, failures)
    assert (job.result, job.is_cancel_asked, job.run_at) == (None, False, claim.job.run_at)
    assert [(one.outcome, one.failure) for one in job.attempts] == [("cancelled", verdict.failure)]
    assert await world.letter(job.id) is None
    world.advance(600)
    assert await world.claim(1) == []


@pytest.mark.parametrize("max_attempts", [1, 5])
async def test_an_asked_job_whose_worker_is_lost_is_cancelled(world: World, max_attempts: int) -> None:
    """S30, S23: nobody is left to obey, and it does not run again to be asked again."""
    await world.enqueue(max_attempts=max_attempts)
    claim = await world.claim_one()
    await world.cancel(claim.job.id, reason="ordered twice")
    assert [one.state for one in (await world.lose()).lost] == [State.CANCELLED]
    job = await world.get(claim.job.id)
    assert (job.because, job.settled_at, job.crashes) == ("asked: ordered twice", world.now, 1)
    assert [one.outcome for one in job.attempts] == ["lost"]
    assert await world.letter(job.id) is None


async def test_a_worker_can_look_up_what_it_is_asked_to_stop(world: World) -> None:
    """S30: its own running jobs with the flag, and no others."""
    jobs = await world.enqueue_many(3)
    mine = await world.claim(2)
    theirs = await world.claim_one(worker="w2")
    assert await asked(world) == set()
    await world.cancel(mine[0].job.id, theirs.job.id)
    assert (await asked(world), await asked(world, "w2")) == ({jobs[0].id}, {jobs[2].id})
    assert await asked(world, "w3") == set()
    await world.settle(mine[0], CANCELLED)
    assert await asked(world) == set()


async def test_looking_up_keeps_to_its_scope(world: World) -> None:
    """S30, S9: another tenant's jobs do not exist."""
    claim = await world.bring_to(State.RUNNING, "acme")
    await world.cancel(claim.job.id)
    assert await asked(world, scope=Scope("globex")) == set()
    assert await asked(world, scope=Scope("acme")) == {claim.job.id}


async def test_a_renewal_tells_the_worker_what_it_is_asked_to_stop(world: World) -> None:
    """S30: and extends the lease of the asked job all the same, each time until it ends."""
    await world.enqueue_many(2)
    first, second = await world.claim(2)
    assert (await world.renew(first, second)).cancel_asked == ()
    await world.cancel(second.job.id)
    for _ in range(2):
        world.advance(4)
        reply = await world.renew(first, second)
        assert (reply.cancel_asked, reply.stale) == ((second.job.id,), ())
        assert (await world.get(second.job.id)).lease_until == reply.lease_until
    await world.settle(second, CANCELLED)
    assert (await world.renew(first)).cancel_asked == ()


async def test_a_later_attempt_begins_without_the_flag(world: World) -> None:
    """S30: what was asked of one job is never asked of another that the worker holds."""
    asked_one = await world.bring_to(State.RUNNING)
    await world.cancel(asked_one.job.id)
    await world.settle(asked_one, failed())
    await world.enqueue()
    claim = await world.claim_one()
    assert (claim.job.is_cancel_asked, await asked(world)) == (False, set())


async def test_a_cancel_at_the_time_of_a_claim_is_obeyed_or_asked(world: World) -> None:
    """S30: the reply tells which; a job that was cancelled is in nobody's hands."""
    jobs = await world.enqueue_many(8)
    claims, replies = await asyncio.gather(
        world.claim(8), asyncio.gather(*(world.cancel(job.id) for job in jobs))
    )
    claimed = {claim.job.id for claim in claims}
    for job, reply in zip(jobs, replies, strict=True):
        wanted = CancelReply.REQUESTED if job.id in claimed else CancelReply.CANCELLED
        assert reply == {job.id: wanted}
    assert await asked(world) == claimed


async def test_a_cancel_at_the_time_of_the_settling_keeps_its_word(world: World) -> None:
    """S30: asked before the failure or cancelled after it, the job does not run again."""
    await world.enqueue_many(6)
    claims = await world.claim(6)
    settles = [world.settle_reply(world.verdict(claim, failed())) for claim in claims]
    cancels = [world.cancel(claim.job.id, reason="stop") for claim in claims]
    _, replies, _ = await asyncio.gather(
        asyncio.gather(*settles[:3]), asyncio.gather(*cancels), asyncio.gather(*settles[3:])
    )
    for claim, reply in zip(claims, replies, strict=True):
        job = await world.get(claim.job.id)
        assert (job.state, job.because) == (State.CANCELLED, "asked: stop")
        assert reply in ({job.id: CancelReply.CANCELLED}, {job.id: CancelReply.REQUESTED})
