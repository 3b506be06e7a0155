"""Description B, the life of a worker: what it shows, how it stops, what an outage does to it."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import closing
from typing import Any

import apsw
import pytest

from fairlane import Job, State
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import WorkersRequest, WorkerView
from tests.acceptance.working import QUICK, Stage, at_work, burst, until
from tests.acceptance.world import ALL, ON_A_FILE, World


async def workers(world: World) -> tuple[WorkerView, ...]:
    """Return the workers that the registry knows."""
    return await world.store.registry.workers(WorkersRequest(scope=ALL))


async def test_001_wk_1_a_worker_shows_what_it_does(world: World, stage: Stage) -> None:
    """Idle, busy, idle, draining, gone."""
    app = world.one_lane(2)
    hold = app.task(name="hold")(stage.handler("hold"))

    async def until_it_is(state: str) -> None:
        async def is_so() -> bool:
            return [view.state for view in await workers(world)] == [state]

        await until(is_so)

    async with at_work(app, settings=WorkerSettings(renew_every=SECOND // 20)) as worker:
        await until_it_is("idle")
        await hold.aenqueue(1)
        await until_it_is("busy")
        stage.let_go("hold", 1)
        await until_it_is("idle")
        await hold.aenqueue(2)
        await until_it_is("busy")
        worker.stop()
        await until_it_is("draining")
        stage.let_go("hold")
    assert await workers(world) == ()


async def test_001_wk_2_the_status_of_a_worker(world: World, stage: Stage) -> None:
    """Id, host, pid, queues, slots, running, settled, failed, started, last heartbeat."""
    app = world.one_lane(4, "default", "other")
    hold = app.task(name="hold")(stage.handler("hold"))
    await app.task(name="bad", max_attempts=1)(lambda: 1 / 0).aenqueue()
    await hold.aenqueue(1)

    async def has_told() -> bool:
        return [(view.running, view.settled) for view in await workers(world)] == [(1, 1)]

    async with at_work(app, settings=QUICK) as worker:
        await until(has_told)
        (view,) = await workers(world)
        stage.let_go("hold")
    assert (view.record.id, view.record.pid) == (worker.id, os.getpid())
    assert view.record.host == socket.gethostname()
    assert (view.record.queues, view.record.slots) == (("default", "other"), 4)
    assert (view.running, view.settled, view.failed) == (1, 1, 1)
    assert view.started_at <= view.beat_at == world.now


async def test_001_ec_3_two_workers_of_one_application_have_different_ids(world: World) -> None:
    """And both are listed."""
    app, twin = world.app(), world.app()

    async def are_listed() -> bool:
        return {view.record.id for view in await workers(world)} == {one.id, two.id}

    async with at_work(app) as one, at_work(twin) as two:
        assert one.id != two.id
        await until(are_listed)


async def test_001_wk_7_a_stop_without_grace_hands_running_jobs_back(world: World, stage: Stage) -> None:
    """Those that say so; no failure is counted, and another worker runs them."""
    app = world.one_lane(2)
    hold = app.task(name="hold", on_shutdown="requeue")(stage.handler("hold"))
    job = await hold.aenqueue(1)
    async with at_work(app) as worker:
        await until(lambda: stage.present["hold"] == 1)
        worker.stop()
        worker.stop()
    back = await job.arefresh()
    assert (back.state, back.failures) == (State.READY, 0)
    assert [one.outcome for one in back.attempts] == ["returned"]
    stage.let_go("hold")
    await burst(app)
    assert await job.aresult(1) == 1


@pytest.mark.parametrize(
    ("on_shutdown", "state", "outcome"),
    [("requeue", State.READY, "returned"), ("finish", State.DELAYED, "failed")],
)
async def test_001_wk_8_a_job_that_runs_past_the_drain_deadline_is_ended(
    world: World, stage: Stage, on_shutdown: Any, state: State, outcome: str
) -> None:
    """And handed back if its task says so; otherwise it failed and is retried (S32)."""
    app = world.one_lane(2)
    hold = app.task(name="hold", on_shutdown=on_shutdown)(stage.handler("hold"))
    job = await hold.aenqueue(1)
    async with at_work(app, settings=QUICK) as worker:
        await until(lambda: stage.present["hold"] == 1)
        worker.stop()
    ended = await job.arefresh()
    assert (ended.state, [one.outcome for one in ended.attempts]) == (state, [outcome])


async def test_001_fm_4_a_handler_that_does_not_stop_cannot_keep_its_worker(world: World) -> None:
    """A thread that nobody can interrupt: the worker leaves after its deadline all the same."""
    app = world.one_lane(2)
    entered, release = threading.Event(), threading.Event()

    def stall() -> None:
        entered.set()
        release.wait(60)

    job = await app.task(name="stall")(stall).aenqueue()
    try:
        async with at_work(app, settings=QUICK) as worker:
            await until(entered.is_set)
            worker.stop()
    finally:
        release.set()
    assert (await job.arefresh()).attempts[0].outcome == "failed"


@ON_A_FILE
async def test_001_wk_12_a_short_outage_of_the_store_loses_no_job(world: World, stage: Stage) -> None:
    """Nobody could write for longer than the lease; back again, the worker keeps what it held (S38)."""
    app = world.one_lane(2)
    hold = app.task(name="hold")(stage.handler("hold"))
    job = await hold.aenqueue(1)
    with closing(apsw.Connection(str(world.folder / "fairlane.db"))) as db:
        db.set_busy_timeout(30_000)  # the worker may just be writing
        async with at_work(app, settings=QUICK):
            await until(lambda: stage.present["hold"] == 1)
            db.execute("BEGIN IMMEDIATE")
            world.advance(60)
            db.execute("ROLLBACK")
            await until(lambda: is_leased(world, job))
            assert (await world.reclaim()).lost == ()
            stage.let_go("hold")
            assert await job.aresult(60) == 1
    assert [one.outcome for one in (await job.arefresh()).attempts] == ["succeeded"]


async def is_leased(world: World, job: Job[Any]) -> bool:
    """Whether a job's lease is good."""
    return ((await world.record(job)).lease_until or 0) > world.now


async def test_001_nf_7_a_stop_in_good_order_loses_nothing(world: World) -> None:
    """A worker is stopped in the middle of two hundred jobs; the next one runs the rest, each once."""
    app = world.one_lane(4)
    ran: list[int] = []

    async def note(number: int) -> None:
        ran.append(number)
        await asyncio.sleep(0)

    task = app.task(name="note")(note)
    await app.aenqueue_many([task.bind(number) for number in range(200)])
    async with at_work(app):
        await until(lambda: len(ran) > 50)
    counts = await app.jobs.acount()
    assert counts[State.RUNNING] == 0
    assert counts[State.SUCCEEDED] == len(ran)
    await burst(app)
    assert sorted(ran) == list(range(200))
