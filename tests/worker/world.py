"""A small world for tests of the worker: a real SQLite file, observed, and workers in the test's own loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import UUID

import msgspec
import pytest

from fairlane import Fairlane, Job
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.errors import StoreUnavailable
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract import FACETS, Store
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.opening import StoreClock, open_store, register_scheme
from fairlane.worker.worker import WorkerRuntime

T = TypeVar("T")

PATIENCE = 60.0
"""How long a test waits for a fact before it fails."""

QUICK = WorkerSettings(lease=3 * SECOND, renew_every=SECOND // 4, shutdown_deadline=10 * SECOND)
"""Leases short enough to see them end."""

LONG = WorkerSettings(lease=100_000 * SECOND, renew_every=SECOND // 4, shutdown_deadline=10 * SECOND)
"""Leases that outlast whatever a driven clock does."""


async def until(is_so: Callable[[], bool], what: str = "") -> None:
    """Wait until a fact is true; the test fails if it never becomes true."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, what or "it never came true"
        await asyncio.sleep(0.002)


async def until_async(read: Callable[[], Awaitable[T]], wanted: T) -> None:
    """Wait until what is read is as wanted."""
    deadline = time.monotonic() + PATIENCE
    while (found := await read()) != wanted:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.005)


class LeapingClock(MachineClock):
    """The machine's clock, moved on by what a test wants to have passed."""

    def __init__(self) -> None:
        """Begin with the machine's time."""
        self._leap: Micros = 0

    def elapsed(self) -> Micros:
        """Count on, leaps included."""
        return super().elapsed() + self._leap

    def leap(self, seconds: float) -> None:
        """Let so much time have passed."""
        self._leap += round(seconds * SECOND)


class _Facet:
    """A facet that records its requests, and fails during an outage."""

    def __init__(self, facet: object, world: World) -> None:
        self._facet = facet
        self._world = world

    @property
    def concurrent_calls(self) -> int:
        """Say what the test says: a file may be asked as a server is."""
        return self._world.concurrent_calls

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        real: Callable[..., Awaitable[Any]] = getattr(self._facet, verb)

        async def watched(*requests: Any, **options: Any) -> Any:
            self._world.asked.append((verb, *requests))
            if verb in self._world.away and verb != "aclose":
                message = "the store does not answer"
                raise StoreUnavailable(message)
            if verb in self._world.before:
                self._world.before.pop(verb)()
            while verb in self._world.held:  # noqa: ASYNC110 (this loop is not the one that lets go)
                await asyncio.sleep(0.002)
            if verb == "settle" and self._world.hears < len(requests[0].settlements):
                heard = requests[0].settlements[: self._world.hears]
                requests = (msgspec.structs.replace(requests[0], settlements=heard), *requests[1:])
            answer = await real(*requests, **options)
            if verb in self._world.deaf:
                self._world.deaf.remove(verb)
                message = "the answer was lost"
                raise StoreUnavailable(message)
            return answer

        return watched


class _WatchedStore:
    def __init__(self, store: Store, world: World) -> None:
        for name in FACETS:
            setattr(self, name, _Facet(getattr(store, name), world))


CLAIMS = {"claim", "renew", "settle", "cancel_asked", "reclaim", "take_stuck", "promote", "expire"}
REGISTRY = {"heartbeat", "register", "lead", "duties", "status", "wait", "prune"}
ALL_VERBS = frozenset(CLAIMS | REGISTRY)
"""What a worker and its duties ask."""


class World:
    """One SQLite file behind the scheme `watched`, what is asked of it, and applications on it."""

    def __init__(self, folder: Path) -> None:
        """Begin with no file."""
        self.url = f"sqlite:////{folder}/fairlane.db"
        self.asked: list[tuple[Any, ...]] = []
        self.away: frozenset[str] = frozenset()
        self.deaf: list[str] = []
        self.hears = 1_000
        """How many settlements of a call the store accepts before the connection is lost."""
        self.held: set[str] = set()
        self.before: dict[str, Callable[[], None]] = {}
        self.opened = 0
        self.concurrent_calls = 1
        self.ahead: Micros = 0
        self.apps: list[Fairlane] = []
        self.is_over = False
        """Whether the test has ended: a handler that ignores every cancel must stop then, or nothing does."""
        register_scheme("watched", self._open)

    def _open(self, url: str, clock: StoreClock | None) -> Store:
        assert clock is None
        self.opened += 1
        return cast("Store", _WatchedStore(open_store(self.url, clock=self), self))

    def now(self) -> Instant:
        """The store's clock: the machine's, plus what the test has added."""
        return time.time_ns() // 1_000 + self.ahead

    def app(self, **options: Any) -> Fairlane:
        """Make an application on this file."""
        made = Fairlane("watched://here", **options)
        self.apps.append(made)
        return made

    def requests(self, verb: str) -> list[Any]:
        """Return the requests that were made with a verb."""
        return [request for name, *rest in self.asked for request in rest if name == verb]

    @asynccontextmanager
    async def working(self, app: Fairlane, **options: Any) -> AsyncIterator[WorkerRuntime]:
        """Have a worker run meanwhile, and stop it at the end."""
        options.setdefault("settings", QUICK)
        worker = WorkerRuntime(app, **options)
        running = asyncio.ensure_future(worker.run())
        try:
            await until(lambda: worker.is_ready or running.done())
            yield worker
        finally:
            if not running.done():
                worker.stop()
            await asyncio.wait_for(running, PATIENCE)

    async def burst(self, app: Fairlane, **options: Any) -> WorkerRuntime:
        """Run everything that is claimable now."""
        options.setdefault("settings", QUICK)
        worker = WorkerRuntime(app, burst=True, **options)
        await asyncio.wait_for(worker.run(), PATIENCE)
        return worker

    async def record(self, app: Fairlane, id: UUID) -> JobRecord:
        """Read a job as the store keeps it."""
        found = await app.client.store.jobs.get(GetRequest(scope=Scope.all(), ids=(id,)))
        return found[id]

    async def ended(self, job: Job[Any]) -> Job[Any]:
        """Wait for a job's end."""
        newer = job
        deadline = time.monotonic() + PATIENCE
        while not newer.is_finished:
            assert time.monotonic() < deadline, f"{newer.task} is {newer.state}, because {newer.because}"
            await asyncio.sleep(0.01)
            newer = await newer.arefresh()
        return newer

    async def when(self, job: Job[Any], is_so: Callable[[Job[Any]], bool]) -> Job[Any]:
        """Wait until a job is as wanted."""
        deadline = time.monotonic() + PATIENCE
        newer = await job.arefresh()
        while not is_so(newer):
            assert time.monotonic() < deadline, f"{newer.task} is {newer.state}, because {newer.because}"
            await asyncio.sleep(0.01)
            newer = await newer.arefresh()
        return newer


def changed(settings: WorkerSettings, **options: Any) -> WorkerSettings:
    """Return settings with some values changed."""
    return msgspec.structs.replace(settings, **options)


def thread_name() -> str:
    """Name the running thread."""
    return threading.current_thread().name


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Name the events that were logged."""
    return [str(record.__dict__.get("event")) for record in caplog.records]
