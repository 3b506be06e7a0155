"""Workers inside the test's own event loop, a stage that shows what handlers do, and waiting for facts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fairlane import Fairlane, Job
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import SECOND
from fairlane.worker.worker import WorkerRuntime

QUICK = WorkerSettings(renew_every=SECOND // 10, shutdown_deadline=SECOND // 10)
"""Beats often, and does not wait long at its end."""

PATIENCE = 60.0
"""How long a fact may take to come true on a busy machine, in seconds."""


async def until(fact: Callable[[], object]) -> None:
    """Wait until something is so; look often, and fail if it never is. The fact may have to be awaited."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = fact()
            if await found if isinstance(found, Awaitable) else found:
                return
            await asyncio.sleep(0.005)


async def until_ended(job: Job[Any]) -> None:
    """Wait until a job has ended, well or badly."""

    async def has_ended() -> bool:
        return (await job.arefresh()).is_finished

    await until(has_ended)


@asynccontextmanager
async def at_work(app: Fairlane, **options: Any) -> AsyncIterator[WorkerRuntime]:
    """Have a worker run the application's jobs; it is stopped, in good order, at the end."""
    worker = WorkerRuntime(app, **options)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()


async def burst(app: Fairlane, **options: Any) -> WorkerRuntime:
    """Run all that is claimable now."""
    worker = WorkerRuntime(app, burst=True, duties=False, **options)
    async with asyncio.timeout(PATIENCE):
        await worker.run()
    return worker


class Stage:
    """Handlers that stay on the stage until they are let go, and a count of who was there together.

    Numbers name the jobs; `most` is how many of one kind were there at once.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.started: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int]] = []
        self.present: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._release: dict[tuple[str, int], asyncio.Event] = {}
        self._is_open: set[str] = set()

    def handler(self, kind: str) -> Callable[..., Any]:
        """Return a handler of a kind that waits on the stage to be let go."""

        async def hold(number: int = 0) -> int:
            with _There(self, kind, number):
                if kind not in self._is_open:
                    await self._release.setdefault((kind, number), asyncio.Event()).wait()
            return number

        return hold

    def let_go(self, kind: str, *numbers: int) -> None:
        """Let these leave; without numbers, all that are there and will come."""
        if not numbers:
            self._is_open.add(kind)
        for (one, number), event in self._release.items():
            if one == kind and (not numbers or number in numbers):
                event.set()

    def has_ended(self, kind: str, number: int) -> bool:
        """Whether this one has left."""
        return (kind, number) in self.ended

    def count(self, kind: str) -> int:
        """Count who has ended."""
        return sum(one == kind for one, _ in self.ended)


class _There:
    """Being on the stage."""

    def __init__(self, stage: Stage, kind: str, number: int) -> None:
        self._stage, self._kind, self._number = stage, kind, number

    def __enter__(self) -> None:
        stage, kind = self._stage, self._kind
        stage.started.append((kind, self._number))
        stage.present[kind] += 1
        stage.most[kind] = max(stage.most[kind], stage.present[kind])

    def __exit__(self, *exc: object) -> None:
        self._stage.present[self._kind] -= 1
        self._stage.ended.append((self._kind, self._number))
