"""What is counted, what is remembered of attempts, and when it is enough (S24, S25)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.fingerprint import marked
from fairlane.model.instants import SECOND
from fairlane.model.job import ATTEMPTS_KEPT, AttemptRecord, JobRecord
from fairlane.model.lifecycle.states import Because, State
from fairlane.model.retry.decision import MAX_LOSSES, Snoozed, Succeeded, Unknown
from tests.contract.world import CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, World, failed, ruined

LOST = "lost"
"""In place of an ending: the worker was never heard of again."""

BREAKER = Snoozed(60 * SECOND, "mail is down", Because.BREAKER)


async def end(world: World, ending: Any) -> JobRecord:
    """Claim the one job as soon as it is due and end the attempt so, or lose it."""
    world.advance(600)
    if ending is not LOST:
        return await world.run(ending)
    claim = await world.claim_one()
    await world.lose()
    return await world.get(claim.job.id)


def counted(job: JobRecord) -> tuple[int, int, int, int]:
    """Return all counters of a job."""
    return job.attempt, job.failures, job.crashes, job.snoozes


@pytest.mark.parametrize(
    ("ending", "outcome", "counters"),
    [
        (SUCCEEDED, "succeeded", (1, 0, 0, 0)),
        (failed(), "failed", (1, 1, 0, 0)),
        (failed(ErrorClass.TIMEOUT), "failed", (1, 1, 0, 0)),
        (failed(ErrorClass.CRASH), "failed", (1, 1, 1, 0)),
        (ruined(), "failed", (1, 1, 0, 0)),
        (LOST, "lost", (1, 0, 1, 0)),
        (SNOOZED, "snoozed", (1, 0, 0, 1)),
        (BREAKER, "snoozed", (1, 0, 0, 0)),
        (HANDED_BACK, "returned", (1, 0, 0, 0)),
        (Unknown(), "returned", (1, 0, 0, 0)),
        (CANCELLED, "cancelled", (1, 0, 0, 0)),
    ],
)
async def test_each_ending_counts_what_it_is(
    world: World, ending: Any, outcome: str, counters: tuple[int, int, int, int]
) -> None:
    """S24: failed and timed out ones are failures; lost, snoozed, returned and held-off ones are not."""
    await world.enqueue()
    job = await end(world, ending)
    assert (counted(job), [one.outcome for one in job.attempts]) == (counters, [outcome])


async def test_counters_add_up_over_the_life_of_a_job(world: World) -> None:
    """S24: none is reset by another kind of ending, and the claim knows them all."""
    await world.enqueue(max_attempts=9)
    expected = [
        (SNOOZED, (1, 0, 0, 1)),
        (failed(), (2, 1, 0, 1)),
        (HANDED_BACK, (3, 1, 0, 1)),
        (LOST, (4, 1, 1, 1)),
        (SNOOZED, (5, 1, 1, 2)),
        (Unknown(), (6, 1, 1, 2)),
        (failed(ErrorClass.TIMEOUT), (7, 2, 1, 2)),
        (SUCCEEDED, (8, 2, 1, 2)),
    ]
    for ending, counters in expected:
        job = await end(world, ending)
        assert counted(job) == counters


async def test_a_claim_raises_attempt_and_nothing_else(world: World) -> None:
    """S24: at the claim, not at its end; a running attempt is not in the history yet."""
    job = await world.enqueue()
    claim = await world.claim_one()
    assert counted(claim.job) == (1, 0, 0, 0)
    assert claim.job.attempts == ()
    assert await world.get(job.id) == claim.job


async def test_an_attempt_number_is_never_used_again(world: World) -> None:
    """S24: nor is the number of an attempt whose worker was lost or gave it back."""
    await world.enqueue(max_attempts=9)
    numbers = []
    for ending in (LOST, HANDED_BACK, LOST, SNOOZED):
        job = await end(world, ending)
        numbers.append(job.attempt)
    assert numbers == [1, 2, 3, 4]
    assert [one.number for one in job.attempts] == [1, 2, 3, 4]


async def test_the_history_tells_each_attempt_whole(world: World) -> None:
    """S24: number, worker, both instants, outcome, failure and log, oldest first."""
    await world.enqueue()
    failure = Failure(ErrorClass.TRANSIENT, "ConnectionError", "récusé\n" * 9, "Traceback …\n  line é")
    expected = []
    for number, worker in enumerate(("w1", "w2"), 1):
        claim = await world.claim_one(worker=worker)
        started = world.now
        ended = world.advance(1.5)
        verdict = world.verdict(claim, failed(), log=f"line {number}\nline é")
        await world.settle_reply(msgspec.structs.replace(verdict, failure=failure), worker=worker)
        log = f"line {number}\nline é"
        expected.append(AttemptRecord(number, worker, started, ended, "failed", failure, log))
        world.advance(60)
    job = (await world.find_all())[0]
    assert job.attempts == tuple(expected)
    assert (await world.claim_one()).job.attempts == tuple(expected)


async def test_a_lost_attempt_is_remembered_with_its_worker(world: World) -> None:
    """S24: class `crash`, and who it was that fell silent."""
    job = await world.enqueue()
    started = world.now
    await world.claim_one(worker="host-7")
    await world.lose()
    loss = Failure(ErrorClass.CRASH, "LostLease", "worker host-7 stopped renewing its lease")
    lost = marked(job.task, loss)
    expected = AttemptRecord(1, "host-7", started, world.now, "lost", lost)
    assert (await world.get(job.id)).attempts == (expected,)


async def test_the_history_keeps_the_last_ten_attempts(world: World) -> None:
    """S24: the numbers go on, the oldest go; in the finished job, too."""
    await world.enqueue(max_attempts=3)
    for number in range(1, 13):
        job = await end(world, failed(message="first") if number == 1 else HANDED_BACK)
        kept = range(max(1, number - ATTEMPTS_KEPT + 1), number + 1)
        assert [one.number for one in job.attempts] == list(kept)
    job = await end(world, SUCCEEDED)
    assert (counted(job), len(job.attempts)) == ((13, 1, 0, 0), ATTEMPTS_KEPT)
    assert [(one.number, one.outcome) for one in job.attempts][-2:] == [(12, "returned"), (13, "succeeded")]


@pytest.mark.parametrize("kept", [1, 3, 20, 100])
@pytest.mark.parametrize("way", ["settled", "lost", "stuck", "revoked"])
async def test_the_history_keeps_as_many_attempts_as_the_request_says(
    world: World, kept: int, way: str
) -> None:
    """S24: whatever ends an attempt; the oldest go, and a finished job has the last ones."""
    world.attempts_kept = kept
    await world.enqueue(max_attempts=1_000, timeout=SECOND, on_stuck="requeue")
    for number in range(1, 25):
        claim = await world.claim_one()
        if way == "lost" and number < MAX_LOSSES:
            await world.lose()
        elif way == "stuck":
            world.advance(2)
            assert (await world.take_stuck()).stuck
        elif way == "revoked":
            await world.revoke(claim.job.id, how="return" if number % 2 else "retry")
        else:
            await world.settle(claim, HANDED_BACK)
        world.advance(20)
        job = await world.get(claim.job.id)
        assert [one.number for one in job.attempts] == list(range(max(1, number - kept + 1), number + 1))
    await end(world, SUCCEEDED)
    job = await world.get(job.id)
    assert [one.number for one in job.attempts] == list(range(max(1, 26 - kept), 26))


async def test_a_lower_number_of_kept_attempts_holds_from_the_next_end_on(world: World) -> None:
    """S24: what is there stays until then; a higher number brings nothing back."""
    world.attempts_kept = 12
    await world.enqueue()
    for _ in range(12):
        job = await end(world, HANDED_BACK)
    assert len(job.attempts) == 12
    for kept, numbers in ((3, [11, 12, 13]), (5, [11, 12, 13, 14]), (1, [15]), (2, [15, 16])):
        world.attempts_kept = kept
        job = await end(world, HANDED_BACK)
        assert [one.number for one in job.attempts] == numbers
    claim = await world.claim_one()
    assert claim.job.attempts == job.attempts


async def test_many_attempts_with_long_errors_are_read_back(world: World) -> None:
    """S24: a hundred of them, numbers of three digits, each as it was written."""
    world.attempts_kept = 100
    await world.enqueue(max_attempts=1_000)
    for number in range(1, 141):
        claim = await world.claim_one()
        await world.settle(claim, failed(message=f"{number} " * 100, after=0))
    job = await world.get(claim.job.id)
    assert [one.number for one in job.attempts] == list(range(41, 141))
    assert [str(one.failure and one.failure.message) for one in job.attempts] == [
        f"{number} " * 100 for number in range(41, 141)
    ]


@pytest.mark.parametrize("limit", [1, 2, 4])
@pytest.mark.parametrize("ending", [failed(), failed(ErrorClass.TIMEOUT), failed(ErrorClass.RATE_LIMITED)])
async def test_a_job_is_dead_when_it_has_failed_as_often_as_it_may_run(
    world: World, limit: int, ending: Any
) -> None:
    """S25: `max_attempts` counts the first run; the last failure is the one that ends it."""
    await world.enqueue(max_attempts=limit)
    states = []
    for _ in range(limit):
        job = await end(world, ending)
        states.append(job.state)
    assert State.DEAD not in states[:-1]
    assert (states[-1], job.failures) == (State.DEAD, limit)
    assert str(job.because).startswith("exhausted: ")
    world.advance(10_000)
    assert await world.claim(1) == []


@pytest.mark.parametrize("ending", [failed(), failed(ErrorClass.CRASH)])
async def test_one_attempt_means_one(world: World, ending: Any) -> None:
    """S25: it never runs again after a failure, and is a dead letter."""
    await world.enqueue(max_attempts=1)
    job = await end(world, ending)
    assert (job.state, job.attempt, job.failures) == (State.DEAD, 1, 1)
    letter = await world.letter(job.id)
    assert letter is not None
    assert letter.job == job
    world.advance(10_000)
    assert ((await world.promote()).promoted, await world.claim(1)) == (0, [])


@pytest.mark.parametrize("ending", [SNOOZED, BREAKER, HANDED_BACK, Unknown(), LOST])
async def test_only_failures_are_compared_with_the_most_attempts(world: World, ending: Any) -> None:
    """S24, S25: a job that may run once comes back from whatever was no failure, any number of times."""
    await world.enqueue(max_attempts=1)
    for number in range(1, 4):
        job = await end(world, ending)
        assert (job.attempt, job.failures) == (number, 0)
        assert job.state in {State.DELAYED, State.READY}
    assert (await end(world, Succeeded())).state is State.SUCCEEDED


async def test_failures_and_losses_are_counted_apart(world: World) -> None:
    """S24, S25: two failures and one lost worker are two failures and one crash."""
    await world.enqueue(max_attempts=2)
    assert (await end(world, failed())).state is State.DELAYED
    assert (await end(world, LOST)).state is State.READY
    job = await end(world, failed())
    assert (job.state, counted(job)) == (State.DEAD, (3, 2, 1, 0))


async def test_every_job_has_its_own_most_attempts(world: World) -> None:
    """S25: as given at its enqueue, also if other jobs of the task have another value."""
    once, twice = world.new(max_attempts=1), world.new(max_attempts=2)
    await world.send(once, twice)
    first, second = await world.claim(2)
    reply = await world.settle_reply(world.verdict(first, failed()), world.verdict(second, failed()))
    states = {one.id: one.state for one in reply.settled}
    assert states == {once.id: State.DEAD, twice.id: State.DELAYED}


async def test_a_settlement_writes_the_counters_it_carries(world: World) -> None:
    """S24: a store applies the verdict; it does not count for itself."""
    await world.enqueue()
    claim = await world.claim_one()
    counters = {"failures": 1, "crashes": 1, "crashes_alone": 1, "snoozes": 900, "is_suspect": True}
    await world.settle_reply(msgspec.structs.replace(world.verdict(claim, HANDED_BACK), **counters))
    job = await world.get(claim.job.id)
    assert {name: getattr(job, name) for name in counters} == counters
    assert job.attempt == 1
