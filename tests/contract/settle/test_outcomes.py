"""What the end of an attempt makes of its job: settlements, as a store applies them (S26-S29, S32, S33)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane.model.failure import BUILT_IN, RETRIED, ErrorClass
from fairlane.model.instants import DAY, HOUR, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Because, State
from fairlane.model.retry.backoff import Backoff
from fairlane.model.retry.decision import MAX_SNOOZES, Snoozed, Unknown, decide_settlement, interpret
from fairlane.model.retry.outcome import Cancel, Fail, Retry, Skip, Snooze
from fairlane.model.review import ReviewRecord
from fairlane.model.scheduling.priority import sort_key
from fairlane.store.contract.dead import DeadRequest
from fairlane.store.contract.jobs import TallyRequest
from tests.contract.world import ALL, CANCELLED, HANDED_BACK, SNOOZED, World, failed, ruined, stored

RETRIED_CLASSES = sorted(RETRIED)
OTHER_CLASSES = sorted(set(ErrorClass) - RETRIED)
MICRO = 0.000001


async def run_next(world: World, ending: Any) -> tuple[JobRecord, int]:
    """Run the one job at the very microsecond it is due; return it and the delay until it is due again."""
    job = (await world.find_all())[0]
    wait = max(0, job.run_at - world.now)
    if wait:
        world.advance(wait / SECOND - MICRO)
        assert await world.claim(1) == []
        world.advance(MICRO)
    after = await world.run(ending)
    return after, after.run_at - world.now


# ── retries ──────────────────────────────────────────────────────────────────


async def test_each_failure_waits_as_long_as_its_verdict_says(world: World) -> None:
    """S26: doubling from a second; due to the microsecond, ordered by that time and the priority."""
    await world.enqueue(priority=7, max_attempts=9)
    for seconds in (1, 2, 4, 8):
        job, delay = await run_next(world, failed())
        assert (job.state, delay) == (State.DELAYED, seconds * SECOND)
        assert job.sort_key == sort_key(job.run_at, 7)
        assert job.because == "retry: retryable: boom"


async def test_a_list_of_delays_is_followed_and_its_last_repeats(world: World) -> None:
    """S26: to odd fractions of a second."""
    await world.enqueue(max_attempts=9)
    delays = []
    for _ in range(4):
        claim = await world.claim_one()
        verdict = decide_settlement(claim, failed(), Backoff.delays(10, 0.000007, 60), draw=0.5)
        await world.settle_reply(verdict)
        delays.append((await world.get(claim.job.id)).run_at - world.now)
        world.advance(3600)
    assert delays == [10 * SECOND, 7, 60 * SECOND, 60 * SECOND]


async def test_a_delay_of_nothing_is_due_at_once(world: World) -> None:
    """S26: delayed because of the retry, and claimable in the same instant."""
    job = await world.enqueue()
    claim = await world.claim_one()
    assert await world.settle(claim, failed(after=0)) is State.DELAYED
    assert (await world.claim_one()).job.id == job.id


@pytest.mark.parametrize(("after", "delay"), [(90, 90 * SECOND), (0.25, SECOND // 4), (10**9, DAY)])
async def test_what_the_handler_asks_for_replaces_the_backoff(world: World, after: float, delay: int) -> None:
    """S26, S28: `Retry(after=)`, bounded to 24 hours; a failure all the same."""
    await world.enqueue()
    job, waits = await run_next(world, interpret(Retry("busy", after=after), None, ()))
    assert (job.state, job.failures, waits) == (State.DELAYED, 1, delay)


async def test_a_snooze_keeps_the_position_in_the_backoff(world: World) -> None:
    """S26, S29: the delay after it is the next one, neither the first nor the one after."""
    await world.enqueue(max_attempts=9)
    endings = (failed(), SNOOZED, HANDED_BACK, failed(), SNOOZED, failed())
    delays = [(await run_next(world, ending))[1] / SECOND for ending in endings]
    # Handed back it is due when it was.
    assert delays == [1, 60, 0, 2, 60, 4]


# ── classes ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error_class", RETRIED_CLASSES)
async def test_a_failure_of_a_retried_class_comes_back(world: World, error_class: ErrorClass) -> None:
    """S27: with its class in the reason and in the history, and no dead letter."""
    await world.enqueue()
    job = await world.run(failed(error_class))
    assert (job.state, job.because) == (State.DELAYED, f"retry: {error_class}: boom")
    assert [one.failure for one in job.attempts] == [stored(failed(error_class))]
    assert await world.letter(job.id) is None


@pytest.mark.parametrize("error_class", OTHER_CLASSES)
async def test_a_failure_of_any_other_class_is_dead_at_once(world: World, error_class: ErrorClass) -> None:
    """S27: whatever attempts are left, and the dead letter carries the class."""
    await world.enqueue(max_attempts=9)
    job = await world.run(failed(error_class))
    word = "stuck" if error_class is ErrorClass.STUCK else "failed"
    assert (job.state, job.because, job.failures) == (State.DEAD, f"{word}: boom", 1)
    letter = await world.letter(job.id)
    assert letter is not None
    assert (letter.error_class, letter.job, letter.review) == (error_class, job, ReviewRecord())
    page = await world.store.dead.find(DeadRequest(scope=ALL, error_class=error_class))
    assert [one.job.id for one in page.letters] == [job.id]


async def test_a_dead_letter_has_the_class_of_its_last_failure(world: World) -> None:
    """S27: exhausted by one kind of failure after others of another kind."""
    await world.enqueue(max_attempts=2)
    await run_next(world, failed(ErrorClass.RATE_LIMITED))
    job, _ = await run_next(world, failed(ErrorClass.TIMEOUT, "too slow"))
    letter = await world.letter(job.id)
    assert letter is not None
    assert (job.because, letter.error_class) == ("exhausted: too slow", ErrorClass.TIMEOUT)


# ── outcomes ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raised", "state", "because", "failures"),
    [
        (Retry("busy"), State.DELAYED, "retry: retryable: busy", 1),
        (Snooze(90, "not yet"), State.DELAYED, "snooze: not yet", 0),
        (Snooze(90), State.DELAYED, "snooze", 0),
        (Fail("no such number"), State.DEAD, "failed: no such number", 1),
        (Cancel("the order is gone"), State.CANCELLED, "chosen: the order is gone", 0),
        (Cancel(), State.CANCELLED, "chosen", 0),
        (Skip("the order is gone"), State.CANCELLED, "skipped: the order is gone", 0),
        (Skip(), State.CANCELLED, "skipped", 0),
        (KeyError("x"), State.DELAYED, "retry: retryable: 'x'", 1),
        (ConnectionResetError("gone"), State.DELAYED, "retry: transient: gone", 1),
        (SystemExit(3), State.DELAYED, "retry: retryable: 3", 1),
        (KeyboardInterrupt(), State.DELAYED, "retry: retryable: ", 1),
    ],
)
async def test_what_a_handler_says_decides(
    world: World, raised: BaseException, state: State, because: str, failures: int
) -> None:
    """S28: raised or returned; `Fail` and `Cancel` regardless of the attempts that are left."""
    await world.enqueue(max_attempts=9)
    job = await world.run(interpret(raised, None, [BUILT_IN]))
    assert (job.state, job.failures) == (state, failures)
    assert str(job.because).startswith(because)
    assert (await world.letter(job.id) is not None) is (state is State.DEAD)


async def test_a_skipped_job_ends_without_a_failure_and_frees_its_key(world: World) -> None:
    """S28: it is history, also on its last attempt, is counted by its own word, and frees its key."""
    await world.enqueue(max_attempts=1, dedup_key="invoice 7")
    job = await world.run(interpret(Skip("deleted"), None, []))
    assert (job.state, job.because, job.failures) == (State.CANCELLED, "skipped: deleted", 0)
    assert [(one.outcome, one.failure) for one in job.attempts] == [("cancelled", None)]
    assert await world.letter(job.id) is None
    page = await world.store.jobs.tally(TallyRequest(scope=ALL))
    assert [(one.state, one.reason, one.jobs) for one in page.tallies] == [(State.CANCELLED, "skipped", 1)]
    again = await world.enqueue(dedup_key="invoice 7")
    assert again.id != job.id


async def test_a_cancel_that_was_asked_for_overrules_a_skip(world: World) -> None:
    """S30: the reason of whoever asked remains."""
    job = await world.enqueue()
    claim = await world.claim_one()
    await world.cancel(job.id, reason="ordered twice")
    await world.settle(claim, interpret(Skip("deleted"), None, []))
    assert (await world.get(job.id)).because == "asked: ordered twice"


async def test_a_chosen_cancel_leaves_no_dead_letter_and_no_result(world: World) -> None:
    """S28: it is history, as the attempt is."""
    await world.enqueue(max_attempts=1)
    job = await world.run(CANCELLED)
    assert (job.state, job.result, job.settled_at) == (State.CANCELLED, None, world.now)
    assert [(one.outcome, one.failure) for one in job.attempts] == [("cancelled", None)]
    assert await world.letter(job.id) is None


@pytest.mark.parametrize("delay", [SECOND, 60 * SECOND + 1, 30 * DAY])
async def test_a_snoozed_job_comes_back_at_its_time(world: World, delay: int) -> None:
    """S29: to the microsecond, from a second to thirty days; nothing but that and the counts differ."""
    before = await world.enqueue(priority=5)
    job = await world.run(Snoozed(delay))
    assert (job.state, job.because, job.run_at) == (State.DELAYED, "snooze", world.now + delay)
    assert (await world.claim_reply()).next_due_at == job.run_at
    world.advance((delay - 1) / SECOND)
    assert await world.claim(1) == []
    world.advance(MICRO)
    claim = await world.claim_one()
    assert (claim.job.attempt, claim.job.snoozes, claim.job.failures) == (2, 1, 0)
    assert (claim.job.enqueued_at, claim.job.payload) == (before.enqueued_at, before.payload)


async def test_too_many_snoozes_make_a_job_dead(world: World) -> None:
    """S29: the thousandth is the last; one more and the job is a dead letter that says so."""
    await world.enqueue(max_attempts=1)
    claim = await world.claim_one()
    almost = msgspec.structs.replace(world.verdict(claim, SNOOZED), snoozes=MAX_SNOOZES - 1)
    await world.settle_reply(almost)
    job, _ = await run_next(world, SNOOZED)
    assert (job.state, job.snoozes) == (State.DELAYED, MAX_SNOOZES)
    job, _ = await run_next(world, SNOOZED)
    assert (job.state, job.snoozes, job.failures) == (State.DEAD, MAX_SNOOZES + 1, 0)
    assert job.because == "exhausted: snoozed more than 1000 times"
    letter = await world.letter(job.id)
    assert letter is not None
    assert letter.error_class is None


async def test_a_job_that_a_breaker_sent_away_says_so(world: World) -> None:
    """S29, S24: delayed like a snooze, counted as nothing but an attempt."""
    await world.enqueue()
    job = await world.run(Snoozed(90 * SECOND, "mail", Because.BREAKER))
    assert (job.state, job.because, job.snoozes) == (State.DELAYED, "breaker: mail", 0)
    assert job.run_at == world.now + 90 * SECOND


# ── hand back ────────────────────────────────────────────────────────────────


async def test_a_job_that_is_handed_back_keeps_its_place(world: World) -> None:
    """S32: untouched but for the attempt that is over, and first in line again."""
    first, second = await world.enqueue_many(2)
    world.advance(30)
    claim = await world.claim_one()
    world.advance(1)
    assert await world.settle(claim, HANDED_BACK) is State.READY
    job = await world.get(first.id)
    assert job == msgspec.structs.replace(first, attempt=1, fence=claim.fence, attempts=job.attempts)
    assert [(one.outcome, one.failure) for one in job.attempts] == [("returned", None)]
    assert [claim.job.id for claim in await world.claim(2)] == [first.id, second.id]


async def test_a_retry_that_is_handed_back_keeps_the_place_of_the_retry(world: World) -> None:
    """S32: when it was due, not when it was enqueued, and not now."""
    await world.enqueue()
    await world.run(failed())
    world.advance(1)
    due, between = world.now, await world.enqueue()
    world.advance(5)
    job = await world.run(HANDED_BACK)
    assert (job.state, job.run_at, job.sort_key, job.failures) == (State.READY, due, due, 1)
    assert [claim.job.id for claim in await world.claim(2)] == [job.id, between.id]


async def test_all_claims_of_a_worker_go_back_in_one_call(world: World) -> None:
    """S32: in the order they had, between those that were not claimed."""
    jobs = await world.enqueue_many(4)
    claims = await world.claim(3)
    await world.settle_reply(*(world.verdict(claim, HANDED_BACK) for claim in reversed(claims)))
    assert (await world.states()) == {State.READY: 4}
    assert [claim.job.id for claim in await world.claim(4)] == [job.id for job in jobs]


# ── unknown and undecodable ──────────────────────────────────────────────────


async def test_an_unknown_task_waits_longer_each_time(world: World) -> None:
    """S33: five seconds doubling to sixty; no failure is counted, and the reason is shown."""
    await world.enqueue(max_attempts=1)
    for seconds in (5, 10, 20, 40, 60, 60):
        job, delay = await run_next(world, Unknown())
        assert (job.state, job.because, delay) == (State.DELAYED, "unknown_task", seconds * SECOND)
        assert (job.failures, job.snoozes, job.attempts[-1].outcome) == (0, 0, "returned")


async def test_a_task_that_another_worker_knows_waits_no_longer_each_time(world: World) -> None:
    """S33: it will meet that one."""
    await world.enqueue()
    for _ in range(3):
        job, delay = await run_next(world, Unknown(is_known_elsewhere=True))
        assert (job.state, delay, job.failures) == (State.DELAYED, 5 * SECOND, 0)


async def test_a_worker_that_knows_the_task_begins_the_waiting_anew(world: World) -> None:
    """S33: the doubling counts those in a row."""
    await world.enqueue()
    endings = (Unknown(), Unknown(), failed(), Unknown())
    delays = [(await run_next(world, ending))[1] / SECOND for ending in endings]
    assert delays == [5, 10, 1, 5]


async def test_a_task_that_nobody_has_known_for_an_hour_makes_its_job_dead(world: World) -> None:
    """S33: class `unknown_task`."""
    await world.enqueue()
    assert (await run_next(world, Unknown(HOUR - 1)))[0].state is State.DELAYED
    job, _ = await run_next(world, Unknown(HOUR))
    letter = await world.letter(job.id)
    assert letter is not None
    assert (letter.error_class, job.because) == (ErrorClass.UNKNOWN_TASK, "failed: no worker knows task noop")


async def test_a_version_that_the_worker_does_not_know_waits_like_an_unknown_task(world: World) -> None:
    """S33: delayed, longer each time, whatever attempts are left; no failure is counted."""
    await world.enqueue(version=2, max_attempts=1)
    for seconds in (5, 10, 20, 40, 60, 60):
        job, delay = await run_next(world, Unknown(newest=1))
        assert (job.state, delay) == (State.DELAYED, seconds * SECOND)
        assert job.because == "unknown_version: it is of version 2, and the worker knows 1"
        assert (job.failures, job.snoozes, job.attempts[-1].outcome) == (0, 0, "returned")
    assert (await run_next(world, Unknown()))[1] == 60 * SECOND


async def test_a_version_that_nobody_has_known_for_an_hour_makes_its_job_dead(world: World) -> None:
    """S33: class `unknown_task`; the message names the version."""
    await world.enqueue(version=3)
    assert (await run_next(world, Unknown(HOUR - 1, newest=2)))[0].state is State.DELAYED
    job, _ = await run_next(world, Unknown(HOUR, newest=2))
    letter = await world.letter(job.id)
    assert letter is not None
    assert letter.error_class is ErrorClass.UNKNOWN_TASK
    assert job.because == "failed: no worker knows version 3 of task noop"


async def test_an_undecodable_payload_is_dead_with_its_bytes_and_its_neighbours_go_on(world: World) -> None:
    """S33: at once, whatever attempts are left; the jobs of the same call settle as they would."""
    rotten = b'{"v":1,"arguments":\x00\xff\xfe'
    await world.send(world.new(payload=rotten, checksum=1), world.new(), world.new())
    bad, good, slow = await world.claim(3)
    reply = await world.settle_reply(
        world.verdict(bad, ruined(ErrorClass.UNDECODABLE)), world.verdict(good), world.verdict(slow, SNOOZED)
    )
    states = {one.id: one.state for one in reply.settled}
    assert states == {bad.job.id: State.DEAD, good.job.id: State.SUCCEEDED, slow.job.id: State.DELAYED}
    letter = await world.letter(bad.job.id)
    assert letter is not None
    assert (letter.job.payload, letter.job.checksum) == (rotten, 1)
    assert letter.error_class is ErrorClass.UNDECODABLE
