"""The snapshot of a job: its fields and attempts, waiting for its result, cancelling it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest

from fairlane import (
    CancelReply,
    Context,
    ErrorClass,
    Fairlane,
    JobCancelled,
    JobFailed,
    JobNotFound,
    ResultGone,
    State,
    Task,
)
from fairlane.app.task.context import AttemptControl
from fairlane.model.instants import SECOND
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Snoozed, Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.upkeep import ForgetRequest, PruneRequest
from tests.app.world import WORKER, World, handling, note


class Size(Enum):
    """A result that a handler names."""

    LARGE = "L"


def measure(x: int = 0) -> Size | None:
    """Return a size."""
    return Size.LARGE if x else None


def moment(world: World) -> datetime:
    """Return the time of the store."""
    return datetime.fromtimestamp(world.clock.now() / SECOND, UTC)


# ── the snapshot ─────────────────────────────────────────────────────────────


async def test_a_snapshot_does_not_change_and_refresh_gives_a_newer_one(
    world: World, task: Task[..., None]
) -> None:
    """What was seen stays seen."""
    job = await task.aenqueue("x")
    await world.succeed("done")
    newer = await job.arefresh()
    assert (job.state, newer.state) == (State.READY, State.SUCCEEDED)
    assert newer.settled_at == moment(world)
    assert newer.is_finished
    assert newer != job
    assert hash(newer) == hash(job)
    with pytest.raises(FrozenInstanceError):
        job.state = State.DEAD  # type: ignore[misc]
    with pytest.raises(TypeError):
        job.metadata["a"] = 1  # type: ignore[index]


async def test_refresh_keeps_whether_the_job_was_created_here(task: Task[..., None]) -> None:
    """An earlier job that answered is still an earlier job."""
    keyed = task.using(idempotency_key="k")
    first, again = await keyed.aenqueue("x"), await keyed.aenqueue("x")
    assert (await first.arefresh()).created
    assert not (await again.arefresh()).created


async def test_a_running_job_shows_its_live_attempt(world: World, task: Task[..., None]) -> None:
    """After those that have ended, with the outcome `running`."""
    job = await task.aenqueue("x")
    started = moment(world)
    claim = await world.claim()
    world.clock.advance(2)
    await world.settle(claim, Snoozed(5 * SECOND, "later"))
    world.clock.advance(6)
    await world.claim()
    job = await job.arefresh()
    first, live = job.attempts
    assert (first.number, first.outcome, first.started_at) == (1, "snoozed", started)
    assert first.ended_at == started + timedelta(seconds=2)
    assert (live.number, live.worker, live.outcome, live.ended_at) == (2, WORKER, "running", None)
    assert live.started_at == started + timedelta(seconds=8)
    assert (job.state, job.attempt, job.failures) == (State.RUNNING, 2, 0)


async def test_a_failed_attempt_shows_what_went_wrong(world: World, task: Task[..., None]) -> None:
    """Class, type, message and traceback; `because` says what follows."""
    job = await task.aenqueue("x")
    await world.fail("no line", ErrorClass.TRANSIENT)
    job = await job.arefresh()
    (attempt,) = job.attempts
    assert (attempt.outcome, attempt.error_class) == ("failed", ErrorClass.TRANSIENT)
    assert (attempt.error_type, attempt.message, attempt.traceback) == ("FaxError", "no line", "trace")
    assert (job.state, job.failures, job.because) == (State.DELAYED, 1, "retry: transient: no line")


def test_the_representation_of_a_job_holds_no_result(task: Task[..., None]) -> None:
    """S6: nor anything of the inside."""
    shown = repr(task.enqueue("x"))
    assert "state=<State.READY" in shown
    assert "_stored" not in shown
    assert "_keeper" not in shown


# ── results ──────────────────────────────────────────────────────────────────


async def test_a_result_is_waited_for_by_looking_less_and_less_often(world: World, app: Fairlane) -> None:
    """Soon at first, then once a second; nothing real is waited for here."""
    clock = world.drive(app)
    job = await app.task(name="note")(note).aenqueue("x")

    async def nothing() -> None:
        """Happen."""

    clock.meanwhile = [*[nothing] * 6, lambda: world.succeed({"pages": (1, 2)})]
    assert await job.aresult() == {"pages": (1, 2)}
    assert clock.waits == [50_000, 100_000, 200_000, 400_000, 800_000, SECOND, SECOND]


def test_a_result_can_be_waited_for_from_plain_code(world: World, app: Fairlane) -> None:
    """The twin."""
    clock = world.drive(app)
    job = app.task(name="note")(note).enqueue("x")
    clock.meanwhile = [lambda: world.succeed("sent")]
    assert job.result(timeout=timedelta(seconds=5)) == "sent"


async def test_a_result_that_does_not_come_in_time_is_a_timeout(world: World, app: Fairlane) -> None:
    """The whole time is used, and no more."""
    clock = world.drive(app)
    job = await app.task(name="note")(note).aenqueue("x")
    with pytest.raises(TimeoutError, match=f"job {job.id} has not ended in time; it is ready"):
        await job.aresult(timeout=0.12)
    assert sum(clock.waits) == 120_000
    clock.waits.clear()
    with pytest.raises(TimeoutError):
        await job.aresult(timeout=0)
    assert clock.waits == []


async def test_a_finished_snapshot_answers_without_asking_the_store(
    world: World, task: Task[..., None]
) -> None:
    """Nothing will ever happen to it again."""
    job = await task.aenqueue("x")
    await world.succeed(7)
    job = await job.arefresh()
    world.asked.clear()
    assert await job.aresult() == 7  # type: ignore[func-returns-value]
    assert world.asked == []


async def test_none_is_a_result(world: World, task: Task[..., None]) -> None:
    """S34: it is not stored, and still the answer."""
    job = await task.aenqueue("x")
    await world.succeed(None)
    assert await job.aresult() is None  # type: ignore[func-returns-value]


async def test_an_enum_that_the_handler_names_is_a_result(world: World, app: Fairlane) -> None:
    """Also for a job that was only looked up."""
    job = await app.task(name="measure")(measure).aenqueue(1)
    await world.succeed(Size.LARGE)
    assert await job.aresult() is Size.LARGE
    assert await (await app.jobs.aget(job.id)).aresult() is Size.LARGE


async def test_the_result_of_a_dead_job_is_its_failure(world: World, task: Task[..., None]) -> None:
    """With the job, so that the caller can look at its attempts."""
    job = await task.aenqueue("x")
    await world.fail("no such page")
    with pytest.raises(JobFailed, match="no such page") as caught:
        await job.aresult()
    assert caught.value.job.state is State.DEAD


async def test_the_result_of_a_cancelled_job_is_that(world: World, task: Task[..., None]) -> None:
    """With the reason."""
    job = await task.aenqueue("x")
    assert await job.acancel("ordered twice") is CancelReply.CANCELLED
    with pytest.raises(JobCancelled, match="ordered twice"):
        await job.aresult()


async def test_a_result_whose_job_was_emptied_is_gone(world: World, task: Task[..., None]) -> None:
    """S52: a forgotten tenant's results are not None, they are gone."""
    job = await task.aenqueue("x")
    await world.succeed("secret")
    await world.oracle.upkeep.forget(ForgetRequest(scope=Scope("acme"), reason="asked", who="ops"))
    with pytest.raises(ResultGone):
        await job.aresult()


