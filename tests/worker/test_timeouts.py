"""Soft and hard timeouts: handlers are asked once, cancelled, abandoned; and what remains (S31)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fairlane import Context, ErrorClass, Fairlane, Lane, SoftTimeout, State
from fairlane.app.task.context import AttemptControl
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.worker import WorkerRuntime
from tests.worker.world import LONG, LeapingClock, World, until


@pytest.fixture
def clock() -> LeapingClock:
    """A worker's clock that a test moves on."""
    return LeapingClock()


async def test_a_timeout_does_not_run_while_another_handler_blocks_the_loop(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """It runs from the start of the handler: both were claimed at once, and one had to wait for the other."""
    began, release = asyncio.Event(), asyncio.Event()

    @app.task(name="blocks", timeout=600)
    async def blocks() -> None:
        clock.leap(61)

    @app.task(name="waits", timeout=60)
    async def waits() -> None:
        began.set()
        await release.wait()

    await blocks.using(tenant="acme").aenqueue()
    job = await waits.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await began.wait()
        assert worker._parts is not None
        worker._parts.timeouts.check()
        release.set()
        ended = await world.ended(job)
        assert (ended.state, ended.attempt) == (State.SUCCEEDED, 1)


async def test_a_timeout_is_checked_while_a_settlement_of_another_lane_is_unanswered(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """Checks pause while no handler runs. An ended attempt without a settlement must not prolong this."""
    began, left = asyncio.Event(), asyncio.Event()

    @app.task(name="brief", queue="one")
    async def brief() -> None: ...

    @app.task(name="slow", queue="two", timeout=60)
    async def slow() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    lanes = [Lane("first", 1, ["one"]), Lane("second", 1, ["two"])]
    async with world.working(app, clock=clock, settings=LONG, lanes=lanes) as worker:
        world.held = {"settle"}
        assert worker._parts is not None
        timeouts = worker._parts.timeouts
        await brief.using(tenant="acme").aenqueue()
        await until(lambda: bool(world.requests("settle")) and timeouts.is_idle)
        await slow.using(tenant="acme").aenqueue()
        await began.wait()
        clock.leap(61)
        try:
            await asyncio.wait_for(left.wait(), 10)
        finally:
            world.held = set()


async def test_an_async_handler_is_cancelled_at_its_timeout(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """The attempt is settled as failed, class `timeout`, and the job is tried again."""
    began, left = asyncio.Event(), asyncio.Event()

    @app.task(name="slow", timeout=60)
    async def slow() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await began.wait()
        clock.leap(61)
        await until(left.is_set)
        await until(lambda: worker.failed == 1)
        late = await job.arefresh()
    assert (late.state, late.failures) == (State.DELAYED, 1)
    assert late.attempts[-1].error_class is ErrorClass.TIMEOUT


async def test_an_async_handler_that_will_not_stop_is_given_up_after_five_seconds(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """Its slot is free again and its attempt settled; what it returns later changes nothing."""
    began, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.task(name="deaf", timeout=60, max_attempts=1)
    async def deaf() -> str:
        began.set()
        while not (release.is_set() or world.is_over):
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        return "too late"

    job = await deaf.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await began.wait()
        clock.leap(61)
        await until(lambda: (attempt := running(worker)) is not None and attempt.is_abandoned_next)
        assert (await job.arefresh()).state is State.RUNNING
        clock.leap(5)
        dead = await world.ended(job)
        assert (dead.state, dead.attempts[-1].error_class) == (State.DEAD, ErrorClass.TIMEOUT)
        await until(lambda: worker.running == 0)
        assert worker.has_abandoned
        release.set()
        await ended.wait()
        await until(lambda: not worker.has_abandoned)
    assert (await job.arefresh()).state is State.DEAD
    assert worker.settled == 1


def running(worker: WorkerRuntime) -> LiveAttempt | None:
    """Return the one attempt that runs."""
    found = [] if worker._parts is None else worker._parts.attempts.running()
    return found[0] if found else None


async def test_a_thread_is_abandoned_at_its_timeout_and_another_takes_its_place(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """Nothing can stop a thread: it is told, the attempt is settled, the slot is free."""
    began, release = threading.Event(), threading.Event()
    told: list[bool] = []

    @app.task(name="stuck", timeout=60, max_attempts=1)
    def stuck(ctx: Context) -> None:
        began.set()
        release.wait(20)
        told.append(ctx.cancelled)

    @app.task(name="next")
    def after() -> None: ...

    job = await stuck.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await until(began.is_set)
        clock.leap(61)
        dead = await world.ended(job)
        assert (dead.state, dead.attempts[-1].error_class) == (State.DEAD, ErrorClass.TIMEOUT)
        await world.ended(await after.using(tenant="acme").aenqueue())
        release.set()
        await until(lambda: told == [True])
    assert worker.settled == 2


async def test_a_job_without_timeout_is_left_alone(world: World, app: Fairlane, clock: LeapingClock) -> None:
    """None means none, however long it takes."""
    began, release = asyncio.Event(), asyncio.Event()

    @app.task(name="endless", timeout=None)
    async def endless() -> str:
        began.set()
        await release.wait()
        return "done"

    job = await endless.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await began.wait()
        clock.leap(90_000)
        await until(lambda: bool(world.requests("renew")))
        assert worker.running == 1
        release.set()
        assert (await world.ended(job)).state is State.SUCCEEDED


# ── soft ─────────────────────────────────────────────────────────────────────


async def test_an_async_handler_gets_its_soft_timeout_once_where_it_awaits(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """It can tidy up and end well; the cancellation is not seen by what it awaits afterwards."""
    began, went_on, release = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.task(name="careful", timeout=600, soft_timeout=60)
    async def careful() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except SoftTimeout:
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
            went_on.set()
            await release.wait()
        return "in time"

    job = await careful.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG):
        await began.wait()
        clock.leap(61)
        await went_on.wait()
        clock.leap(100)
        release.set()
        ended = await world.ended(job)
    assert await ended.aresult() == "in time"


async def test_a_soft_timeout_passes_through_what_the_handler_awaits_as_a_cancellation(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """A task group is cancelled whole, a lock's queue stays in order, `except Exception` is passed."""
    began, member_left = asyncio.Event(), asyncio.Event()
    guard = asyncio.Lock()

    async def member() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            member_left.set()

    @app.task(name="deep", timeout=600, soft_timeout=60, max_attempts=1)
    async def deep() -> str:
        try:
            async with asyncio.timeout(500), asyncio.TaskGroup() as group:
                group.create_task(member())
                began.set()
                async with guard:
                    pass
        except Exception:  # noqa: BLE001 (the point: it must not be caught here)
            return "swallowed"
        return "not reached"

    async with guard, world.working(app, clock=clock, settings=LONG):
        job = await deep.using(tenant="acme").aenqueue()
        await began.wait()
        clock.leap(61)
        await member_left.wait()
        dead = await world.ended(job)
    assert (dead.state, dead.attempts[-1].error_class) == (State.DEAD, ErrorClass.TIMEOUT)
    assert dead.attempts[-1].error_type == "fairlane.app.task.context.SoftTimeout"
    async with asyncio.timeout(10), guard:
        pass


async def test_a_handler_that_ignores_its_soft_timeout_meets_the_hard_one(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """The second time it is a plain cancellation."""
    seen: list[str] = []
    began, again = asyncio.Event(), asyncio.Event()

    @app.task(name="stubborn", timeout=600, soft_timeout=60, max_attempts=1)
    async def stubborn() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except SoftTimeout:
            seen.append("soft")
            again.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            seen.append(type(error).__name__)
            raise

    job = await stubborn.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG):
        await began.wait()
        clock.leap(61)
        await again.wait()
        clock.leap(600)
        dead = await world.ended(job)
    assert seen == ["soft", "CancelledError"]
    assert dead.attempts[-1].error_class is ErrorClass.TIMEOUT


async def test_a_plain_handler_sees_its_soft_timeout_when_it_looks(
    world: World, app: Fairlane, clock: LeapingClock
) -> None:
    """`cancelled` is true and `check` raises once; then the handler decides."""
    began = threading.Event()

    @app.task(name="careful", timeout=600, soft_timeout=60)
    def careful(ctx: Context) -> str:
        ctx.check()
        began.set()
        while not ctx.cancelled:
            threading.Event().wait(0.005)
        with pytest.raises(SoftTimeout):
            ctx.check()
        ctx.check()
        return "in time"

    job = await careful.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG):
        await until(began.is_set)
        clock.leap(61)
        assert await (await world.ended(job)).aresult() == "in time"


def test_a_stop_comes_before_a_soft_timeout() -> None:
    """Who must stop is not asked to be careful."""
    control = AttemptControl()
    control.is_soft_timeout_due = True
    control.stop("lost")
    assert control.stop_reason == "lost"
    assert control.take_soft_timeout()
    assert not control.take_soft_timeout()
