"""Whatever is raised between a claim and its settlement ends that attempt and no other; no slot is lost."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NoReturn

import pytest

from fairlane import Backoff, Cancel, Context, ErrorClass, Fairlane, Job, State, Task
from fairlane.model.instants import SECOND
from fairlane.model.policy.declared import Lane
from fairlane.model.retry.decision import AttemptResult, Succeeded
from fairlane.store.contract.claims import SettleRequest
from fairlane.worker import execute, report, round_trip
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.attempts.settlement import settlement_of
from fairlane.worker.worker import WorkerRuntime
from tests.worker.world import QUICK, World, changed, events, until

SLOTS = 2
JOBS = 5
"""More bad jobs than slots: if each lost its slot, the good jobs would never run."""

LANES = [Lane("main", SLOTS, ("default",))]


class Broken(Exception):  # noqa: N818 (a state of affairs)
    """What our own code raises in these tests."""


def _is_bad(task: str) -> bool:
    return task == "bad"


def _raise(*_: object, **__: object) -> NoReturn:
    message = "injected"
    raise Broken(message)


Break = Callable[[pytest.MonkeyPatch], None]


def _when_bad(patch: pytest.MonkeyPatch, owner: Any, name: str, task_of: Callable[..., str]) -> None:
    """Let a step raise if it is about the bad task."""
    real = getattr(owner, name)

    def step(*args: Any, **named: Any) -> Any:
        return _raise() if _is_bad(task_of(*args, **named)) else real(*args, **named)

    patch.setattr(owner, name, step)


def _in_lookup(patch: pytest.MonkeyPatch) -> None:
    _when_bad(patch, execute, "with_task_settings", lambda declared, _: declared.name)


def _in_arguments(patch: pytest.MonkeyPatch) -> None:
    _when_bad(patch, execute, "read_arguments", lambda job, _: job.task)


def _in_start(patch: pytest.MonkeyPatch) -> None:
    _when_bad(patch, execute.Executor, "_launch", lambda _, attempt, __: attempt.claim.job.task)


def _in_begin(patch: pytest.MonkeyPatch) -> None:
    _when_bad(patch, LiveAttempt, "begin", lambda attempt, _: attempt.claim.job.task)


def _in_ending(patch: pytest.MonkeyPatch) -> None:
    _when_bad(patch, execute, "result_of", lambda attempt, *_: attempt.claim.job.task)


def _in_judging(patch: pytest.MonkeyPatch) -> None:
    def judge(attempt: LiveAttempt, result: AttemptResult, *rest: Any, **named: Any) -> Any:
        is_bad = _is_bad(attempt.claim.job.task) and isinstance(result, Succeeded)
        return _raise() if is_bad else settlement_of(attempt, result, *rest, **named)

    patch.setattr(execute, "settlement_of", judge)


def _in_settling(patch: pytest.MonkeyPatch) -> None:
    real = SettleRequest
    bad: set[object] = set()
    _note_bad_ids(patch, bad)

    def request(**options: Any) -> SettleRequest:
        is_bad = any(one.id in bad and one.outcome == "succeeded" for one in options["settlements"])
        return _raise() if is_bad else real(**options)

    patch.setattr(round_trip, "SettleRequest", request)


def _note_bad_ids(patch: pytest.MonkeyPatch, bad: set[object]) -> None:
    real = execute.Executor.settle

    def settle(self: execute.Executor, attempt: LiveAttempt, result: AttemptResult) -> None:
        if _is_bad(attempt.claim.job.task):
            bad.add(attempt.claim.job.id)
        real(self, attempt, result)

    patch.setattr(execute.Executor, "settle", settle)


STEPS: dict[str, Break] = {
    "lookup": _in_lookup,
    "arguments": _in_arguments,
    "start": _in_start,
    "begin": _in_begin,
    "ending": _in_ending,
    "judging": _in_judging,
    "settling": _in_settling,
}


def _tasks(app: Fairlane, kind: str) -> tuple[Task[[], None], Task[[], None]]:
    never = Backoff.never()
    if kind == "plain":

        @app.task(name="bad", retry=never, max_attempts=1)
        def bad() -> None: ...

        @app.task(name="good")
        def good() -> None: ...

        return bad, good

    @app.task(name="bad", retry=never, max_attempts=1)
    async def abad() -> None: ...

    @app.task(name="good")
    async def agood() -> None: ...

    return abad, agood


async def _mixed(bad: Task[[], None], good: Task[[], None]) -> tuple[list[Job[None]], list[Job[None]]]:
    bads, goods = [], []
    for _ in range(JOBS):
        bads.append(await bad.using(tenant="acme").aenqueue())
        goods.append(await good.using(tenant="globex").aenqueue())
    return bads, goods


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize("step", STEPS)
async def test_what_a_step_raises_fails_that_attempt_and_no_other(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch, step: str, kind: str
) -> None:
    """The error is in the attempt's history, and the others are done in the same lane."""
    bads, goods = await _mixed(*_tasks(app, kind))
    STEPS[step](monkeypatch)
    worker = await world.burst(app, lanes=LANES)
    assert [(await job.arefresh()).state for job in goods] == [State.SUCCEEDED] * JOBS
    for job in bads:
        dead = await job.arefresh()
        assert dead.state is State.DEAD
        assert (dead.attempts[-1].message, dead.attempts[-1].error_class) == ("injected", "retryable")
    assert worker.failed == JOBS


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_hook_s_handler_may_raise_what_no_future_takes(
    world: World, app: Fairlane, kind: str
) -> None:
    """StopIteration out of a thread inside a tenant's context: no future can carry it."""
    app.tenant_context(lambda _: nullcontext())

    def stop() -> None:
        raise StopIteration

    async def astop() -> None:
        raise StopIteration

    task = app.task(name="stop", retry=Backoff.never())(stop if kind == "plain" else astop)
    jobs = [await task.using(tenant="acme").aenqueue() for _ in range(JOBS)]
    await world.burst(app, lanes=LANES)
    assert [(await job.arefresh()).state for job in jobs] == [State.DEAD] * JOBS