async def test_a_result_whose_job_is_only_known_by_its_key_is_gone(
    world: World, task: Task[..., None]
) -> None:
    """S13: the key outlives the job, the result does not."""
    keyed = task.using(idempotency_key="k")
    await keyed.aenqueue("x")
    await world.succeed("sent")
    await world.oracle.upkeep.prune(PruneRequest(scope=Scope.all(), retention=Retention(succeeded=0)))
    again = await keyed.aenqueue("x")
    assert (again.state, again.created) == (State.SUCCEEDED, False)
    with pytest.raises(ResultGone):
        await again.aresult()


async def test_a_job_that_is_no_longer_kept_is_not_found(world: World, task: Task[..., None]) -> None:
    """Nobody can say any more how it ended."""
    job = await task.aenqueue("x")
    await world.succeed()
    await world.oracle.upkeep.prune(PruneRequest(scope=Scope.all(), retention=Retention(succeeded=0)))
    asks: list[Callable[[], Any]] = [job.arefresh, job.acancel, job.aresult]
    for ask in asks:
        with pytest.raises(JobNotFound):
            await ask()


async def test_waiting_for_a_result_inside_a_handler_warns(world: World, task: Task[..., None]) -> None:
    """S34: handlers that wait for each other's jobs hold the slots that these need."""
    outer, inner = await task.aenqueue("outer"), await task.aenqueue("inner")
    await world.succeed()
    await world.succeed()
    context = Context(tenant="acme", attempt=1, show=lambda: outer, fence=1, control=AttemptControl())
    with handling(context), pytest.warns(RuntimeWarning, match="deadlock"):
        await inner.aresult()


# ── cancelling ───────────────────────────────────────────────────────────────


async def test_the_answer_to_a_cancel_says_what_it_did(world: World, task: Task[..., None]) -> None:
    """S30: cancelled, asked to stop, or too late."""
    waiting = await task.aenqueue("x")
    assert await waiting.acancel() is CancelReply.CANCELLED
    running = await task.aenqueue("x")
    claim = await world.claim()
    assert await running.acancel("enough") is CancelReply.REQUESTED
    await world.settle(claim, Succeeded())
    assert await running.acancel() is CancelReply.FINISHED


def test_a_job_is_cancelled_from_plain_code(world: World, task: Task[..., None]) -> None:
    """The twins."""
    job = task.enqueue("x")
    assert job.cancel("ordered twice") is CancelReply.CANCELLED
    assert job.refresh().because == "asked: ordered twice"
