"""Description A, when jobs fail: retries and dead letters."""

from __future__ import annotations

import pytest

from fairlane import ErrorClass, Fail, State
from fairlane.model.instants import SECOND, to_datetime
from fairlane.store.contract.dead import DeadGetRequest
from tests.acceptance.presets import Preset, isolation, work
from tests.acceptance.world import ALL, World

BOOM = RuntimeError("boom")


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description A, in force."""
    return await world.open(isolation(world.url))


async def test_000_tm_3_a_job_that_fails_once_succeeds_on_retry(world: World, preset: Preset) -> None:
    """Succeeded, two attempts, one error in its history."""
    job = await preset["send_fax"].using(tenant="acme").aenqueue()
    assert await world.fail(BOOM, "critical") is State.DELAYED
    world.advance(10)
    await world.succeed(queue="critical")
    ended = await job.arefresh()
    assert (ended.state, ended.attempt, ended.failures) == (State.SUCCEEDED, 2, 1)
    assert [one.outcome for one in ended.attempts] == ["failed", "succeeded"]
    assert [one.message for one in ended.attempts] == ["boom", None]


async def test_000_tm_4a_three_executions_are_declared_as_three_attempts(
    world: World, preset: Preset
) -> None:
    """The reading of the matrix: the third failure moves the job to the dead letters, the second does not."""
    job = await preset["send_fax"].using(tenant="acme", max_attempts=3).aenqueue()
    states = []
    for _ in range(3):
        states.append(await world.fail(BOOM, "critical"))
        world.advance(60)
    assert states == [State.DELAYED, State.DELAYED, State.DEAD]
    assert (await job.arefresh()).failures == 3


async def test_000_tm_4b_three_retries_are_a_list_of_three_delays(world: World, preset: Preset) -> None:
    """The reading of the code: the fourth failure moves it, the third does not (S25)."""
    job = await preset["send_fax"].using(tenant="acme").aenqueue()
    states = []
    for _ in range(4):
        states.append(await world.fail(BOOM, "critical"))
        world.advance(60)
    assert states == [State.DELAYED, State.DELAYED, State.DELAYED, State.DEAD]
    assert (await job.arefresh()).max_attempts == 4


async def test_000_rt_1_a_retried_job_goes_behind_those_that_were_due_before(
    world: World, preset: Preset
) -> None:
    """A retry is due at its retry time, so it stands behind what waits since before then (S20)."""
    task = preset["send_fax"].using(tenant="acme")
    first, second = await task.aenqueue(), await task.aenqueue()
    await world.fail(BOOM, "critical")
    world.advance(5)
    third = await task.aenqueue()
    world.advance(5)
    order = [claim.job.id for claim in await world.claim(3, "critical")]
    assert order == [second.id, third.id, first.id]


async def test_000_dl_1_a_dead_letter_holds_what_a_person_needs(world: World, preset: Preset) -> None:
    """Job, method, organisation, queue, reason, data, time of failure, count of failures, review."""
    job = await preset["process_batch"].using(tenant="acme", max_attempts=1).aenqueue(number=7)
    world.advance(3)
    claim = await world.take("bulk")
    world.advance(2)
    from_handler = Fail("the file is broken")
    assert await world.fail_claim(claim, from_handler) is State.DEAD
    letter = await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id))
    assert letter is not None
    assert (letter.job.task, letter.job.tenant, letter.job.queue) == ("process_batch", "acme", "bulk")
    assert letter.job.because == "failed: the file is broken"
    assert world.arguments(claim) == {"number": 7}
    assert letter.job.payload == claim.job.payload
    assert letter.job.settled_at == world.now
    assert (letter.job.failures, letter.error_class) == (1, ErrorClass.NON_RETRYABLE)
    assert letter.review.review == "pending"
    shown = await job.arefresh()
    assert shown.settled_at == to_datetime(world.now)
    assert (world.now - claim.job.enqueued_at) == 5 * SECOND


@pytest.mark.parametrize("length", [1_999, 2_000, 2_001, 100_000])
async def test_000_dl_2_a_failure_reason_is_cut_at_2_000_characters(world: World, length: int) -> None:
    """Two thousand are stored, the next is not."""
    app = world.app()
    job = await app.task(name="mail", max_attempts=1)(work).aenqueue()
    await world.fail(RuntimeError("x" * length))
    (attempt,) = (await job.arefresh()).attempts
    assert attempt.message == "x" * min(length, 2_000)
