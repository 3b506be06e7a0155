"""More work than slots: the worker's log says so once, and `doctor` finds it; on each store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlane import Fairlane, Lane
from fairlane.app.doctor_settings import DoctorSettings
from fairlane.diagnosis.checks import run_checks
from fairlane.diagnosis.snapshot import take_snapshot
from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from fairlane.worker import overload
from fairlane.worker.overload import OverloadMonitor
from fairlane.worker.worker import WorkerRuntime
from tests.acceptance.conftest import PLACES
from tests.acceptance.world import ALL, World
from tests.stores import MEMORY
from tests.worker.world import LONG, LeapingClock, events, until

LANE = Lane("main", 4, ["default"])
"""Three slots for anybody, one of headroom."""


@pytest.fixture(params=sorted(PLACES))
async def place(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """An empty place for a store of each kind."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as url:
            yield url


class Scene:
    """A worker whose handlers run until they are released, on a clock that the test moves."""

    def __init__(self, url: str) -> None:
        """Begin with nobody at work."""
        self.clock = LeapingClock()
        self.let_go = asyncio.Event()
        self.app = Fairlane(url, config={}, lanes=[LANE])
        self.worker = WorkerRuntime(self.app, settings=LONG, clock=self.clock)

        @self.app.task(name="hold")
        async def hold() -> None:
            await self.let_go.wait()

        self.hold = hold

    async def bring(self, *tenants: str) -> None:
        """Enqueue a job for each of them."""
        await self.app.aenqueue_many(self.hold.using(tenant=tenant).bind() for tenant in tenants)

    def watch(self) -> OverloadMonitor:
        """Return a watch of the test's own, which looks when it is told to."""
        parts = self.worker._parts
        assert parts is not None
        return OverloadMonitor(self.worker.id, parts.lanes, self.app.client, self.clock, parts.clock_offset)

    def has_leapt(self) -> bool:
        """Let some seconds pass; yes, it has."""
        self.clock.leap(7)
        return True

    async def pass_minutes(self, watch: OverloadMonitor, number: int) -> None:
        """Let minutes pass, with looks in each of them."""
        for _ in range(2 * number):
            await watch.check()
            self.clock.leap(31)
        await watch.check()


@asynccontextmanager
async def at_work(url: str) -> AsyncIterator[Scene]:
    """Have a worker run meanwhile."""
    scene = Scene(url)
    running = asyncio.ensure_future(scene.worker.run())
    try:
        await until(lambda: scene.worker.is_ready or running.done())
        yield scene
    finally:
        scene.let_go.set()
        scene.worker.stop()
        await running
        await scene.app.aclose()


async def test_a_lane_that_is_full_for_a_minute_while_several_tenants_wait_is_told_of_once(
    place: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once that it has caught up, found by the worker's own checks."""
    monkeypatch.setattr(overload, "CHECK_EVERY", SECOND // 100)
    caplog.set_level("INFO")
    async with at_work(place) as scene:
        await scene.bring(*"aaabcdef")
        await until(lambda: scene.worker.running == 4)
        await until(lambda: scene.has_leapt() and "lane_overloaded" in events(caplog))
        looks = scene.clock.elapsed() + 180 * SECOND
        await until(lambda: scene.has_leapt() and scene.clock.elapsed() > looks)
        (told,) = [one for one in caplog.records if one.__dict__.get("event") == "lane_overloaded"]
        assert told.levelname == "WARNING"
        facts = {name: told.__dict__[name] for name in ("worker", "lane", "queue", "slots", "tenants")}
        assert facts == {
            "worker": scene.worker.id,
            "lane": "main",
            "queue": "default",
            "slots": 4,
            "tenants": 3,
        }
        assert told.__dict__["waited_s"] > 60
        scene.let_go.set()
        await until(lambda: scene.worker.settled == 8)
        await until(lambda: scene.has_leapt() and "lane_caught_up" in events(caplog))
    assert (events(caplog).count("lane_overloaded"), events(caplog).count("lane_caught_up")) == (1, 1)


@pytest.mark.parametrize(
    ("tenants", "why"),
    [
        ("aaa", "nothing waits"),
        ("aaaaaa", "what waits is of the tenant that runs"),
        ("aab", "there is room"),
    ],
)
async def test_a_lane_is_not_told_of_while_it_is_no_bottleneck(
    place: str, caplog: pytest.LogCaptureFixture, tenants: str, why: str
) -> None:
    """Long jobs alone, or one tenant's own backlog, are no overload."""
    async with at_work(place) as scene:
        await scene.bring(*tenants)
        await until(lambda: scene.worker.running == 3)
        await scene.pass_minutes(scene.watch(), 3)
    assert "lane_overloaded" not in events(caplog), why


async def test_doctor_says_what_the_jobs_of_several_tenants_wait_for(place: str) -> None:
    """How long, and how many slots of how many workers are busy."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        world = World(place, Path(folder))
        app = world.app()
        try:
            for tenant in "abcde":
                await world.fill(app.task(name=f"work-{tenant}")(_work), 2, tenant)
            await world.ask(3, ("default", 3))
            world.advance(11)
            record = WorkerRecord(
                id="w1", host="here", pid=7, version="1", queues=("default",), slots=4, headroom=1
            )
            await world.store.registry.register(
                RegisterRequest(scope=ALL, record=record, renew_every=4 * SECOND)
            )
            snapshot = await take_snapshot(app.client.store, app.client.clock)
            findings = run_checks(snapshot, version("fairlane"), DoctorSettings())
        finally:
            await world.aclose()
    assert [(one.level, one.what) for one in findings if one.check == "capacity"] == [
        (
            "warn",
            (
                "queue default: the next jobs, of 5 tenants, have waited for up to 11s "
                "while 3 of 4 slots of 1 worker are busy and 1 kept as headroom."
            ),
        )
    ]


async def _work() -> None: ...
