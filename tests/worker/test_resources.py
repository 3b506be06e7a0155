"""Resources and hooks: opened once before the first job, closed in reverse order, whatever happens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

import pytest

from fairlane import ConfigError, Context, Fairlane, StartupFailed, State
from fairlane.app import resources as module
from fairlane.app.resources import OpenResources
from fairlane.worker.worker import WorkerRuntime
from tests.worker.world import QUICK, World, events, thread_name, until


class Pool:
    """A resource."""


class Cache:
    """Another one."""


@pytest.fixture
def seen() -> list[str]:
    """What has happened, in order."""
    return []


def declare_all(app: Fairlane, seen: list[str]) -> None:
    """Declare an async and a plain resource, and two hooks of each kind."""

    @app.resource(Pool)
    async def pool() -> AsyncIterator[Pool]:
        seen.append("+pool")
        yield Pool()
        seen.append("-pool")

    @app.resource(Cache)
    def cache() -> Iterator[Cache]:
        seen.append("+cache")
        yield Cache()
        seen.append("-cache")

    @app.on_startup
    def first() -> None:
        seen.append("start 1")

    @app.on_startup
    async def second() -> None:
        seen.append("start 2")

    @app.on_shutdown
    async def early() -> None:
        seen.append("end 1")

    @app.on_shutdown
    def late() -> None:
        seen.append("end 2")


async def test_resources_are_opened_before_and_closed_after_all_jobs(
    world: World, app: Fairlane, seen: list[str]
) -> None:
    """In the order declared, and in reverse; async and plain handlers get the same object."""
    declare_all(app, seen)
    got: list[object] = []

    @app.task(name="plain")
    def plain(ctx: Context) -> None:
        seen.append("job")
        got.extend([ctx.resource(Pool), ctx.resource(Cache)])

    @app.task(name="async")
    async def loop(ctx: Context) -> None:
        seen.append("job")
        got.extend([ctx.resource(Pool), ctx.resource(Cache)])

    await plain.using(tenant="acme").aenqueue()
    await loop.using(tenant="acme").aenqueue()
    worker = await world.burst(app)
    assert worker.failed == 0
    assert seen == [
        *("+pool", "+cache", "start 1", "start 2"),
        *("job", "job"),
        *("end 2", "end 1", "-cache", "-pool"),
    ]
    assert [type(one) for one in got] == [Pool, Cache, Pool, Cache]
    assert got[:2] == got[2:]


async def test_an_async_resource_lives_in_the_loop_and_task_of_the_worker(
    world: World, app: Fairlane
) -> None:
    """Cancel scopes of libraries must be left by the task that entered them."""
    where: list[object] = []

    @app.resource(Pool)
    async def pool() -> AsyncIterator[Pool]:
        where.append((asyncio.get_running_loop(), asyncio.current_task()))
        async with asyncio.timeout(None):
            yield Pool()
        where.append((asyncio.get_running_loop(), asyncio.current_task()))

    await world.burst(app)
    assert where[0] == where[1]
    assert where[0][0] is asyncio.get_running_loop()  # type: ignore[index]


async def test_a_plain_resource_may_block_without_blocking_the_loop(world: World, app: Fairlane) -> None:
    """It is opened in a thread of its own."""
    go, inside = threading.Event(), threading.Event()
    names: list[str] = []

    @app.resource(Pool)
    def slow() -> Iterator[Pool]:
        names.append(thread_name())
        inside.set()
        assert go.wait(30)
        yield Pool()

    worker = WorkerRuntime(app, burst=True, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await until(inside.is_set)
    assert not worker.is_ready
    assert world.requests("claim") == []
    go.set()
    await running
    assert names[0].startswith("fairlane-resources")


def returns_plain() -> AbstractContextManager[Pool]:
    """Return a context manager."""

    @contextmanager
    def around() -> Iterator[Pool]:
        yield Pool()

    return around()


@asynccontextmanager
async def decorated() -> AsyncGenerator[Pool]:
    """Be a context manager already."""
    yield Pool()


@pytest.mark.parametrize("make", [returns_plain, decorated], ids=["plain", "async"])
async def test_a_function_may_return_a_context_manager(
    world: World, app: Fairlane, make: Callable[[], Any]
) -> None:
    """What is a context manager already is used as it is."""
    got: list[object] = []
    app.resource(Pool)(make)

    @app.task(name="one")
    def one(ctx: Context) -> None:
        got.append(ctx.resource(Pool))

    await one.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert [type(found) for found in got] == [Pool]


# ── what goes wrong ───────────────────────────────────────────────────────────


async def test_a_start_up_that_fails_half_way_closes_what_is_open_and_claims_nothing(
    world: World, app: Fairlane, seen: list[str]
) -> None:
    """The error names what failed; the worker was never registered."""
    declare_all(app, seen)

    @app.on_startup
    def third() -> None:
        message = "no licence"
        raise OSError(message)

    @app.task(name="one")
    def one() -> None: ...

    job = await one.using(tenant="acme").aenqueue()
    with pytest.raises(StartupFailed, match=r"on_startup third: could not start: OSError: no licence"):
        await WorkerRuntime(app, burst=True, settings=QUICK).run()
    assert seen == ["+pool", "+cache", "start 1", "start 2", "-cache", "-pool"]
    assert world.requests("register") == world.requests("claim") == []
    assert (await job.arefresh()).state is State.READY


async def test_what_raises_at_its_close_is_logged_and_the_others_are_closed(
    world: World, app: Fairlane, seen: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The worker ends well: its jobs are settled."""
    declare_all(app, seen)

    @app.resource(bytearray)
    async def bad() -> AsyncIterator[bytearray]:
        yield bytearray()
        message = "broken"
        raise OSError(message)

    @app.on_shutdown
    def also_bad() -> None:
        raise SystemExit

    await world.burst(app)
    assert seen[-4:] == ["end 2", "end 1", "-cache", "-pool"]
    assert events(caplog).count("close_failed") == 2
    assert "resource bytearray raised OSError: broken" in caplog.text


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_close_that_hangs_is_left_alone(
    world: World,
    app: Fairlane,
    seen: list[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """The others are closed in time."""
    monkeypatch.setattr(module, "CLOSE_TIMEOUT", 0.05)
    declare_all(app, seen)
    forever = threading.Event()

    if kind == "plain":

        @app.on_shutdown
        def hang() -> None:
            forever.wait(60)
    else:

        @app.on_shutdown
        async def hang_async() -> None:
            await asyncio.Event().wait()

    await world.burst(app)
    forever.set()
    assert seen[-4:] == ["end 2", "end 1", "-cache", "-pool"]
    assert "did not end within 0.05 s" in caplog.text


async def test_a_stop_cuts_the_start_up_short(world: World, app: Fairlane, seen: list[str]) -> None:
    """SIGTERM during a start-up that hangs ends the worker in good order."""
    declare_all(app, seen)
    inside = asyncio.Event()

    @app.on_startup
    async def hang() -> None:
        inside.set()
        await asyncio.Event().wait()

    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await inside.wait()
    worker.stop()
    await running
    assert seen[-2:] == ["-cache", "-pool"]
    assert world.requests("register") == []


async def test_a_cancelled_worker_closes_its_resources_and_stays_cancelled(
    app: Fairlane, seen: list[str]
) -> None:
    """An embedded worker is ended by cancelling its task."""
    declare_all(app, seen)
    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await until(lambda: worker.is_ready)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen[-2:] == ["-cache", "-pool"]


async def test_a_resource_of_another_type_is_refused(app: Fairlane) -> None:
    """A handler that trusts its type checker must not meet something else."""

    @app.resource(Pool)
    def wrong() -> Iterator[Pool]:
        yield Cache()  # type: ignore[misc]

    with pytest.raises(StartupFailed, match="resource Pool: a Cache was made instead of a Pool"):
        await OpenResources(app.client.resources).open()


async def test_a_function_that_makes_no_resource_is_refused(app: Fairlane) -> None:
    """It must yield, or return a context manager."""
    app.resource(Pool)(Pool)  # type: ignore[arg-type]
    with pytest.raises(StartupFailed, match="must yield it, or return a context manager, not a Pool"):
        await OpenResources(app.client.resources).open()


def test_bad_declarations_are_refused(app: Fairlane) -> None:
    """At once, where they stand."""

    def cache() -> Iterator[Cache]:
        yield Cache()

    async def returns() -> Cache:
        return Cache()

    app.resource(Cache)(cache)
    with pytest.raises(ConfigError, match="resource Cache: it is declared twice"):
        app.resource(Cache)(cache)
    with pytest.raises(ConfigError, match="has no end; yield the resource"):
        app.resource(Pool)(returns)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="called without arguments"):
        app.on_startup(lambda needed: needed)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="on_shutdown must be a function, not 7"):
        app.on_shutdown(7)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="must be a class"):
        app.resource("Cache")(cache)  # type: ignore[arg-type]


async def test_a_kind_that_nobody_declared_is_named(world: World, app: Fairlane, seen: list[str]) -> None:
    """The error says how to declare it, and what is declared."""
    declare_all(app, seen)
    found: list[str] = []

    @app.task(name="one")
    def one(ctx: Context) -> None:
        try:
            ctx.resource(bytearray)
        except ConfigError as error:
            found.append(str(error))

    await one.using(tenant="acme").aenqueue()
    await world.burst(app)
    (text,) = found
    assert text.startswith("resource bytearray: no such resource is declared; declare it with @app.resource(")
    assert text.endswith("Declared: Cache, Pool")


# ── more than one process or worker ───────────────────────────────────────────


async def test_each_worker_has_its_own(world: World, app: Fairlane) -> None:
    """Two workers in one process share no async resource: each may have a loop of its own."""
    made: list[Pool] = []

    @app.resource(Pool)
    async def pool() -> AsyncIterator[Pool]:
        made.append(Pool())
        yield made[-1]

    await world.burst(app)
    await world.burst(app)
    assert len(set(made)) == 2
