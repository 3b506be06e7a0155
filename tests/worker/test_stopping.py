"""Running jobs that are cancelled or lose their lease: they are told, stopped and settled."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from fairlane import Backoff, CancelReply, Context, Fairlane, State
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.store.contract.claims import ReclaimRequest
from fairlane.worker import keepalive
from fairlane.worker.renew import LeaseRenewer
from fairlane.worker.worker import WorkerRuntime
from tests.seconds import counted
from tests.worker.world import (
    ALL_VERBS,
    LONG,
    QUICK,
    LeapingClock,
    World,
    changed,
    events,
    until,
    until_async,
)


async def test_cancelling_a_running_job_stops_its_async_handler_within_two_seconds(
    world: World, app: Fairlane
) -> None:
    """S30: it gets CancelledError, and the job is cancelled with the reason that was given."""
    began = asyncio.Event()

    @app.task(name="slow")
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app):
        await began.wait()
        async with counted() as seconds:
            assert await job.acancel("ordered twice") is CancelReply.REQUESTED
            gone = await world.ended(job)
        assert seconds() < 2
    assert (gone.state, gone.because) == (State.CANCELLED, "asked: ordered twice")
    assert gone.attempts[-1].outcome == "cancelled"


async def test_a_plain_handler_sees_that_its_job_is_cancelled(world: World, app: Fairlane) -> None:
    """`ctx.check` raises, and the job is cancelled."""
    began = threading.Event()

    @app.task(name="slow")
    def slow(ctx: Context) -> None:
        began.set()
        while True:
            ctx.check()
            threading.Event().wait(0.005)

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app):
        await until(began.is_set)
        await job.acancel("enough")
        assert (await world.ended(job)).because == "asked: enough"


async def test_a_handler_that_returns_although_its_job_was_cancelled_has_succeeded(
    world: World, app: Fairlane
) -> None:
    """S30: the work is done; and a handler that raises anything instead is cancelled, never retried."""
    began: list[str] = []

    @app.task(name="stubborn")
    async def stubborn(how: str) -> str:
        began.append(how)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if how == "raises":
                raise ValueError from None
        return "done"

    jobs = [await stubborn.using(tenant="acme").aenqueue(how) for how in ("returns", "raises")]
    async with world.working(app):
        await until(lambda: len(began) == 2)
        for job in jobs:
            await job.acancel("enough")
        states = [(await world.ended(job)).state for job in jobs]
    assert states == [State.SUCCEEDED, State.CANCELLED]


async def test_a_handler_that_ignores_its_cancel_is_given_up_in_the_end(world: World, app: Fairlane) -> None:
    """S30: asked, after ten seconds cancelled by force, after five more abandoned."""
    clock = LeapingClock()
    began, release = asyncio.Event(), asyncio.Event()
    cancels: list[float] = []

    @app.task(name="deaf")
    async def deaf() -> None:
        began.set()
        while not (release.is_set() or world.is_over):
            try:
                await release.wait()
            except asyncio.CancelledError:
                cancels.append(clock.elapsed())

    job = await deaf.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await began.wait()
        await job.acancel("enough")
        await until(lambda: len(cancels) == 1)
        clock.leap(10)
        await until(lambda: len(cancels) == 2)
        assert (await job.arefresh()).state is State.RUNNING
        clock.leap(5)
        gone = await world.ended(job)
        assert (gone.state, gone.because) == (State.CANCELLED, "asked: enough")
        release.set()
        await until(lambda: not worker.has_abandoned)


async def test_a_cancel_shortly_before_the_timeout_does_not_count_as_a_blocked_loop(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S31: a handler that ignores its timeout may run on for over ten seconds if the loop is not blocked."""
    clock, guards = LeapingClock(), list[int]()
    began, release = asyncio.Event(), asyncio.Event()
    cancels: list[float] = []
    real = LeaseRenewer.guard

    async def counted_guard(renewer: LeaseRenewer) -> int:
        pause = await real(renewer)
        guards.append(1)
        return pause

    monkeypatch.setattr(LeaseRenewer, "guard", counted_guard)

    @app.task(name="deaf", timeout=60)
    async def deaf() -> None:
        began.set()
        while not (release.is_set() or world.is_over):
            try:
                await release.wait()
            except asyncio.CancelledError:
                cancels.append(clock.elapsed())

    job = await deaf.using(tenant="acme").aenqueue()
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await began.wait()
        for seconds in (9, 9, 9, 9, 9, 9, 4):
            await turned_after_leap(worker, clock, seconds)
        await job.acancel("enough")
        await until(lambda: len(cancels) == 1)
        await turned_after_leap(worker, clock, 9)
        await turned_after_leap(worker, clock, 4)
        await until(lambda: len(cancels) == 2)  # its task may run a moment after the check
        guarded = len(guards)
        await until(lambda: len(guards) > guarded + 1)
        found = worker.running, worker.is_loop_blocked
        await turned_after_leap(worker, clock, 5)
        assert (await world.ended(job)).state is State.CANCELLED
        release.set()
        await until(lambda: not worker.has_abandoned)
    assert (found, worker.is_loop_blocked) == ((1, False), False)


