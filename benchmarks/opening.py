"""Measure the opening of a breaker under many workers: who still enters its block afterwards (S110, S124)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final
from uuid import UUID

from benchmarks.measured_store import own_url
from fairlane import Breaker, Context, Fairlane, Lane
from fairlane.lab.bench.driver import ALL
from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.breakers import BreakersRequest
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.worker.worker import WorkerRuntime

WORKERS: Final = 16
SLOTS: Final = 4
TENANTS: Final = 20
CALL: Final = 0.005
"""Seconds that a call of the service takes."""


class ServiceDown(Exception):  # noqa: N818 (what a service is)
    """What the service answers from some call on."""


class Calls:
    """The calls of all workers: which attempts have made one. The service goes down after `up` of them."""

    def __init__(self, up: int) -> None:
        """Begin."""
        self._up = up
        self.made: list[tuple[UUID, int]] = []

    async def call(self, job: UUID, attempt: int) -> None:
        """Answer, or fail."""
        self.made.append((job, attempt))
        is_up = len(self.made) <= self._up
        await asyncio.sleep(CALL)
        if not is_up:
            raise ServiceDown


def _app(url: str, calls: Calls) -> tuple[Fairlane, Any]:
    """Return the application of one worker, and its task, which calls the service within the block."""
    lanes = [Lane("main", SLOTS, ["default"], headroom=0)]
    app = Fairlane(url, config={}, lanes=lanes, breakers=[Breaker("mail", open_for=3_600)])

    @app.task(name="send", max_attempts=1)
    async def send(ctx: Context) -> None:
        async with app.breaker("mail"):
            await calls.call(ctx.job.id, ctx.attempt)

    return app, send


async def measure(place: str, jobs: int, number: int = 0, workers: int = WORKERS) -> dict[str, int]:
    """Let workers run jobs until the service goes down and nobody passes any more; count the calls."""
    url = own_url(place, f"opening{number}") if "://" in place else f"sqlite:///{place}/opening{number}.db"
    calls = Calls(jobs // 4)
    async with AsyncExitStack() as stack:
        made = [_app(url, calls) for _ in range(workers)]
        apps = [await stack.enter_async_context(app) for app, _ in made]
        first, send = made[0]
        await first.client.store.upkeep.migrate()
        await first.aenqueue_many(send.using(tenant=f"t{n % TENANTS}").bind() for n in range(jobs))
        runtimes = [WorkerRuntime(app) for app in apps]
        running = [asyncio.ensure_future(worker.run()) for worker in runtimes]
        await _nobody_left(first)
        for worker in runtimes:
            worker.stop()
        await asyncio.gather(*running)
        opened_at = await _opened_at(first)
        claimed_at = await _claims(first)
    late = sum(claimed_at[one] > opened_at for one in calls.made)
    return {"calls": len(calls.made), "late": late}


async def _nobody_left(app: Fairlane) -> None:
    """Wait until no job is ready or runs."""
    while True:
        counts = await app.jobs.acount()
        if not counts[State.READY] + counts[State.RUNNING]:
            return
        await asyncio.sleep(0.05)


async def _opened_at(app: Fairlane) -> Instant:
    reply = await app.client.store.breakers.list(BreakersRequest(scope=ALL, name="mail"))
    (opened_at,) = [one.state.opened_at for one in reply.breakers if one.key.tenant == ""]
    if opened_at is None:
        message = "the breaker has not opened"
        raise AssertionError(message)
    return opened_at


async def _claims(app: Fairlane) -> dict[tuple[UUID, int], Instant]:
    """Return when each attempt was claimed, in the store's time."""
    found: dict[tuple[UUID, int], Instant] = {}
    cursor: str | None = None
    while True:
        page = await app.client.store.jobs.find(FindRequest(scope=ALL, limit=MAX_PAGE_SIZE, cursor=cursor))
        found |= {(job.id, one.number): one.started_at for job in page.jobs for one in job.attempts}
        cursor = page.cursor
        if cursor is None:
            return found
