"""The tenant of a handler: known to all code below it, set by the application's hook, isolated (S9)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import pytest

from fairlane import (
    ConfigError,
    Context,
    ErrorClass,
    Fairlane,
    OutsideTenant,
    State,
    TenantMismatch,
    current_job,
    current_tenant,
)
from fairlane.app.ambient import require_tenant
from tests.worker.world import LONG, LeapingClock, World, until

schema: ContextVar[str] = ContextVar("schema", default="none")


async def test_tenant_and_job_are_known_below_the_handler(world: World, app: Fairlane) -> None:
    """Also in tasks that it starts and in threads of asyncio; of many handlers, each knows its own tenant."""
    seen: list[tuple[str, str, str]] = []

    async def below() -> tuple[str, str]:
        await asyncio.sleep(0)
        return current_tenant(), str(current_job().id)

    @app.task(name="async")
    async def outer(ctx: Context) -> None:
        inner = await asyncio.to_thread(lambda: (current_tenant(), str(current_job().id)))
        for found in (*await asyncio.gather(below()), inner):
            seen.append((ctx.tenant, *found))
            assert found == (ctx.tenant, str(ctx.job.id))

    @app.task(name="plain")
    def plain(ctx: Context) -> None:
        assert (current_tenant(), current_job().id) == (ctx.tenant, ctx.job.id)
        seen.append((ctx.tenant, current_tenant(), ""))

    for number in range(10):
        await outer.using(tenant=f"t{number}").aenqueue()
        await plain.using(tenant=f"t{number}").aenqueue()
    worker = await world.burst(app)
    assert (worker.settled, worker.failed, len(seen)) == (20, 0, 30)


@pytest.mark.parametrize("hook", ["plain", "async"])
@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("end", ["returns", "raises"])
async def test_the_hook_surrounds_every_attempt_in_the_same_context(
    world: World, app: Fairlane, kind: str, hook: str, end: str
) -> None:
    """The handler sees what it sets; it is left whatever the handler does, and gets the error."""
    events: list[str] = []

    @contextmanager
    def surround(ctx: Context) -> Generator[None]:
        schema.set(f"schema of {ctx.tenant}")
        events.append("enter")
        try:
            yield
        except ValueError:
            events.append("error")
            raise
        finally:
            events.append(f"leave {schema.get()}")

    @asynccontextmanager
    async def asurround(ctx: Context) -> AsyncGenerator[None]:
        await asyncio.sleep(0)
        with surround(ctx):
            yield

    app.tenant_context(surround if hook == "plain" else asurround)

    def work() -> str:
        events.append(schema.get())
        if end == "raises":
            raise ValueError
        return schema.get()

    if kind == "plain":

        @app.task(name="work", max_attempts=1)
        def task() -> str:
            return work()
    else:

        @app.task(name="work", max_attempts=1)
        async def task() -> str:
            await asyncio.sleep(0)
            return work()

    job = await task.using(tenant="acme").aenqueue()
    await world.burst(app)
    left = "leave schema of acme"
    middle = ["error"] if end == "raises" else []
    assert events == ["enter", "schema of acme", *middle, left]
    assert (await job.arefresh()).state is (State.DEAD if end == "raises" else State.SUCCEEDED)
    assert schema.get() == "none"


@pytest.mark.parametrize("cause", ["timeout", "cancel"])
async def test_the_hook_is_left_on_timeout_and_cancel(world: World, app: Fairlane, cause: str) -> None:
    """An async handler that is stopped leaves it on its way out."""
    clock, began, events = LeapingClock(), asyncio.Event(), list[str]()

    @app.tenant_context
    @contextmanager
    def surround(ctx: Context) -> Generator[None]:
        events.append("enter")
        try:
            yield
        finally:
            events.append("leave")

    @app.task(name="slow", timeout=60, max_attempts=1)
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG):
        await began.wait()
        if cause == "timeout":
            clock.leap(61)
        else:
            await job.acancel()
        ended = await world.ended(job)
    assert events == ["enter", "leave"]
    assert ended.state is (State.DEAD if cause == "timeout" else State.CANCELLED)


async def test_an_async_hook_around_an_abandoned_thread_is_left(world: World, app: Fairlane) -> None:
    """The thread goes on, and nothing waits for it."""
    clock, began, release, left = LeapingClock(), threading.Event(), threading.Event(), asyncio.Event()

    @app.tenant_context
    @asynccontextmanager
    async def surround(ctx: Context) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            left.set()

    @app.task(name="stuck", timeout=60, max_attempts=1)
    def stuck() -> None:
        began.set()
        release.wait(20)

    job = await stuck.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await until(began.is_set)
        clock.leap(61)
        await left.wait()
        assert (await world.ended(job)).attempts[-1].error_class is ErrorClass.TIMEOUT
        release.set()
        await until(lambda: worker.running == 0)


async def test_a_hook_that_raises_fails_the_attempt(world: World, app: Fairlane) -> None:
    """The handler never runs, and the worker lives on."""
    ran: list[int] = []

    @app.tenant_context
    def surround(ctx: Context) -> AbstractContextManager[None]:
        message = "no such schema"
        raise LookupError(message)

    @app.task(name="work")
    async def work() -> None:
        ran.append(1)

    job = await work.using(tenant="acme").aenqueue()
    await world.burst(app)
    failed = await job.arefresh()
    assert (failed.state, failed.attempts[-1].message, ran) == (State.DELAYED, "no such schema", [])


@pytest.mark.parametrize("hook", ["plain", "async"])
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_handler_whose_error_the_hook_swallows_runs_once_and_has_succeeded(
    world: World, app: Fairlane, kind: str, hook: str
) -> None:
    """As with any `with` statement: what was swallowed never happened."""
    ran: list[str] = []

    @contextmanager
    def surround(ctx: Context) -> Generator[None]:
        with suppress(ValueError):
            yield

    @asynccontextmanager
    async def surround_async(ctx: Context) -> AsyncGenerator[None]:
        with suppress(ValueError):
            yield

    app.tenant_context(surround if hook == "plain" else surround_async)

    def fail() -> None:
        ran.append(current_tenant())
        raise ValueError

    async def fail_async() -> None:
        fail()

    task = app.task(name="fails", max_attempts=1)(fail if kind == "plain" else fail_async)
    job = await task.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert (ran, (await job.arefresh()).state) == (["acme"], State.SUCCEEDED)


def test_there_is_one_hook() -> None:
    """A second one would leave open which comes first."""
    app = Fairlane()

    @app.tenant_context
    @contextmanager
    def one(ctx: Context) -> Generator[None]:
        yield

    with pytest.raises(ConfigError):
        app.tenant_context(one)


# ── walls ────────────────────────────────────────────────────────────────────


def call_in_thread(call: Callable[[], Any], *, with_context: bool) -> Any:
    """Run something in a new thread and return its result or error."""
    found: list[Any] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found.append(context.run(call) if with_context else call())
        except Exception as error:  # noqa: BLE001 (given to who asked)
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


async def test_in_a_worker_a_call_from_a_thread_of_the_handler_s_own_is_refused(
    world: World, app: Fairlane
) -> None:
    """S9: not unscoped. With the handler's context, or with a reason, it is allowed."""
    found: list[Any] = []

    @app.task(name="note")
    def note() -> None: ...

    def as_system() -> Any:
        with app.as_system(reason="nightly count"):
            return sum(app.jobs.count().values())

    def as_other() -> Any:
        with app.tenant("globex"):
            return note.enqueue()

    @app.task(name="starts")
    def starts(ctx: Context) -> None:
        calls = (note.enqueue, app.jobs.count, ctx.job.refresh, as_other)
        found.extend(call_in_thread(call, with_context=False) for call in calls)
        found.append(call_in_thread(note.enqueue, with_context=True))
        found.append(call_in_thread(as_system, with_context=False))

    await note.using(tenant="globex").aenqueue()
    await starts.using(tenant="acme").aenqueue()
    with require_tenant():
        await world.burst(app)
    assert [type(one) for one in found[:4]] == [OutsideTenant] * 4
    assert found[4].tenant == "acme"
    assert found[5] >= 2