async def turned_after_leap(worker: WorkerRuntime, clock: LeapingClock, seconds: float) -> None:
    """Move the clock, and wait until the worker's loop has noticed it."""
    clock.leap(seconds)
    now = clock.elapsed()
    await until(lambda: worker._parts is not None and worker._parts.timeouts.checked_at >= now)


# ── lost leases ──────────────────────────────────────────────────────────────


async def test_a_lost_claim_stops_its_handler_and_settles_nothing(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """The job was reclaimed: the next renewal is stale, and the old attempt changes nothing."""
    began: list[int] = []
    left = asyncio.Event()

    @app.task(name="slow")
    async def slow(ctx: Context) -> str:
        began.append(ctx.attempt)
        if ctx.attempt == 1:
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
        return f"attempt {ctx.attempt}"

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, duties=False, settings=LONG) as worker:
        await until(lambda: began == [1])
        world.ahead = 200_000 * SECOND
        reply = await app.client.store.claims.reclaim(ReclaimRequest(scope=Scope.all()))
        assert [lost.id for lost in reply.lost] == [job.id]
        await left.wait()
        ended = await world.ended(job)
        await until(lambda: worker.running == 0)
    assert await ended.aresult() == "attempt 2"
    assert [attempt.outcome for attempt in ended.attempts] == ["lost", "succeeded"]
    assert worker.settled == 1
    assert "settlement_stale" not in events(caplog), "it has not even tried"


@pytest.mark.parametrize(("fails", "outcome"), [(True, "failed"), (False, "returned")])
async def test_a_job_that_an_operator_takes_from_its_worker_stops_and_runs_again(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture, *, fails: bool, outcome: str
) -> None:
    """S72: at the next renewal the handler is stopped; what it does then changes nothing."""
    began: list[int] = []
    left = asyncio.Event()

    @app.task(name="slow", retry=Backoff.delays(0))
    async def slow(ctx: Context) -> str:
        began.append(ctx.attempt)
        if ctx.attempt == 1:
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
        return f"attempt {ctx.attempt}"

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app) as worker:
        await until(lambda: began == [1])
        if fails:
            assert await app.jobs.afail(job.id, retry=True, reason="too slow") is State.DELAYED
        else:
            assert await app.jobs.atake_back(job.id, reason="too slow") is State.READY
        await left.wait()
        ended = await world.ended(job)
        await until(lambda: worker.running == 0)
    assert await ended.aresult() == "attempt 2"
    assert [attempt.outcome for attempt in ended.attempts] == [outcome, "succeeded"]
    assert ended.attempts[0].message == "too slow"
    assert ended.failures == int(fails)
    assert "settlement_stale" not in events(caplog)


async def test_handlers_are_stopped_when_their_lease_could_not_be_renewed_in_time(
    world: World, app: Fairlane
) -> None:
    """S37: by the worker's own clock, before the job can be reclaimed. If nobody did, it is settled."""
    began, left = asyncio.Event(), asyncio.Event()

    @app.task(name="slow")
    async def slow(ctx: Context) -> str:
        if ctx.attempt > 1:
            return "again"
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return "never"

    job = await slow.using(tenant="acme", tags=["x"]).aenqueue()
    async with world.working(app, duties=False):
        await began.wait()
        world.away = ALL_VERBS
        async with counted() as seconds:
            await until(left.is_set)
        assert seconds() < QUICK.lease / SECOND
        world.away = frozenset()
        again = await world.when(job, lambda one: one.failures == 1)
    assert again.attempts[0].outcome == "failed"
    assert "lease" in str(again.attempts[0].message)


