"""A worker that is told to stop: finishes, hands back, cancels, leaves; and at once if told twice (S32)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fairlane import Context, ErrorClass, Fairlane, Lane, State
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import WorkersRequest
from fairlane.worker import report
from fairlane.worker.worker import WorkerRuntime
from tests.seconds import counted
from tests.worker.world import ALL_VERBS, LONG, QUICK, LeapingClock, World, changed, events, until


async def test_an_idle_worker_stops_within_a_second_and_leaves_the_registry(
    world: World, app: Fairlane
) -> None:
    """Nothing runs, so there is nothing to wait for."""

    @app.task(name="noop")
    async def noop() -> None: ...

    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await until(lambda: worker.is_ready)
    request = WorkersRequest(scope=Scope.all())
    assert [view.record.id for view in await app.client.store.registry.workers(request)] == [worker.id]
    async with counted() as seconds:
        worker.stop()
        await running
    assert seconds() < 1
    assert await app.client.store.registry.workers(request) == ()


async def test_no_heartbeat_follows_the_leave_of_a_worker(world: World, app: Fairlane) -> None:
    """Otherwise it would be registered again and look alive: it calls nothing after it has left."""
    for _ in range(10):
        worker = await world.burst(app, settings=changed(QUICK, renew_every=2_000), duties=False)
        left = max(number for number, (verb, *_) in enumerate(world.asked) if verb == "leave")
        assert [verb for verb, *_ in world.asked[left + 1 :]] == []
        assert worker.running == 0
    assert await app.client.store.registry.workers(WorkersRequest(scope=Scope.all())) == ()


async def test_a_stop_that_comes_while_the_worker_starts_counts_once(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two would be a fast shutdown, which gives running jobs no time."""
    caplog.set_level("INFO")
    worker = WorkerRuntime(app, settings=QUICK)
    monkeypatch.setattr(report, "started", lambda _record: worker.stop())
    await asyncio.wait_for(worker.run(), 20)
    assert events(caplog).count("worker_stopping") == 1


async def test_running_jobs_may_finish_before_the_deadline(world: World, app: Fairlane) -> None:
    """Nothing new is claimed meanwhile, and what waits stays where it is."""
    began, release = asyncio.Event(), asyncio.Event()

    @app.task(name="slow")
    async def slow() -> str:
        began.set()
        await release.wait()
        return "finished"

    first = await slow.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await began.wait()
    worker.stop()
    later = await slow.using(tenant="acme").aenqueue()
    await until(lambda: any(one.state == "draining" for one in world.requests("heartbeat")))
    release.set()
    await asyncio.wait_for(running, 20)
    assert await first.aresult() == "finished"
    assert ((await later.arefresh()).state, later.attempt) == (State.READY, 0)


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_at_the_deadline_jobs_are_handed_back_or_fail_as_their_task_says(
    world: World, app: Fairlane, kind: str
) -> None:
    """S32: `requeue` keeps its place and counts no failure; others are cancelled and fail as retryable."""
    clock = LeapingClock()
    began: list[str] = []

    async def wait(name: str) -> None:
        began.append(name)
        await asyncio.Event().wait()

    def look(ctx: Context, name: str) -> None:
        began.append(name)
        while True:
            ctx.check()
            threading.Event().wait(0.005)

    if kind == "async":

        @app.task(name="again", on_shutdown="requeue")
        async def again() -> None:
            await wait("again")

        @app.task(name="fails")
        async def fails() -> None:
            await wait("fails")
    else:

        @app.task(name="again", on_shutdown="requeue")
        def again(ctx: Context) -> None:
            look(ctx, "again")

        @app.task(name="fails")
        def fails(ctx: Context) -> None:
            look(ctx, "fails")

    back, failed = await again.using(tenant="acme").aenqueue(), await fails.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=LONG, clock=clock)
    running = asyncio.ensure_future(worker.run())
    await until(lambda: len(began) == 2)
    worker.stop()
    await until(lambda: any(one.state == "draining" for one in world.requests("heartbeat")))
    assert worker.running == 2
    clock.leap(11)
    await asyncio.wait_for(running, 20)
    back, failed = await back.arefresh(), await failed.arefresh()
    assert (back.state, back.failures, back.attempts[-1].outcome) == (State.READY, 0, "returned")
    assert (failed.state, failed.failures) == (State.DELAYED, 1)
    assert failed.attempts[-1].error_class is ErrorClass.RETRYABLE


async def test_a_handler_that_finishes_while_it_is_stopped_has_succeeded(world: World, app: Fairlane) -> None:
    """Its work is done; handing it back would do it twice."""
    clock, began = LeapingClock(), asyncio.Event()

    @app.task(name="tidy", on_shutdown="requeue")
    async def tidy() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "tidied"
        return ""

    job = await tidy.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=LONG, clock=clock)
    running = asyncio.ensure_future(worker.run())
    await began.wait()
    worker.stop()
    await until(lambda: any(one.state == "draining" for one in world.requests("heartbeat")))
    clock.leap(11)
    await asyncio.wait_for(running, 20)
    assert await job.aresult() == "tidied"


