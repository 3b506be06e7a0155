"""Handlers run where they belong, with what they need, and their results and errors are settled."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from fairlane import (
    Backoff,
    Cancel,
    Context,
    ErrorClass,
    Fail,
    Fairlane,
    JobFailed,
    Queue,
    ResultGone,
    Retry,
    Skip,
    Snooze,
    State,
    current_job,
    current_tenant,
)
from fairlane.model.instants import SECOND
from fairlane.model.payload.encoding import RESULT_SIZE
from fairlane.worker.attempts.live_attempts import LiveAttempt
from tests.worker.world import World, events, thread_name, until


async def test_an_async_handler_runs_in_the_worker_s_loop(world: World, app: Fairlane) -> None:
    """It runs in the worker's loop, and its result is stored."""

    @app.task(name="where")
    async def where() -> str:
        assert asyncio.get_running_loop() is loop
        return thread_name()

    loop = asyncio.get_running_loop()
    job = await where.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert await job.aresult() == threading.main_thread().name


async def test_a_plain_handler_runs_in_a_thread(world: World, app: Fairlane) -> None:
    """It cannot block the loop."""

    @app.task(name="where")
    def where() -> str:
        return thread_name()

    job = await where.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert (await job.aresult()).startswith("fairlane-handler")


async def test_plain_handlers_run_side_by_side_as_slots_allow(world: World, app: Fairlane) -> None:
    """Each waits for all others, so with one thread they would never end."""
    barrier = threading.Barrier(16, timeout=20)

    @app.task(name="meet")
    def meet() -> None:
        barrier.wait()

    jobs = [await meet.using(tenant=f"t{number}").aenqueue() for number in range(16)]
    worker = await world.burst(app)
    assert (worker.settled, worker.failed) == (len(jobs), 0)


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_handler_sees_its_attempt(world: World, app: Fairlane, kind: str) -> None:
    """Arguments, tenant, job, attempt, fence and deadline, as context and as ambient values."""
    seen: list[Any] = []

    def look(ctx: Context, to: str, pages: int) -> None:
        seen.extend((to, pages, ctx.tenant, current_tenant(), ctx.attempt, ctx.fence, ctx.deadline))
        seen.extend((ctx.job.id, current_job().id, ctx.job.attempts[-1].outcome))

    if kind == "plain":
        task = app.task(name="look", timeout=60)(look)
    else:

        @app.task(name="look", timeout=60)
        async def task(ctx: Context, to: str, pages: int) -> None:
            look(ctx, to, pages)

    job = await task.using(tenant="acme").aenqueue("ann", pages=3)
    await world.burst(app)
    to, pages, tenant, ambient, attempt, fence, deadline, own, current, outcome = seen
    assert (to, pages, tenant, ambient, attempt, outcome) == ("ann", 3, "acme", "acme", 1, "running")
    assert own == current == job.id
    record = await world.record(app, job.id)
    assert fence == record.fence
    took = deadline - record_started(record)
    assert 59 < took.total_seconds() < 62


def record_started(record: Any) -> Any:
    """Return the start of the last attempt."""
    from fairlane.model.instants import to_datetime  # noqa: PLC0415 (only here)

    return to_datetime(record.attempts[-1].started_at)


# ── outcomes ─────────────────────────────────────────────────────────────────


class Odd(Exception):  # noqa: N818 (an error whose own text fails)
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


def leave() -> None:
    """End the process, or so it thinks."""
    sys.exit(3)


def interrupt() -> None:
    """Be interrupted, or so it seems."""
    raise KeyboardInterrupt


def cancel_self() -> None:
    """Raise what only the loop should."""
    raise asyncio.CancelledError


def generator_exit() -> None:
    """Raise what only Python should."""
    raise GeneratorExit


def nested_groups() -> None:
    """Raise what cannot be taken apart without recursing too deep."""
    error: Exception = ValueError("x")
    for _ in range(5_000):
        error = ExceptionGroup("all of it", [error])
    raise error