async def test_a_retry_policy_that_raises_fails_its_attempt(world: World, app: Fairlane) -> None:
    """It is asked between the end of a handler and its settlement, where a slot was lost."""

    class Odd(dict[ErrorClass, Backoff]):
        def __contains__(self, key: object) -> bool:
            return _raise()

    @app.task(name="bad", retry=Odd({ErrorClass.TIMEOUT: Backoff.never()}), max_attempts=1)
    async def bad() -> None:
        raise ValueError

    jobs = [await bad.using(tenant="acme").aenqueue() for _ in range(JOBS)]
    async with asyncio.timeout(20):  # a slot that is lost keeps the burst from its end
        await world.burst(app, lanes=LANES)
    assert [(await job.arefresh()).attempts[-1].message for job in jobs] == ["injected"] * JOBS


async def test_an_upcast_may_raise_anything(world: World, app: Fairlane) -> None:
    """Also what is no Exception: it would have ended the event loop."""

    @app.task(name="mail", version=1)
    async def mail(to: str) -> None: ...

    job = await mail.using(tenant="acme").aenqueue("ann")
    newer = world.app()

    @newer.task(name="mail", version=2, retry=Backoff.never())
    async def mail2(to: str) -> None: ...

    @mail2.upcast(from_version=1)
    def up(arguments: dict[str, Any]) -> dict[str, Any]:
        raise SystemExit(3)

    await world.burst(newer)
    assert (await job.arefresh()).state is State.DEAD