@pytest.mark.parametrize("kind", ["async", "plain", "deaf async", "deaf plain"])
async def test_told_twice_a_worker_is_gone_within_about_a_second(
    world: World, app: Fairlane, kind: str
) -> None:
    """Handlers that it can stop are handed back or fail; the others are abandoned and settled too."""
    began, release = threading.Event(), threading.Event()

    if kind.endswith("async"):

        @app.task(name="slow", on_shutdown="requeue")
        async def slow() -> None:
            began.set()
            while not (release.is_set() or world.is_over):
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    if kind == "async":
                        raise
    else:

        @app.task(name="slow", on_shutdown="requeue")
        def slow(ctx: Context) -> None:
            began.set()
            while not (release.is_set() or world.is_over):
                if kind == "plain":
                    ctx.check()
                threading.Event().wait(0.01)

    job = await slow.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await until(began.is_set)
    async with counted() as seconds:
        worker.stop()
        worker.stop()
        await asyncio.wait_for(running, 20)
    release.set()
    await until(lambda: not worker.has_abandoned)
    assert seconds() < 2
    assert ((await job.arefresh()).state, (await job.arefresh()).failures) == (State.READY, 0)


async def test_claims_that_arrive_after_the_stop_go_back_untouched(world: World, app: Fairlane) -> None:
    """The stop comes while a claim is on its way: no handler starts, and the job keeps its place."""
    ran: list[int] = []

    @app.task(name="noop")
    async def noop() -> None:
        ran.append(1)

    job = await noop.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=QUICK)
    world.before["claim"] = worker.stop
    await asyncio.wait_for(worker.run(), 20)
    back = await job.arefresh()
    assert (ran, back.state, back.failures) == ([], State.READY, 0)
    assert (back.attempt, list(back.attempts)) == (0, [])
    assert [one.is_unstarted for request in world.requests("settle") for one in request.settlements] == [True]


async def test_a_worker_that_was_told_before_it_ran_stops_at_once(world: World, app: Fairlane) -> None:
    """A signal during the start is not lost."""
    worker = WorkerRuntime(app, settings=QUICK)
    worker.stop()
    await asyncio.wait_for(worker.run(), 20)


async def test_a_worker_without_a_store_still_stops(world: World, app: Fairlane) -> None:
    """After a second signal it does not wait for a store that does not answer; its job is reclaimed later."""
    began = asyncio.Event()

    @app.task(name="slow")
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    job = await slow.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await began.wait()
    world.away = ALL_VERBS | {"leave"}
    async with counted() as seconds:
        worker.stop()
        worker.stop()
        await asyncio.wait_for(running, 20)
    assert seconds() < 5
    world.away = frozenset()
    assert (await job.arefresh()).state is State.RUNNING


# ── bursts and enough ────────────────────────────────────────────────────────


async def test_a_burst_ends_when_nothing_is_claimable_and_nothing_runs(world: World) -> None:
    """Also when a job of one lane makes work for another; what is delayed is not waited for."""
    app = world.app(lanes=[Lane("a", 2, ["first"]), Lane("b", 2, ["second"])])

    @app.task(name="second", queue="second")
    async def second(left: int) -> None:
        await asyncio.sleep(0.01)
        if left:
            await first.aenqueue(left - 1)

    @app.task(name="first", queue="first")
    async def first(left: int) -> None:
        await asyncio.sleep(0.01)
        if left:
            await second.aenqueue(left - 1)

    await first.using(tenant="acme").aenqueue(7)
    later = await first.using(tenant="acme", delay=3600).aenqueue(0)
    worker = await world.burst(app)
    assert worker.settled == 8
    assert (await later.arefresh()).state is State.DELAYED


async def test_a_burst_over_nothing_ends_at_once(world: World, app: Fairlane) -> None:
    """There is nothing to wait for."""
    assert (await world.burst(app)).settled == 0


async def test_a_worker_that_has_done_enough_jobs_ends_by_itself(world: World, app: Fairlane) -> None:
    """`max_jobs`: whoever started it starts another."""

    @app.task(name="noop")
    async def noop() -> None: ...

    for _ in range(5):
        await app.aenqueue_many(noop.using(tenant="acme").bind() for _ in range(1000))
    worker = WorkerRuntime(app, settings=changed(QUICK, max_jobs=20, shutdown_deadline=5 * SECOND))
    await asyncio.wait_for(worker.run(), 20)
    assert worker.settled == 20
    counts = await app.jobs.acount()
    assert (counts[State.SUCCEEDED], counts[State.READY]) == (worker.settled, 5000 - worker.settled)