class Unbound:
    """As the proxies of web frameworks are outside of a request: even asking for its class fails."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError


def raising(error: BaseException) -> Callable[[], None]:
    """Make a function that raises."""

    def fail() -> None:
        raise error

    return fail


OUTCOMES: list[tuple[str, Callable[[], Any], State, str, ErrorClass | None, int]] = [
    ("nothing", lambda: None, State.SUCCEEDED, "", None, 0),
    ("a Retry raised", raising(Retry("busy", after=60)), State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("a Retry returned", lambda: Retry("busy"), State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("a Snooze", raising(Snooze(60, "not now")), State.DELAYED, "snooze", None, 0),
    ("a Snooze returned", lambda: Snooze(60), State.DELAYED, "snooze", None, 0),
    ("a Fail", raising(Fail("no such fax")), State.DEAD, "failed", ErrorClass.NON_RETRYABLE, 1),
    ("a Cancel", raising(Cancel("not needed")), State.CANCELLED, "chosen", None, 0),
    ("a Cancel returned", lambda: Cancel("not needed"), State.CANCELLED, "chosen", None, 0),
    ("a Skip", raising(Skip("deleted")), State.CANCELLED, "skipped", None, 0),
    ("a Skip returned", lambda: Skip("deleted"), State.CANCELLED, "skipped", None, 0),
    ("an error", raising(ValueError("x")), State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("a broken line", raising(ConnectionError("x")), State.DELAYED, "retry", ErrorClass.TRANSIENT, 1),
    ("an error without text", raising(Odd()), State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("SystemExit", leave, State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("KeyboardInterrupt", interrupt, State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("CancelledError", cancel_self, State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("GeneratorExit", generator_exit, State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("StopIteration", raising(StopIteration()), State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
    ("groups in groups", nested_groups, State.DELAYED, "retry", ErrorClass.RETRYABLE, 1),
]


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize(
    ("does", "state", "word", "error_class", "failures"),
    [case[1:] for case in OUTCOMES],
    ids=[case[0] for case in OUTCOMES],
)
async def test_whatever_a_handler_says_or_raises_is_settled(  # noqa: PLR0917 (a row of the table)
    world: World,
    app: Fairlane,
    kind: str,
    does: Callable[[], Any],
    state: State,
    word: str,
    error_class: ErrorClass | None,
    failures: int,
) -> None:
    """S28: outcomes raised or returned, errors of any kind; the worker lives on and runs the next job."""
    if kind == "plain":

        @app.task(name="odd")
        def odd() -> Any:
            return does()
    else:

        @app.task(name="odd")
        async def odd() -> Any:
            await asyncio.sleep(0)
            return does()

    @app.task(name="next")
    async def after() -> None: ...

    job = await odd.using(tenant="acme", priority=50).aenqueue()
    other = await after.using(tenant="acme").aenqueue()
    await world.burst(app)
    ended, record = await job.arefresh(), await world.record(app, job.id)
    assert (ended.state, ended.failures) == (state, failures)
    assert (ended.because or "").partition(":")[0] == word
    assert ended.attempts[-1].error_class is error_class
    assert (await other.arefresh()).state is State.SUCCEEDED
    if isinstance(does, type(lambda: 0)) and error_class is not None:
        assert record.attempts[-1].failure is not None


async def test_a_failed_attempt_is_tried_again_by_the_task_s_policy(world: World, app: Fairlane) -> None:
    """The task's retry comes before the queue's; the last failure makes the job dead."""
    tries: list[int] = []

    @app.task(name="flaky", retry=Backoff.delays(0, 0))
    async def flaky(ctx: Context) -> None:
        tries.append(ctx.attempt)
        raise ValueError

    job = await flaky.using(tenant="acme").aenqueue()
    async with world.working(app):
        dead = await world.ended(job)
    assert (tries, dead.state, dead.failures) == ([1, 2, 3], State.DEAD, 3)
    with pytest.raises(JobFailed):
        await dead.aresult()


async def test_jobs_that_failed_together_come_back_spread(world: World, app: Fairlane) -> None:
    """S26: each settlement draws its own jitter: jobs that failed together are not retried together."""

    @app.task(name="flaky", retry=Backoff.exponential(100, jitter=0.5))
    async def flaky() -> None:
        raise ValueError

    for _ in range(8):
        await flaky.using(tenant="acme").aenqueue()
    await world.burst(app)
    delays = [one.delay / SECOND for asked in world.requests("settle") for one in asked.settlements]
    assert len(set(delays)) == 8
    assert all(50 <= delay <= 150 for delay in delays)


async def test_a_queue_s_policy_holds_for_tasks_without_one(world: World) -> None:
    """S26: task, then queue."""
    app = world.app(queues=[Queue("mail", retry=Backoff.never())])

    @app.task(name="flaky", queue="mail")
    async def flaky() -> None:
        raise ValueError

    job = await flaky.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert (await job.arefresh()).state is State.DEAD


async def test_a_task_s_classifier_decides_and_one_that_raises_is_silent(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """S27: its own error is logged, and the failure is retryable."""

    def classify(error: BaseException) -> ErrorClass | None:
        if isinstance(error, KeyError):
            return ErrorClass.NON_RETRYABLE
        message = "no idea"
        raise RuntimeError(message)

    @app.task(name="sorted", classify=classify)
    async def sort(kind: str) -> None:
        raise KeyError if kind == "key" else ValueError

    known, odd = [await sort.using(tenant="acme").aenqueue(kind) for kind in ("key", "other")]
    await world.burst(app)
    assert (await known.arefresh()).state is State.DEAD
    assert (await odd.arefresh()).attempts[-1].error_class is ErrorClass.RETRYABLE
    assert [
        record.__dict__["job"] for record in caplog.records if record.__dict__["event"] == "classifier_failed"
    ] == [str(odd.id)]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_task_s_own_function_names_the_delay_of_a_retry(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture, *, is_async: bool
) -> None:
    """S26: before its policy and after `Retry`; one that raises is logged, and the policy counts."""

    def retry_delay(error: BaseException, failures: int) -> timedelta | int | None:
        if isinstance(error, KeyError):
            return timedelta(seconds=500 * failures)
        if isinstance(error, ValueError):
            return None
        message = "no idea"
        raise RuntimeError(message)

    errors: dict[str, Exception] = {
        "key": KeyError("x"),
        "policy": ValueError("x"),
        "odd": TypeError("x"),
        "own": Retry("later", after=200),
    }
    options: dict[str, Any] = {"retry": Backoff.delays(300), "retry_delay": retry_delay}
    if is_async:

        @app.task(name="slow", **options)
        async def slow(kind: str) -> None:
            raise errors[kind]

    else:

        @app.task(name="slow", **options)
        def slow(kind: str) -> None:
            raise errors[kind]

    jobs = {kind: await slow.using(tenant="acme").aenqueue(kind) for kind in errors}
    await world.burst(app)
    waits = {}
    for kind, job in jobs.items():
        after = await job.arefresh()
        ended_at = after.attempts[-1].ended_at
        assert ended_at is not None
        waits[kind] = (after.run_at - ended_at).total_seconds()
    assert waits == {"key": 500, "policy": 300, "odd": 300, "own": 200}
    (line,) = [one for one in caplog.records if one.__dict__.get("event") == "retry_delay_failed"]
    assert line.__dict__["job"] == str(jobs["odd"].id)
    assert "the task's retry_delay is ignored: it raised RuntimeError: no idea" in line.getMessage()


async def test_a_job_keeps_as_many_attempts_as_configured(world: World) -> None:
    """S24: `retention.attempts_per_job`; their numbers say how many there were."""
    app = world.app(config={"retention": {"attempts_per_job": 2}})

    @app.task(name="flaky", retry=Backoff.delays(0), max_attempts=5)
    async def flaky(ctx: Context) -> None:
        message = f"attempt {ctx.attempt}"
        raise ValueError(message)

    job = await flaky.using(tenant="acme").aenqueue()
    await world.burst(app)
    ended = await job.arefresh()
    assert [(one.number, one.message) for one in ended.attempts] == [(4, "attempt 4"), (5, "attempt 5")]
    assert (ended.state, ended.attempt) == (State.DEAD, 5)


async def test_a_skipped_job_is_logged_as_a_warning_and_not_as_a_failure(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """S28: who reads the log sees that nothing was done, and why."""

    @app.task(name="remind")
    async def remind() -> None:
        raise Skip("the invoice was deleted")

    await remind.using(tenant="acme").aenqueue()
    await world.burst(app)
    (line,) = [one for one in caplog.records if getattr(one, "event", "") == "job_skipped"]
    assert line.levelname == "WARNING"
    assert line.getMessage().endswith("attempt 1: nothing was done: skipped: the invoice was deleted")
    assert not {"job_failed", "job_dead"} & set(events(caplog))


# ── results ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (object(), "result"),
        ("x" * (RESULT_SIZE + 1), "the limit is"),
        (float("nan"), "result"),
        (Unbound(), "Unbound"),
    ],
    ids=["unknown_type", "too_large", "no_number", "proxy"],
)
async def test_a_result_that_cannot_be_kept_is_dropped_and_the_job_has_succeeded(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture, result: object, message: str
) -> None:
    """S34: the work was done; `result()` says why there is no result, and the log warns."""

    @app.task(name="odd", retry=Backoff.delays(0))
    async def odd() -> Any:
        return result

    job = await odd.using(tenant="acme").aenqueue()
    await world.burst(app)
    done = await job.arefresh()
    last = done.attempts[-1]
    assert (done.state, done.failures, last.outcome) == (State.SUCCEEDED, 0, "succeeded")
    assert message in str(last.message)
    assert "result_dropped" in events(caplog)
    with pytest.raises(ResultGone, match="result was dropped: .*" + message):
        await job.aresult()


@pytest.mark.parametrize("is_configured", [False, True], ids=["in code", "in the configuration"])
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (object(), "result"),
        ("x" * (RESULT_SIZE + 1), "the limit is"),
        (float("nan"), "result"),
        (Unbound(), "Unbound"),
    ],
    ids=["unknown_type", "too_large", "no_number", "proxy"],
)
async def test_a_result_that_cannot_be_kept_makes_the_job_dead_if_its_task_wants_that(
    world: World, result: object, message: str, *, is_configured: bool
) -> None:
    """S34: running the work again would not help; the dead job says that the work was done."""
    config = {"tasks": {"odd": {"on_bad_result": "dead"}}} if is_configured else {}
    app = world.app(config=config)

    @app.task(name="odd", retry=Backoff.delays(0), on_bad_result="drop" if is_configured else "dead")
    async def odd() -> Any:
        return result

    job = await odd.using(tenant="acme").aenqueue()
    await world.burst(app)
    dead = await job.arefresh()
    last = dead.attempts[-1]
    assert (dead.state, dead.attempt, last.error_class) == (State.DEAD, 1, ErrorClass.NON_RETRYABLE)
    assert "the work was done" in str(last.message)
    assert message in str(last.message)


async def test_a_result_that_nobody_wants_is_not_kept(world: World, app: Fairlane) -> None:
    """`keep_result=False` also spares the encoding."""

    @app.task(name="quiet", keep_result=False)
    async def quiet() -> object:
        return object()

    job = await quiet.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert await job.aresult() is None


# ── enqueue from inside ──────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_handler_enqueues_for_its_own_tenant_below_its_own_job(
    world: World, app: Fairlane, kind: str
) -> None:
    """S22: correlation and parent flow on, from the loop and from a thread, without a dead lock."""

    @app.task(name="child")
    async def child(n: int) -> None: ...

    if kind == "plain":

        @app.task(name="parent")
        def parent() -> None:
            for n in range(3):
                child.enqueue(n)
    else:

        @app.task(name="parent")
        async def parent() -> None:
            for n in range(3):
                await child.aenqueue(n)

    job = await parent.using(tenant="acme", correlation_id="order-7").aenqueue()
    worker = await world.burst(app)
    below = await app.jobs.afind(parent=job.id)
    assert {one.correlation_id for one in below} == {"order-7"}
    assert {(one.tenant, one.state) for one in below} == {("acme", State.SUCCEEDED)}
    assert worker.settled == 4


async def test_many_plain_handlers_that_enqueue_share_one_store(world: World, app: Fairlane) -> None:
    """The worker's loop has one, and all plain callers and the renewals together have one."""

    @app.task(name="child")
    def child() -> None: ...

    @app.task(name="parent")
    def parent() -> None:
        child.enqueue()

    for _ in range(50):
        await parent.using(tenant="acme").aenqueue()
    worker = await world.burst(app)
    assert (worker.settled, worker.failed, world.opened) == (100, 0, 2)


