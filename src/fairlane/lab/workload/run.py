"""One run: start real workers, enqueue the jobs when they are due, stop when all are done.

The history checker judges the run afterwards, from the ledger.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fairlane import Fairlane
from fairlane.lab.history import Verdict, check
from fairlane.lab.ledger import Acknowledged, Found, Moment, Reading
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.plan import HELD, RunPlan, make_app, task_of
from fairlane.lab.workload.recorder import LedgerReader, Recorder, read_all
from fairlane.lab.workload.stats import RunStats
from fairlane.lab.workload.worker_processes import RunError, WorkerProcesses, run_workers
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.lifecycle.states import Home, home
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.registry import WorkersRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request

_TICK: Final[Micros] = SECOND // 4
BATCH: Final = 1_000
"""The maximum number of jobs of one enqueue (S12)."""

Show = Callable[[RunStats, Micros], None]
"""Called four times a second with the statistics and the duration so far."""

Prepare = Callable[[Fairlane], Awaitable[None]]
"""Sets policies in the store before the workers start."""


class ScheduledChange(NamedTuple):
    """A change of policy in the middle of a run, `at` after its start."""

    at: Micros
    make: Prepare


class WorkloadRun:
    """One queue of a store, its workers, and what was recorded of them.

    Afterwards `cpu_seconds` has the CPU seconds of the workers, `homes` the number of jobs in each home, and
    `changed_at` the time by which a change was certainly made.
    """

    def __init__(
        self,
        plan: RunPlan,
        *,
        processes: int,
        timeout: Micros,
        tenant: str | None = None,
        batch_size: int = BATCH,
    ) -> None:
        """With `tenant` all jobs are stored under that name, so that they run first in, first out.

        Jobs of the tasks in `HELD` are not waited for. `timeout` bounds the run. Arrivals that are due
        together are enqueued together, up to `batch_size` jobs.
        """
        self.stats = RunStats()
        self.began_at: Micros = 0
        self.cpu_seconds = 0.0
        self.homes = dict.fromkeys(Home, 0)
        self.changed_at: Moment | None = None
        self._plan = plan
        self._folder = Path(plan.folder)
        self._processes = processes
        self._timeout = timeout
        self._tenant = tenant
        self._batch_size = batch_size
        self._clock = MachineClock()
        self._ledger = LedgerReader(self._folder)
        self._expected = 0
        self._since: Instant = 0
        self._folder.mkdir(parents=True, exist_ok=True)

    async def execute(
        self,
        arrivals: Sequence[Arrival],
        show: Show | None = None,
        *,
        backlog: Sequence[Arrival] = (),
        prepare: Prepare | None = None,
        change: ScheduledChange | None = None,
        stop_after: Micros | None = None,
    ) -> Verdict:
        """Enqueue all arrivals, wait until every job has ended, and return the history checker's verdict.

        The jobs of `backlog` are enqueued before the workers start. With `stop_after` the workers are stopped
        gracefully after that time, whatever is still waiting.
        """
        record = Recorder(self._folder / "enqueued.jsonl")
        async with make_app(self._plan) as app:
            await app.client.store.upkeep.migrate()
            self._since = (await app.client.store.registry.status(Request(scope=Scope.all()))).now
            if prepare is not None:
                await prepare(app)
            self.began_at = self._clock.elapsed()
            await self._enqueue(app, list(backlog), record)
            with run_workers(self._plan, self._processes) as workers:
                await self._wait_for_workers(app, workers)
                self.began_at = self._clock.elapsed()
                await self._enqueue_arrivals(
                    app,
                    arrivals,
                    workers,
                    show or _show_nothing,
                    record,
                    change=change,
                    stop_after=stop_after,
                )
            self.stats.add_records(self._ledger.read_new())
            self.cpu_seconds = workers.usage()
            record.close()
            await self._record_jobs(app)
        return check(read_all(self._folder), drained=self.stats.ended == len(self.stats.jobs))

    async def _enqueue_arrivals(
        self,
        app: Fairlane,
        arrivals: Sequence[Arrival],
        workers: WorkerProcesses,
        show: Show,
        record: Recorder,
        *,
        change: ScheduledChange | None,
        stop_after: Micros | None,
    ) -> None:
        due = sorted(arrivals, reverse=True)
        began_at = shown_at = self.began_at
        while due or self.stats.ended < self._expected:
            now = self._clock.elapsed()
            if stop_after is not None and now - began_at >= stop_after:
                break
            if change is not None and began_at + change.at <= now:
                await change.make(app)
                self.changed_at, change = self._clock.elapsed(), None
                continue
            if due and began_at + due[-1].at <= now:
                await self._enqueue(app, _take_due(due, now - began_at, self._batch_size), record)
                continue
            if now >= shown_at:
                self.stats.add_records(self._ledger.read_new())
                show(self.stats, now - began_at)
                shown_at = now + _TICK
                workers.check()
                if now - began_at > self._timeout:
                    raise RunError(
                        f"the jobs were not finished after {self._timeout // SECOND} s; see {self._folder}"
                    )
            planned = [due[-1].at] if due else []
            planned += [] if change is None else [change.at]
            next_at = min([shown_at, *(began_at + at for at in planned)])
            await self._clock.wait(next_at - now)
        show(self.stats, self._clock.elapsed() - began_at)

    async def _enqueue(self, app: Fairlane, arrivals: Sequence[Arrival], record: Recorder) -> None:
        """Enqueue what has arrived, in as few calls as possible."""
        singles = [arrival for arrival in arrivals for _ in range(arrival.jobs)]
        tasks = {name: task_of(app, name) for name in {arrival.task for arrival in arrivals}}
        for start in range(0, len(singles), BATCH):
            batch = singles[start : start + BATCH]
            tenants = [self._tenant or one.tenant for one in batch]
            before = self._clock.elapsed()
            jobs = await app.aenqueue_many(
                tasks[one.task].using(tenant=tenant, priority=one.priority).bind(duration=one.duration)
                for one, tenant in zip(batch, tenants, strict=True)
            )
            after = self._clock.elapsed()
            record.write(
                *(
                    Acknowledged(job=str(job.id), tenant=job.tenant, queue=job.queue, task=job.task, at=after)
                    for job in jobs
                )
            )
            for one, job in zip(batch, jobs, strict=True):
                self.stats.add_enqueued(one.tenant, [str(job.id)], before, after)
                self._expected += one.task not in HELD

    async def _wait_for_workers(self, app: Fairlane, workers: WorkerProcesses) -> None:
        """Wait until every worker has registered."""
        request = WorkersRequest(scope=Scope.all())
        while True:
            found = await app.client.store.registry.workers(request)
            if sum(self._plan.queue in one.record.queues for one in found) >= self._processes:
                return
            workers.check()
            await self._clock.wait(SECOND // 50)

    async def _record_jobs(self, app: Fairlane) -> None:
        """Record where every job of this run is at the end."""
        record = Recorder(self._folder / "reading.jsonl")
        for queue in self._plan.queues:
            await self._record_queue(app, queue, record)
        record.write(Reading(**{home.value: jobs for home, jobs in self.homes.items()}))
        record.close()

    async def _record_queue(self, app: Fairlane, queue: str, record: Recorder) -> None:
        cursor: str | None = None
        while True:
            request = FindRequest(
                scope=Scope.all(), queue=queue, since=self._since, limit=MAX_PAGE_SIZE, cursor=cursor
            )
            page = await app.client.store.jobs.find(request)
            found = [
                Found(
                    job=str(job.id),
                    home=home(job.state),
                    state=job.state,
                    attempt=job.attempt,
                    failures=job.failures,
                    crashes=job.crashes,
                    tenant=job.tenant,
                )
                for job in page.jobs
            ]
            for one in found:
                self.homes[one.home] += 1
            for job in page.jobs:
                seen = self.stats.jobs.get(str(job.id))
                if seen is not None and job.attempts:
                    seen.claimed_at, seen.settled_at = job.attempts[-1].started_at, job.attempts[-1].ended_at
            record.write(*found)
            cursor = page.cursor
            if cursor is None:
                return


def _show_nothing(_figures: RunStats, _elapsed: Micros) -> None:
    """Show nothing."""


def _take_due(due: list[Arrival], elapsed: Micros, most: int) -> list[Arrival]:
    """Take what has become due, earliest first, but no more than this many jobs."""
    taken = [due.pop()]
    while due and due[-1].at <= elapsed and sum(one.jobs for one in taken) + due[-1].jobs <= most:
        taken.append(due.pop())
    return taken
