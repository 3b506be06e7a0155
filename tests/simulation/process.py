"""One simulated process: an application, the loops of its threads, and its death. Real code runs inside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from random import Random
from typing import Any, TypeVar, cast
from uuid import UUID

from fairlane import Fairlane
from fairlane.app.enqueue.call import Call, Options
from fairlane.app.job import Job
from fairlane.app.portal import Portal
from fairlane.lab import ledger
from fairlane.lab.ledger import Record
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.runtime.clock import Clock
from fairlane.runtime.thread_pool import ThreadCall
from tests.oracle.clock import START
from tests.simulation.loop import Schedule, SimLoop
from tests.simulation.provider import Provider
from tests.simulation.work import GATE, TASKS, Plan

T = TypeVar("T")

Wanted = tuple[str, str, int, Plan, dict[str, Any]]
"""A job to enqueue: task, tenant, its two arguments, and options."""


class ProcessLoop(SimLoop):
    """A loop that knows whose thread it is."""

    process: Process


class SimClock(Clock):
    """A process's clocks: virtual, and a wall clock that may be wrong."""

    def __init__(self, schedule: Schedule, skew: Micros) -> None:
        """Be wrong by so much."""
        self._schedule = schedule
        self._skew = skew

    def wall(self) -> Instant:
        """Say what time people have here."""
        return START + self._schedule.now + self._skew

    def elapsed(self) -> Micros:
        """Count on."""
        return self._schedule.now

    async def wait(self, duration: Micros) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(max(0, duration) / SECOND)


class SimPortal(Portal):
    """The real portal, but for its thread: that is a loop of the simulation."""

    def __init__(self, loop: SimLoop) -> None:
        """Have this loop for a thread."""
        super().__init__()
        self._loop = loop

    @property
    def is_open(self) -> bool:
        """It is there from the start."""
        return True

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the portal's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End with its process."""


class SimThreads:
    """Stands for the threads of plain handlers: each function runs at one moment, some time after."""

    def __init__(self, name: str) -> None:
        """Belong to the process in whose loop this is made."""
        process = cast("ProcessLoop", asyncio.get_running_loop()).process
        self._loop, self._rng = process.threads, process.rng

    def submit(self, work: Callable[[], None]) -> ThreadCall:
        """Run a function soon, or rather late."""
        ticket = ThreadCall(work)
        self._loop.call_later(self._rng.choice((0.001, 0.05, 0.5, 5.0)) * self._rng.random(), work)
        return ticket

    def ended(self, ticket: ThreadCall) -> None:
        """There is always a thread."""

    def abandon(self, ticket: ThreadCall) -> None:
        """It ends when it ends."""

    def close(self) -> None:
        """There is nothing to end."""


class Process:
    """A process: what it runs, what it has written in the ledger, and whether it lives."""

    def __init__(self, schedule: Schedule, rng: Random, name: str, app: Fairlane) -> None:
        """Start with three threads: its own, the portal's, and one for plain handlers."""
        self.name = name
        self.number = schedule.next_number()
        self.app = app
        self.rng = rng
        self.ledger: list[Record] = []
        self.started: set[tuple[UUID, int]] = set()
        self.is_alive = True
        self.is_well = True
        self.is_over = False
        self.provider = Provider()
        self._schedule = schedule
        self.main, self.portal, self.threads = (self._loop(part) for part in ("main", "portal", "threads"))
        app.client.portal = SimPortal(self.portal)
        app.client.clock = SimClock(schedule, rng.choice((0, 0, -20, 20)) * SECOND)

    def _loop(self, part: str) -> ProcessLoop:
        made = ProcessLoop(self._schedule, f"{self.name} {part}")  # type: ignore[abstract]
        made.process = self
        return self._schedule.add(made)

    @property
    def loops(self) -> tuple[ProcessLoop, ...]:
        """The loops of its threads."""
        return self.main, self.portal, self.threads

    def elapsed(self) -> Micros:
        """Say what time it is for the ledger."""
        return self._schedule.now

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Let the process do this in its own loop."""
        self.main.create_task(work)

    # ── what happens to it ────────────────────────────────────────────────────

    def kill(self) -> None:
        """End at once, with everything half done."""
        self.is_alive = self.is_well = False
        for loop in self.loops:
            loop.kill()

    def freeze(self, *, only_main: bool = False) -> None:
        """Freeze, whole (as under SIGSTOP) or in its main thread alone (a handler that blocks)."""
        self.is_well = False
        for loop in (self.main,) if only_main else self.loops:
            loop.freeze()

    def thaw(self) -> None:
        """Go on."""
        for loop in self.loops:
            loop.thaw()

    def close(self) -> None:
        """Let go of its stores, after the run."""
        self.is_over = True
        for loop in self.loops:
            loop.revive()
            loop.create_task(self.app.client.aclose_here())

    # ── what it enqueues ──────────────────────────────────────────────────────

    async def enqueue(self, task: str, tenant: str, n: int, plan: Plan, options: dict[str, Any]) -> Job[Any]:
        """Enqueue one job as applications do, and note what was acknowledged."""
        (job,) = await self.enqueue_many([(task, tenant, n, plan, options)])
        return job

    async def enqueue_many(self, wanted: list[Wanted]) -> list[Job[Any]]:
        """Enqueue some jobs together, and note what was acknowledged."""
        calls: list[Call[Any]] = [
            Call(TASKS[task], Options(tenant=tenant, **options), {"n": n, "plan": plan})
            for task, tenant, n, plan, options in wanted
        ]
        jobs = await self.app.aenqueue_many(calls)
        self.acknowledged(jobs)
        return jobs

    async def reprocess(self, id: UUID) -> Job[Any]:
        """Run a dead job again, and note what was acknowledged."""
        job = await self.app.dead.areprocess(id, note="again")
        self.acknowledged([job])
        return job

    async def again(self, id: UUID) -> Job[Any]:
        """Enqueue a copy of a finished job, and note what was acknowledged."""
        job = await self.app.jobs.aagain(id, note="once more")
        self.acknowledged([job])
        return job

    def acknowledged(self, jobs: list[Job[Any]]) -> None:
        """Write down which jobs the store has said it has."""
        for job in jobs:
            self.ledger.append(
                ledger.Acknowledged(
                    **work_of(str(job.id), job.tenant, job.queue, job.task),
                    created=job.created,
                    at=self.elapsed(),
                )
            )


def work_of(job: str, tenant: str, queue: str, task: str) -> dict[str, Any]:
    """Return what every enqueue's line says of its job."""
    gate = GATE.name if task == "shoot" else None
    return {
        "job": job,
        "tenant": tenant,
        "queue": queue,
        "task": task,
        "gate": gate,
        "budget": TASKS[task].budget,
        "once": TASKS[task].at_most_once,
    }
