"""Measure schedules: many that are due in one second, and what they cost while none is due (S57)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any, Final
from uuid import UUID

from benchmarks.measured_store import MeasuredStore
from fairlane.duties.schedules.fire import Fire
from fairlane.lab.bench.driver import ALL, CHECKSUM, PAYLOAD
from fairlane.model.instants import HOUR, SECOND, Instant
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.states import State
from fairlane.model.schedule.records import ScheduleRecord
from fairlane.model.schedule.restart import restarted
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import Every
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import CountRequest
from fairlane.store.contract.registry import RegisterRequest, TaskRecord, WorkerRecord
from fairlane.store.contract.schedules import MAX_SCHEDULE_CHANGES, ScheduleChange, SchedulesWriteRequest
from fairlane.store.opening import open_store

SCHEDULERS: Final = 3
KILLED_AFTER: Final = 1
"""How many times the scheduler takes slots that is killed: before it makes their jobs."""

IDLE_PASSES: Final = 20
TENANTS: Final = 100


async def measure(place: str, schedules: int, number: int = 0) -> dict[str, Any]:
    """Let three schedulers fire schedules that are all due in one second; one of them is killed."""
    bench = MeasuredStore(place, f"due{number}")
    await bench.store.upkeep.migrate()
    await _publish(bench.store)
    due_at = time.time_ns() // 1000 // SECOND * SECOND
    for start in range(0, schedules, MAX_SCHEDULE_CHANGES):
        await _declare(bench.store, range(start, min(schedules, start + MAX_SCHEDULE_CHANGES)), due_at)
    stores = [open_store(bench.url) for _ in range(SCHEDULERS)]
    try:
        calls = [CountedStore(store) for store in stores]
        calls[0].dies_after = KILLED_AFTER
        before = time.perf_counter()
        ended = await asyncio.gather(*map(_until_rest, calls), return_exceptions=True)
        took = time.perf_counter() - before
        unexpected = [one for one in ended if isinstance(one, Exception) and not isinstance(one, KilledError)]
        if unexpected:
            raise ExceptionGroup("a scheduler has failed", unexpected)
        jobs = await _count(bench.store)
        return {
            "seconds": took,
            "jobs": jobs,
            "killed": sum(isinstance(one, KilledError) for one in ended),
            "idle": await _idle(stores[1]),
        }
    finally:
        for store in (*stores, bench.store):
            await store.upkeep.aclose()


class KilledError(Exception):
    """A scheduler has come to its end."""


class CountedStore:
    """A store that counts the calls of its verbs, and ends its user after so many writes of schedules."""

    def __init__(self, store: Store) -> None:
        """Count from nothing."""
        self.calls: Counter[str] = Counter()
        self.dies_after = -1
        self._store = store

    def __getattr__(self, facet: str) -> Any:
        return _CountedFacet(self, facet, getattr(self._store, facet))

    def count(self, verb: str) -> None:
        """Count one call."""
        if self.calls["schedules.write"] == self.dies_after:
            raise KilledError
        self.calls[verb] += 1


class _CountedFacet:
    def __init__(self, store: CountedStore, name: str, facet: Any) -> None:
        self._store = store
        self._name = name
        self._facet = facet

    def __getattr__(self, verb: str) -> Any:
        self._store.count(f"{self._name}.{verb}")
        return getattr(self._facet, verb)


async def _until_rest(store: Any) -> None:
    fire = Fire(MachineClock(), must_be_declared=False)
    while not await fire(store):
        pass


async def _idle(store: Store) -> float:
    """Return how many calls a second a scheduler makes while nothing is due, its first pass apart."""
    counted: Any = CountedStore(store)
    fire = Fire(MachineClock(), must_be_declared=False)
    await fire(counted)
    counted.calls.clear()
    pauses = [await fire(counted) for _ in range(IDLE_PASSES)]
    return float(counted.calls.total() / (sum(pauses) / SECOND))


async def _publish(store: Store) -> None:
    record = TaskRecord(name="noop", queue="default")
    card = WorkerRecord(
        id="bench", host="here", pid=1, version="1", queues=("default",), slots=1, tasks=(record,)
    )
    await store.registry.register(RegisterRequest(scope=ALL, record=card, renew_every=HOUR))


async def _declare(store: Store, numbers: range, due_at: Instant) -> None:
    changes = []
    for number in numbers:
        job = NewJob(
            id=UUID(int=0),
            tenant=f"t{number % TENANTS}",
            queue="default",
            task="noop",
            payload=PAYLOAD,
            checksum=CHECKSUM,
        )
        spec = ScheduleSpec(name=f"s{number:06}", job=job, timing=Every(interval=HOUR, anchor=due_at))
        record = restarted(ScheduleRecord(name=spec.name, declared=spec), due_at - 1)
        changes.append(ScheduleChange(name=spec.name, record=record))
    await store.schedules.write(SchedulesWriteRequest(scope=ALL, changes=tuple(changes)))


async def _count(store: Store) -> int:
    jobs, cursor = 0, None
    while True:
        page = await store.jobs.count(CountRequest(scope=ALL, cursor=cursor))
        jobs += sum(one.jobs for one in page.counts if one.state is State.READY)
        cursor = page.cursor
        if cursor is None:
            return jobs
