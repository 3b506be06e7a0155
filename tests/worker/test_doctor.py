"""`fairlane doctor` compares what the store says is running with what each worker says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from fairlane import Fairlane
from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.slots import check_slots
from fairlane.diagnosis.snapshot import take_snapshot
from fairlane.model.instants import SECOND
from fairlane.model.policy.declared import Lane
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ClaimRequest, QueueRequest
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.worker import WorkerRuntime
from tests.worker.world import LONG, World, until, until_async

WELL = [CheckResult("slots", "ok", "every worker runs the jobs that the store says it runs")]


async def _beaten(app: Fairlane, worker: WorkerRuntime, running: int) -> None:
    """Wait until the worker has told the store how much it runs."""

    async def told() -> int:
        (view,) = (await take_snapshot(app.client.store, app.client.clock)).workers
        assert view.record.id == worker.id
        return view.running

    await until_async(told, running)


def _one() -> list[LiveAttempt]:
    """Claim to run one attempt that nobody has heard of."""
    settled = SimpleNamespace(leased_at=10**18, hard_at=None, soft_at=None, cause=None, lane=None)
    return [cast("LiveAttempt", settled)]


async def _slots(app: Fairlane) -> list[CheckResult]:
    store, clock = app.client.store, app.client.clock
    return await check_slots(store, clock, await take_snapshot(store, clock))


async def _has_beaten(app: Fairlane, since: int) -> bool:
    return (await take_snapshot(app.client.store, app.client.clock)).workers[0].beat_at >= since


async def test_a_worker_that_runs_what_it_holds_is_well(world: World, app: Fairlane) -> None:
    """However long it takes."""
    release = asyncio.Event()

    @app.task(name="long")
    async def long() -> None:
        await release.wait()

    await long.using(tenant="acme").aenqueue()
    async with world.working(app, settings=LONG) as worker:
        await until(lambda: worker.running == 1)
        world.ahead += 60 * SECOND
        await _beaten(app, worker, 1)
        assert await _slots(app) == WELL
        release.set()


async def test_a_worker_that_holds_more_than_it_runs_is_named(world: World, app: Fairlane) -> None:
    """The store believes that a job runs of which the worker knows nothing: its slot is lost."""

    @app.task(name="lost", queue="elsewhere")
    async def lost() -> None: ...

    @app.task(name="other")
    async def other() -> None: ...

    await lost.using(tenant="acme").aenqueue()
    lanes = [Lane("main", 1, ["default"])]
    async with world.working(app, settings=LONG, lanes=lanes, duties=False) as worker:
        claim = ClaimRequest(
            scope=Scope.all(),
            worker=worker.id,
            lease=LONG.lease,
            queue_requests=(QueueRequest("elsewhere", 1),),
            total=1,
        )
        assert len((await app.client.store.claims.claim(claim)).claims) == 1
        world.ahead += 60 * SECOND
        before = world.now()
        await until_async(lambda: _has_beaten(app, before), wanted=True)
        (found,) = await _slots(app)
    assert (found.check, found.level) == ("slots", "bad")
    assert found.what == f"{worker.id} reports 0 running jobs, but holds 1 claims in the store."


async def test_a_worker_that_says_more_than_it_holds_is_named(
    world: World, app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no claim in the store, and says with every heartbeat that it runs something."""

    @app.task(name="noop")
    async def noop() -> None: ...

    async with world.working(app, settings=LONG) as worker:
        assert worker._parts is not None
        monkeypatch.setattr(worker._parts.attempts, "running", _one)
        await _beaten(app, worker, 1)
        (found,) = await _slots(app)
        monkeypatch.undo()
    assert found.what == f"{worker.id} reports 1 running jobs, but holds only 0 claims in the store."