async def test_a_log_handler_that_raises_harms_nobody(world: World, app: Fairlane) -> None:
    """The worker tells of attempts while it holds their slots."""

    class Raising(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            return _raise()

    @app.task(name="bad", retry=Backoff.never())
    async def bad() -> None:
        raise ValueError

    jobs = [await bad.using(tenant="acme").aenqueue() for _ in range(JOBS)]
    handler = Raising()
    report.log.addHandler(handler)
    try:
        await world.burst(app, lanes=LANES)
    finally:
        report.log.removeHandler(handler)
    assert [(await job.arefresh()).state for job in jobs] == [State.DEAD] * JOBS


async def test_telling_of_a_settlement_never_costs_its_slot(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has settled it: whatever happens then, the slot is free."""
    bads, goods = await _mixed(*_tasks(app, "async"))
    monkeypatch.setattr(report, "settled", _raise)
    await world.burst(app, lanes=LANES)
    assert {(await job.arefresh()).state for job in [*bads, *goods]} == {State.SUCCEEDED}


async def test_a_thread_that_cannot_be_started_fails_its_attempt(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may have no more threads; the next attempt gets one."""
    done: list[int] = []

    @app.task(name="plain", retry=Backoff.delays(0))
    def plain() -> None:
        done.append(1)

    real = threading.Thread.start
    refused: list[str] = []

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("fairlane-handler") and len(refused) < SLOTS + 1:
            refused.append(thread.name)
            message = "can't start new thread"
            raise RuntimeError(message)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    jobs = [await plain.using(tenant="acme").aenqueue() for _ in range(JOBS)]
    async with world.working(app, lanes=LANES):
        ended = [await world.ended(job) for job in jobs]
    assert [job.state for job in ended] == [State.SUCCEEDED] * JOBS
    assert len(done) == JOBS


@pytest.mark.parametrize("reason", [42, ValueError("no"), b"bytes"])
async def test_an_outcome_takes_any_reason(world: World, app: Fairlane, reason: Any) -> None:
    """`raise Cancel(error)` is an easy mistake, and cancels the job."""

    @app.task(name="leave")
    async def leave() -> None:
        raise Cancel(reason)

    job = await leave.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert (await job.arefresh()).state is State.CANCELLED


async def test_progress_may_be_any_text(world: World, app: Fairlane) -> None:
    """A note that no store can hold would prevent the renewal of all the worker's leases."""
    told = asyncio.Event()

    @app.task(name="tell")
    async def tell(ctx: Context) -> None:
        ctx.progress(0.5, "half \x00 \udc80")
        await told.wait()

    job = await tell.using(tenant="acme").aenqueue()
    async with world.working(app):
        record = await world.record(app, job.id)
        while record.progress is None:
            record = await world.record(app, job.id)
        told.set()
        assert record.progress.note == r"half \x00 \udc80"
        await world.ended(job)


# ── when nothing else is left, the worker ends ───────────────────────────────


async def test_a_worker_ends_if_an_attempt_cannot_even_be_failed(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Better no worker than one that holds slots for nothing and says that it is idle."""
    bad, _ = _tasks(app, "async")
    await bad.using(tenant="acme").aenqueue()
    monkeypatch.setattr(execute, "settlement_of", _raise)
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="own code raised Broken")):
        await asyncio.wait_for(WorkerRuntime(app, settings=QUICK).run(), 30)


async def test_a_worker_ends_if_it_cannot_hear_the_renewing_thread(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a callback raises, the event loop would only log."""
    started = asyncio.Event()

    @app.task(name="long")
    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    job = await long.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await asyncio.wait_for(started.wait(), 30)
    monkeypatch.setattr("fairlane.worker.timeouts.Timeouts.stop", _raise)
    await job.acancel("enough")
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="own code raised Broken")):
        await asyncio.wait_for(running, 30)


async def test_a_slot_that_nothing_holds_does_not_keep_a_worker_from_its_end(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """With hours until the shutdown deadline it is gone as soon as nothing runs."""
    bad, _ = _tasks(app, "async")
    patient = changed(QUICK, shutdown_deadline=100_000 * SECOND)
    async with world.working(app, settings=patient, lanes=LANES) as worker:
        job = await bad.using(tenant="acme").aenqueue()
        await world.ended(job)
        assert worker._parts is not None
        worker._parts.lanes[0]._claimed += 1
        worker.stop()
        await until(lambda: "worker_left" in events(caplog) or "slots_left" in events(caplog))
    assert "slots_left" in events(caplog)
