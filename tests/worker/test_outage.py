"""During an outage handlers go on, settlements stay pending, and it is logged once (S66)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from fairlane import Backoff, Context, Fairlane, Lane, Retry, State, StoreUnavailable
from fairlane.store.opening import open_store
from fairlane.worker.worker import WorkerRuntime
from tests.worker.world import ALL_VERBS, LONG, QUICK, World, events, until


async def test_settlements_are_kept_until_the_store_is_back(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler ends during the outage; its job is settled after it, once, and both are logged once."""
    caplog.set_level("INFO", "fairlane")
    began, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.task(name="slow")
    async def slow() -> str:
        began.set()
        await release.wait()
        ended.set()
        return "kept"

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, settings=LONG) as worker:
        await began.wait()
        world.away = ALL_VERBS
        release.set()
        await ended.wait()
        await until(lambda: len(world.requests("settle")) >= 3)
        assert (await job.arefresh()).state is State.RUNNING
        world.away = frozenset()
        assert await (await world.ended(job)).aresult() == "kept"
        await until(lambda: worker.settled == 1)
        await until(lambda: "store_back" in events(caplog))
    assert events(caplog).count("store_away") == 1
    assert (await job.arefresh()).attempt == 1


async def test_a_settlement_whose_answer_was_lost_is_not_counted_twice(world: World, app: Fairlane) -> None:
    """It is sent again and is stale; the job is as the first one made it."""

    @app.task(name="noop")
    async def noop() -> None: ...

    job = await noop.using(tenant="acme").aenqueue()
    world.deaf = ["settle"]
    async with world.working(app) as worker:
        await world.ended(job)
        await until(lambda: len(world.requests("settle")) >= 2 and not worker._parts.attempts)  # type: ignore[union-attr]
        await world.ended(await noop.using(tenant="acme").aenqueue())
    assert (await job.arefresh()).attempt == 1
    assert worker.settled == 1


async def test_settlements_that_the_store_did_not_answer_for_are_sent_again(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """The store went away after the first: that one is settled, the others are sent again."""
    began, release = asyncio.Semaphore(0), asyncio.Event()

    @app.task(name="slow")
    async def slow() -> None:
        began.release()
        await release.wait()

    jobs = [await slow.using(tenant="acme").aenqueue() for _ in range(3)]
    async with world.working(app, settings=LONG) as worker:
        for _ in jobs:
            await began.acquire()
        world.hears = 1
        release.set()
        await until(lambda: worker.settled == 3)
        assert not worker._parts.attempts  # type: ignore[union-attr]
    assert "settlement_stale" not in events(caplog)
    assert [(await job.arefresh()).state for job in jobs] == [State.SUCCEEDED] * 3


async def test_a_job_that_came_back_before_its_settlement_was_answered_is_named_once(world: World) -> None:
    """Of its two attempts the older is stale already; the store's answer could not tell them apart."""
    world.concurrent_calls = 2
    app = world.app(lanes=[Lane("main", 4, ["default"], headroom=0, prefetch=0)])
    release = asyncio.Event()

    @app.task(name="again", retry=Backoff.delays(0))
    async def again(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise Retry
        await release.wait()

    job = await again.using(tenant="acme").aenqueue()
    world.held = {"settle"}
    store = open_store(world.url, clock=world)
    async with world.working(app, settings=LONG) as worker:
        await until(lambda: len(world.requests("settle")) == 1)
        (request,) = world.requests("settle")
        await store.claims.settle(msgspec.structs.replace(request, claim=None))  # which nobody answers
        worker._parts.shutdown.wake_lanes()  # type: ignore[union-attr]
        await world.when(job, lambda one: one.state is State.RUNNING)
        release.set()
        await until(lambda: len(world.requests("settle")) == 2)
        world.deaf = ["settle", "settle"]
        world.held.clear()
        assert (await world.ended(job)).attempt == 2
        await until(lambda: not worker._parts.attempts)  # type: ignore[union-attr]
    await store.upkeep.aclose()
    named = [[one.id for one in request.settlements] for request in world.requests("settle")]
    assert named[:2] == [[job.id], [job.id]]
    assert all(len(ids) == len(set(ids)) for ids in named[2:])


async def test_a_claim_whose_answer_was_lost_comes_back_by_its_lease(world: World, app: Fairlane) -> None:
    """Nobody here knows of the claim, so nobody renews it; the duties bring the job back."""

    @app.task(name="noop")
    async def noop() -> None: ...

    job = await noop.using(tenant="acme").aenqueue()
    world.deaf = ["claim"]
    async with world.working(app):
        ended = await world.ended(job)
    assert [attempt.outcome for attempt in ended.attempts] == ["lost", "succeeded"]


async def test_a_worker_whose_store_is_away_at_the_start_says_so(world: World, app: Fairlane) -> None:
    """It fails at once instead of waiting for a store that may not exist."""
    world.away = ALL_VERBS
    with pytest.raises(StoreUnavailable):
        await WorkerRuntime(app, settings=QUICK).run()
    world.away = frozenset()


async def test_a_worker_that_was_forgotten_introduces_itself_again(world: World, app: Fairlane) -> None:
    """The registry was cleaned while its heartbeats could not arrive."""
    from fairlane.model.scope import Scope  # noqa: PLC0415 (only here)
    from fairlane.store.contract.registry import LeaveRequest, WorkersRequest  # noqa: PLC0415

    async with world.working(app) as worker:
        registry = app.client.store.registry
        await registry.leave(LeaveRequest(scope=Scope.all(), worker=worker.id))
        await until(lambda: len(world.requests("register")) == 2)
        beats = len(world.requests("heartbeat"))
        await until(lambda: len(world.requests("heartbeat")) > beats)
        views = await registry.workers(WorkersRequest(scope=Scope.all()))
        assert [view.record.id for view in views] == [worker.id]