async def test_a_task_that_runs_at_most_once_is_dead_when_its_lease_could_not_be_renewed(
    world: World, app: Fairlane
) -> None:
    """S63: nobody knows how far it came, so it does not run again."""
    began = asyncio.Event()

    @app.task(name="once", at_most_once=True)
    async def once() -> None:
        began.set()
        await asyncio.Event().wait()

    job = await once.using(tenant="acme").aenqueue()
    async with world.working(app, duties=False):
        await began.wait()
        world.away = ALL_VERBS
        await until(lambda: stopping(world))
        world.away = frozenset()
        dead = await world.ended(job)
    assert (dead.state, dead.attempt) == (State.DEAD, 1)
    assert str(dead.because).startswith("lost")


def stopping(world: World) -> bool:
    """Whether a settlement was tried while the store was away."""
    return bool(world.requests("settle"))


async def test_a_worker_whose_renewing_thread_ends_does_not_go_on(world: World, app: Fairlane) -> None:
    """Without it every lease would run out unnoticed."""

    @app.task(name="ends_it")
    def ends_it() -> None:
        app.client.portal.close()

    await ends_it.using(tenant="acme").aenqueue()
    worker = WorkerRuntime(app, settings=QUICK)
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="portal thread has ended")):
        await asyncio.wait_for(worker.run(), 20)


@pytest.mark.parametrize("way", ["close", "aclose"])
async def test_a_handler_cannot_close_the_application_under_its_worker(
    world: World, app: Fairlane, way: str
) -> None:
    """`with app:` in code that a handler shares would end the worker, and every job in it."""

    @app.task(name="closes", max_attempts=1)
    async def closes() -> None:
        await (app.aclose() if way == "aclose" else asyncio.to_thread(app.close))

    job = await closes.using(tenant="acme").aenqueue()
    await world.burst(app)
    dead = await job.arefresh()
    assert (dead.state, "a worker uses this" in str(dead.attempts[-1].message)) == (State.DEAD, True)
    await app.aclose()


async def test_a_blocking_handler_cannot_stall_the_renewals(world: World, app: Fairlane) -> None:
    """It blocks the loop for longer than the lease, and its job is not reclaimed."""

    @app.task(name="blocking")
    async def blocking() -> str:
        time.sleep(QUICK.lease / SECOND + 1)  # noqa: ASYNC251 (the point of it)
        return "kept"

    job = await blocking.using(tenant="acme").aenqueue()
    async with world.working(app, duties=False):
        ended = await world.ended(job)
    assert (await ended.aresult(), ended.attempt) == ("kept", 1)


async def test_a_claim_whose_answer_comes_when_its_lease_may_be_over_is_not_started(
    world: World, app: Fairlane
) -> None:
    """While a handler blocks the loop, nobody renews a claim that is on its way to it."""
    clock, began = LeapingClock(), list[int]()

    @app.task(name="noop")
    async def noop(ctx: Context) -> None:
        began.append(ctx.attempt)

    job = await noop.using(tenant="acme").aenqueue()
    world.before["claim"] = lambda: clock.leap(QUICK.lease / SECOND)
    async with world.working(app, clock=clock, duties=False):
        ended = await world.ended(job)
    assert (began, ended.failures) == ([1], 0)
    assert [attempt.outcome for attempt in ended.attempts] == ["succeeded"]
    unstarted = [one.is_unstarted for request in world.requests("settle") for one in request.settlements]
    assert unstarted == [True, False]


async def test_one_call_renews_all_and_carries_the_newest_progress(world: World, app: Fairlane) -> None:
    """S62: progress has no write of its own."""
    release = asyncio.Event()
    began: list[int] = []

    @app.task(name="slow")
    async def slow(ctx: Context, number: int) -> None:
        ctx.progress(0.1, "begun")
        ctx.progress(0.5, f"half of {number}")
        began.append(number)
        await release.wait()

    jobs = [await slow.using(tenant="acme").aenqueue(number) for number in range(5)]
    async with world.working(app):
        await until(lambda: len(began) == 5)
        # What was held before its handler began was renewed, too. The second is asked for when the first
        # was answered.
        before = len(world.requests("renew"))
        await until(lambda: sum(len(one.renewals) == 5 for one in world.requests("renew")[before:]) > 1)
        last = world.requests("renew")[-1]
        assert {one.id for one in last.renewals} == {job.id for job in jobs}
        noted = [
            one.progress for request in world.requests("renew") for one in request.renewals if one.progress
        ]
        assert sorted(progress.note for progress in noted) == [f"half of {number}" for number in range(5)]
        record = await world.record(app, jobs[3].id)
        assert record.progress is not None
        assert (record.progress.fraction, record.progress.note) == (0.5, "half of 3")
        release.set()