async def test_a_slow_handler_does_not_hold_up_the_settlement_of_others(world: World, app: Fairlane) -> None:
    """A settlement is sent at once, however long others run."""
    release = asyncio.Event()

    @app.task(name="slow")
    async def slow() -> None:
        await release.wait()

    @app.task(name="fast")
    async def fast() -> None: ...

    first = await slow.using(tenant="acme").aenqueue()
    others = [await fast.using(tenant="acme").aenqueue() for _ in range(40)]
    async with world.working(app) as worker:
        for other in others:
            await world.ended(other)
        assert worker.running == 1
        release.set()
        await world.ended(first)
        await until(lambda: worker.running == 0)


@pytest.mark.parametrize("is_async", [True, False])
async def test_nothing_of_an_attempt_waits_for_the_collector(
    world: World, app: Fairlane, *, is_async: bool
) -> None:
    """A settled attempt needs no garbage collection; collecting cycles took a third of the loop's time."""

    @app.task(name="async")
    async def in_the_loop(ctx: Context) -> str:
        return ctx.tenant

    @app.task(name="plain")
    def in_a_thread(ctx: Context) -> str:
        return ctx.tenant

    task = in_the_loop if is_async else in_a_thread
    ids = {(await task.using(tenant="acme").aenqueue()).id for _ in range(3)}

    def is_any_left() -> bool:
        attempts = [one for one in gc.get_objects() if type(one) is LiveAttempt]  # others here lie about it
        return any(one.claim.job.id in ids for one in attempts)

    gc.collect()
    gc.disable()
    try:
        await world.burst(app)
        await until(lambda: not is_any_left())  # a thread lets go of its last one a moment later
    finally:
        gc.enable()
