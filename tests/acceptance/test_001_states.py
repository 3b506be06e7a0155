"""Description B, the life of a job: each transition of its table, delayed jobs, the trace of one job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fairlane import CancelReply, Fail, Fairlane, JobCancelled, JobFailed, State, Task
from fairlane.model.instants import MINUTE, to_datetime
from fairlane.model.retry.decision import AttemptResult, Cancelled, Snoozed, Succeeded, interpret
from tests.acceptance.presets import work
from tests.acceptance.world import World

BOOM = RuntimeError("boom")
FINAL = {
    State.SUCCEEDED: Succeeded(),
    State.DEAD: interpret(Fail("no"), None, []),
    State.CANCELLED: Cancelled("gone"),
}


@pytest.fixture
def app(world: World) -> Fairlane:
    """Return an application without declared queues."""
    return world.app()


@pytest.fixture
def task(app: Fairlane) -> Task[..., Any]:
    """Return a task of the queue `default`, for one tenant."""
    return app.task(name="work")(work).using(tenant="acme")


async def test_001_lc_1_a_claim_sets_the_start_and_counts_the_attempt(
    world: World, task: Task[..., Any]
) -> None:
    """By the store's clock, with the worker's name."""
    job = await task.aenqueue()
    world.advance(3)
    await world.take(worker="worker-7")
    running = await job.arefresh()
    assert (running.state, running.attempt) == (State.RUNNING, 1)
    (live,) = running.attempts
    assert (live.started_at, live.ended_at) == (job.enqueued_at + timedelta(seconds=3), None)
    assert (live.worker, live.outcome) == ("worker-7", "running")


async def test_001_lc_2_success_stores_the_result_and_the_time(world: World, task: Task[..., Any]) -> None:
    """Both are there as soon as the job has succeeded."""
    job = await task.aenqueue()
    world.advance(3)
    await world.succeed({"rows": 3})
    ended = await job.arefresh()
    assert (ended.state, ended.settled_at) == (State.SUCCEEDED, to_datetime(world.now))
    assert await ended.aresult() == {"rows": 3}


async def test_001_lc_3_a_failure_with_attempts_left_delays_the_job(
    world: World, task: Task[..., Any]
) -> None:
    """The error is recorded and the job has not ended."""
    job = await task.using(max_attempts=2).aenqueue()
    assert await world.fail(BOOM) is State.DELAYED
    waiting = await job.arefresh()
    assert waiting.because == "retry: retryable: boom"
    assert waiting.settled_at is None
    assert [(one.outcome, one.error_type, one.message) for one in waiting.attempts] == [
        ("failed", "RuntimeError", "boom")
    ]


async def test_001_lc_4_a_failure_with_none_left_makes_the_job_dead(
    world: World, task: Task[..., Any]
) -> None:
    """With the time of its end, and for good."""
    job = await task.using(max_attempts=1).aenqueue()
    world.advance(3)
    assert await world.fail(BOOM) is State.DEAD
    ended = await job.arefresh()
    assert (ended.settled_at, ended.because) == (to_datetime(world.now), "exhausted: boom")
    with pytest.raises(JobFailed):
        await ended.aresult()
    world.advance(10_000)
    assert await world.claim(1) == []


async def test_001_lc_5_a_due_retry_becomes_ready(world: World, task: Task[..., Any]) -> None:
    """Not a microsecond before its time."""
    job = await task.aenqueue()
    await world.fail(BOOM)
    due_in = ((await job.arefresh()).run_at - to_datetime(world.now)).total_seconds()
    world.advance(due_in - 0.000001)
    assert (await world.promote()).promoted == 0
    world.advance(0.000001)
    assert (await world.promote()).promoted == 1
    assert (await job.arefresh()).state is State.READY


async def test_001_lc_6_a_job_that_waits_for_its_retry_is_run_now(
    world: World, app: Fairlane, task: Task[..., Any]
) -> None:
    """It is ready at once; what failed stays counted."""
    job = await task.aenqueue()
    await world.fail(BOOM)
    assert await app.jobs.arun_now(job.id) == 1
    assert (await job.arefresh()).state is State.READY
    assert (await world.take()).job.failures == 1


@pytest.mark.parametrize("state", [State.DELAYED, State.READY])
async def test_001_lc_8_a_waiting_job_is_cancelled_at_once(
    world: World, task: Task[..., Any], state: State
) -> None:
    """With who asked for what, and it never runs."""
    job = await task.using(delay=60 if state is State.DELAYED else None).aenqueue()
    assert job.state is state
    assert await job.acancel("ordered twice") is CancelReply.CANCELLED
    ended = await job.arefresh()
    assert (ended.state, ended.because) == (State.CANCELLED, "asked: ordered twice")
    with pytest.raises(JobCancelled, match="ordered twice"):
        await ended.aresult()
    world.advance(61)
    assert await world.claim(1) == []


@pytest.mark.parametrize(
    "ending", [Snoozed(MINUTE), interpret(BOOM, None, []), interpret(Fail("no"), None, [])]
)
async def test_001_lc_8_a_running_job_is_asked_to_stop_and_ends_cancelled(
    world: World, task: Task[..., Any], ending: AttemptResult
) -> None:
    """However it ends, unless it has succeeded meanwhile (S30)."""
    job = await task.aenqueue()
    claim = await world.take()
    assert await job.acancel("too slow") is CancelReply.REQUESTED
    assert (await job.arefresh()).state is State.RUNNING
    assert await world.settle(claim, ending) is State.CANCELLED
    assert (await job.arefresh()).because == "asked: too slow"


@pytest.mark.parametrize("state", FINAL)
async def test_001_lc_8_a_finished_job_cannot_be_cancelled(
    world: World, task: Task[..., Any], state: State
) -> None:
    """Nothing changes in it."""
    job = await task.aenqueue()
    await world.settle(await world.take(), FINAL[state])
    before = await job.arefresh()
    assert await job.acancel("too late") is CancelReply.FINISHED
    assert await job.arefresh() == before
    assert before.state is state


async def test_001_cp4_1_a_delayed_job_runs_when_due_and_not_before(
    world: World, task: Task[..., Any]
) -> None:
    """To the microsecond, without anybody promoting it."""
    job = await task.using(delay=5).aenqueue()
    assert job.state is State.DELAYED
    world.advance(4.999999)
    assert await world.claim(1) == []
    world.advance(0.000001)
    assert (await world.take()).job.id == job.id


async def test_001_dg_4_a_job_tells_its_whole_life_in_order(world: World, task: Task[..., Any]) -> None:
    """Created, each attempt with its worker and error, the end."""
    job = await task.aenqueue()
    world.advance(1)
    await world.fail_claim(await world.take(), BOOM)
    world.advance(10)
    claim = await world.take(worker="worker-2")
    world.advance(1)
    await world.settle(claim, Succeeded(), worker="worker-2")
    told = await job.arefresh()
    assert [(one.number, one.worker, one.outcome, one.message) for one in told.attempts] == [
        (1, "worker-1", "failed", "boom"),
        (2, "worker-2", "succeeded", None),
    ]
    first, second = told.attempts
    assert told.settled_at is not None
    assert first.ended_at is not None
    assert job.enqueued_at < first.started_at <= first.ended_at < second.started_at < told.settled_at
    assert told.settled_at == second.ended_at