async def test_progress_that_could_not_be_told_goes_with_the_next_renewal(
    world: World, app: Fairlane
) -> None:
    """The store was away for a moment; the newest progress is not lost."""
    began, release = asyncio.Event(), asyncio.Event()

    @app.task(name="slow")
    async def slow(ctx: Context) -> None:
        world.away = frozenset({"renew"})
        ctx.progress(0.7, "almost")
        began.set()
        await release.wait()

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, settings=LONG):
        await began.wait()
        await until(lambda: any(one.renewals[0].progress for one in world.requests("renew")))
        world.away = frozenset()

        async def note() -> str:
            progress = (await world.record(app, job.id)).progress
            return "" if progress is None else progress.note

        await until_async(note, "almost")
        release.set()


async def test_leases_are_renewed_beyond_the_hard_limit_while_the_worker_lives(
    world: World, app: Fairlane
) -> None:
    """S31, S38: what is stuck is not lost; the worker reports an event loop that was blocked so long."""
    clock = LeapingClock()
    began, told, release = threading.Event(), threading.Event(), threading.Event()
    facts: list[bool] = []

    @app.task(name="blocking", timeout=60)
    async def blocking() -> None:
        began.set()
        release.wait(20)

    job = await blocking.using(tenant="acme").aenqueue()

    def watch() -> None:
        began.wait(20)
        clock.leap(71)
        facts.append(told.wait(20))
        renewed, deadline = len(world.requests("renew")), time.monotonic() + 20
        while len(world.requests("renew")) < renewed + 2 and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        later = world.requests("renew")[renewed:]
        facts.append(len(later) > 1 and all(one.renewals[0].id == job.id for one in later))
        release.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    async with world.working(app, clock=clock, settings=LONG, duties=False) as worker:
        worker.on_loop_blocked = told.set
        await until(lambda: len(facts) > 1)
        assert worker.is_loop_blocked
    watcher.join()
    assert facts == [True, True]
    assert (await job.arefresh()).is_finished


@pytest.mark.parametrize("lease", [1, 12])
def test_the_time_without_renewal_is_shorter_than_the_lease(lease: int) -> None:
    """Also for the shortest lease there is time to renew at all."""
    settings = changed(QUICK, lease=lease * SECOND)
    assert 0 < max(settings.lease - SECOND, settings.lease // 2) < settings.lease


async def test_a_worker_whose_loop_is_blocked_for_good_hands_back_what_has_a_slot_and_has_not_begun(
    world: World, app: Fairlane
) -> None:
    """S31, S32: its task was made, and a handler before it never lets it run; the process ends next."""
    clock, ran = LeapingClock(), list[str]()
    seen: list[bool] = []

    @app.task(name="blocking", timeout=1)
    async def blocking() -> None:
        deadline = time.monotonic() + 20
        ran.append("blocking")
        clock.leap(12)
        while not seen and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 (the point of it)
            requests = world.requests("settle")
            seen.extend(one.is_unstarted for request in requests for one in request.settlements)

    @app.task(name="next")
    async def next_() -> None:
        ran.append("next")

    await app.aenqueue_many([blocking.using(tenant="a").bind(), next_.using(tenant="a").bind()])
    async with world.working(app, clock=clock, settings=LONG) as worker:
        await until(lambda: worker.is_loop_blocked)
        assert seen == [True]
        await until(lambda: "next" in ran)


async def test_a_renewal_that_fails_is_tried_several_times_within_a_renew_interval(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S37, S66: a lease survives two short outages, so renewing may not pause for as long as an interval."""
    pauses: list[Micros | None] = []
    real = retry_on_outage

    def noted(one_pass: Any, outage: StoreOutage, **options: Any) -> Any:
        pauses.append(options.get("max_pause"))
        return real(one_pass, outage, **options)

    monkeypatch.setattr(keepalive, "retry_on_outage", noted)
    settings = changed(LONG, renew_every=4 * SECOND)
    async with world.working(app, settings=settings):
        await until(lambda: len(pauses) >= 3)
    assert pauses[0] == SECOND
    assert not any(pauses[1:])  # nothing else of the keep-alive must be done within a lease
