"""A worker whose application children can import, on a file of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from fairlane import Fairlane, Job
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import SECOND, Instant
from fairlane.model.job import JobRecord
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.contract.request import Request
from fairlane.worker.worker import WorkerRuntime
from tests.stores import MEMORY
from tests.worker.children import jobs

ROOT = Path(__file__).parents[3]
TOO_LONG = 90.0
QUICK = WorkerSettings(lease=12 * SECOND, renew_every=SECOND // 4, shutdown_deadline=10 * SECOND)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound every wait of the tests in this folder."""
    here = Path(__file__).parent
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == here and iscoroutinefunction(item.obj):
            item.obj = _bounded(item.obj)


def _bounded(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(test)
    async def bounded(*args: Any, **named: Any) -> None:
        async with asyncio.timeout(TOO_LONG):
            await test(*args, **named)

    return bounded


class Place:
    """A store, the application on it, and a folder in which handlers leave notes."""

    def __init__(self, folder: Path) -> None:
        """Point the application, and every child, at a file in the folder."""
        self.folder = folder
        self.app: Fairlane = jobs.app
        url = f"sqlite:////{folder}/fairlane.db"
        self.app.configuration.use(options={"--url": ("app.url", url)})
        self.file = str(folder / "notes.txt")

    def notes(self) -> list[list[str]]:
        """Return the lines that handlers have written, as words."""
        path = Path(self.file)
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    async def noted(self, lines: int = 1) -> list[list[str]]:
        """Wait until handlers have written so many lines."""
        await until(lambda: len(self.notes()) >= lines)
        return self.notes()

    @asynccontextmanager
    async def working(self, **changes: Any) -> AsyncIterator[WorkerRuntime]:
        """Run a worker for the block, with these settings changed, then stop it at once."""
        worker = WorkerRuntime(self.app, settings=msgspec.structs.replace(QUICK, **changes))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(worker.run())
            try:
                await until(lambda: worker.is_ready or running.done())
                yield worker
            finally:
                worker.stop()
                worker.stop()

    async def enqueue(self, *calls: Any, tenant: str = "acme") -> list[Job[Any]]:
        """Enqueue calls for a tenant."""
        with self.app.tenant(tenant):
            return await self.app.aenqueue_many(calls)

    async def reaches(self, job: Job[Any], state: str) -> Job[Any]:
        """Wait until a job is in a state, and return it."""
        deadline = time.monotonic() + TOO_LONG
        while (found := await job.arefresh()).state.value != state:
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.01)
        return found

    async def run(self, *calls: Any, tenant: str = "acme") -> list[Job[Any]]:
        """Enqueue calls for a tenant, and wait until all have ended."""
        stored = await self.enqueue(*calls, tenant=tenant)
        return [await self.app.client.afinished(one, None) for one in stored]

    async def record(self, job: Job[Any]) -> JobRecord:
        """Return a job as it is stored."""
        found = await self.app.client.store.jobs.get(GetRequest(scope=Scope.all(), ids=(job.id,)))
        return found[job.id]

    async def store_now(self) -> Instant:
        """Return the store's time."""
        return (await self.app.client.store.registry.status(Request(scope=Scope.all()))).now

    async def result(self, call: Any, tenant: str = "acme") -> Any:
        """Return the result of a call that succeeds."""
        (job,) = await self.run(call, tenant=tenant)
        assert job.state.value == "succeeded", job.attempts
        return await job.aresult()


async def until(is_so: Callable[[], bool], what: str = "") -> None:
    """Wait until a fact is true."""
    deadline = time.monotonic() + TOO_LONG
    while not is_so():
        assert time.monotonic() < deadline, what or "it never came true"
        await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def is_guardian(pid: int) -> bool:
    """Whether a process is the guardian of some children; one that has just ended is none."""
    try:
        return b"guardian.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants() -> list[int]:
    """Return the processes that this one has started and that still exist, zombies included."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found += [int(pid) for pid in (task / "children").read_text().split()]
    return found


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """An empty store."""
    before = os.getcwd()  # noqa: PTH109 (compared with what a child has)
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = Place(Path(folder))
        await made.app.client.store.upkeep.migrate()
        yield made
        await made.app.aclose()
    assert os.getcwd() == before  # noqa: PTH109 (as above)