async def test_a_system_task_acts_for_all_only_in_the_tenant_system(world: World, app: Fairlane) -> None:
    """S8: another application may enqueue the task for a tenant; that job acts for this tenant only."""
    found: list[Any] = []

    @app.task(name="sweep", system=True)
    async def sweep() -> None:
        try:
            found.append(sum((await app.jobs.acount(tenant="globex")).values()))
        except TenantMismatch as error:
            found.append(error.scope)

    other = world.app()
    await other.task(name="note")(lambda: None).using(tenant="globex", delay=60).aenqueue()
    await other.task(name="sweep")(lambda: None).using(tenant="acme").aenqueue()
    await sweep.aenqueue()
    await world.burst(app)
    assert sorted(found, key=str) == [1, "acme"]


async def test_acting_for_all_tenants_is_logged_with_its_reason(
    app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """Inside a tenant it is the only widening; it ends with its block."""

    @app.task(name="note")
    async def note() -> None: ...

    await note.using(tenant="globex").aenqueue()
    with app.tenant("acme"):
        with app.as_system(reason="nightly count"):
            assert sum((await app.jobs.acount()).values()) == 1
            assert (await note.using(tenant="globex").aenqueue()).tenant == "globex"
        assert sum((await app.jobs.acount()).values()) == 0
        with pytest.raises(TenantMismatch):
            await note.using(tenant="globex").aenqueue()
    (record,) = [one for one in caplog.records if one.__dict__.get("event") == "as_system"]
    assert (record.__dict__["reason"], record.__dict__["tenant"]) == ("nightly count", "acme")
    with pytest.raises(ValueError, match="needs a reason"), app.as_system(reason=" "):
        pass
