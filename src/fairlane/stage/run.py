"""Play one run: start real workers, bring the jobs when they are due, end when all is done.

What the run meant is judged from the ledger that it leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fairlane import Fairlane
from fairlane.model.history import Verdict, check
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.ledger import Acknowledged, Found, Moment, Reading
from fairlane.model.lifecycle import Home, home
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.stage.arrivals import Arrival
from fairlane.stage.crew import Crew, StageError, crew
from fairlane.stage.figures import Figures
from fairlane.stage.plan import HELD, Plan, make_app, task_of
from fairlane.stage.recorder import Recorder, Tail, read_all
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.registry import WorkersRequest
from fairlane.store.contract.request import PAGE_MOST, Request

_TICK: Final[Micros] = SECOND // 4
BATCH: Final = 1_000
"""How many jobs one enqueue may hold (S12)."""

Show = Callable[[Figures, Micros], None]
"""Gets the figures and how long the run has lasted, four times a second."""

Prepare = Callable[[Fairlane], Awaitable[None]]
"""Sets what is to hold in the store."""


class Change(NamedTuple):
    """What is set in the store in the middle of a run, so long after its beginning."""

    at: Micros
    make: Prepare


class Run:
    """One queue of a store, its workers, and what was seen of them.

    Afterwards `used` are the seconds of the processor that the workers took, `homes` where the jobs are, and
    `changed_at` is when a change was certainly made.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        processes: int,
        at_most: Micros,
        tenant: str | None = None,
        at_once: int = BATCH,
    ) -> None:
        """With `tenant` all jobs are stored under that name: then the order is first in, first out.

        Jobs of the tasks in `HELD` are not waited for. `at_most` bounds the run. Arrivals that are due
        together are brought together, up to `at_once` jobs.
        """
        self.figures = Figures()
        self.began_at: Micros = 0
        self.used = 0.0
        self.homes = dict.fromkeys(Home, 0)
        self.changed_at: Moment | None = None
        self._plan = plan
        self._folder = Path(plan.folder)
        self._processes = processes
        self._at_most = at_most
        self._tenant = tenant
        self._at_once = at_once
        self._clock = MachineClock()
        self._tail = Tail(self._folder)
        self._to_end = 0
        self._since: Instant = 0
        self._folder.mkdir(parents=True, exist_ok=True)

    async def play(
        self,
        arrivals: Sequence[Arrival],
        show: Show | None = None,
        *,
        ahead: Sequence[Arrival] = (),
        prepare: Prepare | None = None,
        change: Change | None = None,
        lasts: Micros | None = None,
    ) -> Verdict:
        """Bring all arrivals, see every job end, and say what the history checker says.

        What is in `ahead` is there before the workers are. With `lasts` the workers are stopped after that
        time, in good order, whatever is still waiting.
        """
        record = Recorder(self._folder / "brought.jsonl")
        async with make_app(self._plan) as app:
            await app.client.store.upkeep.migrate()
            self._since = (await app.client.store.registry.pulse(Request(scope=Scope.all()))).now
            if prepare is not None:
                await prepare(app)
            self.began_at = self._clock.elapsed()
            await self._enqueue(app, list(ahead), record)
            with crew(self._plan, self._processes) as workers:
                await self._until_there(app, workers)
                self.began_at = self._clock.elapsed()
                await self._bring(app, arrivals, workers, show or _unseen, record, change=change, lasts=lasts)
            self.figures.follow(self._tail.look())
            self.used = workers.usage()
            record.close()
            await self._read(app)
        return check(read_all(self._folder), drained=self.figures.ended == len(self.figures.jobs))

    async def _bring(
        self,
        app: Fairlane,
        arrivals: Sequence[Arrival],
        workers: Crew,
        show: Show,
        record: Recorder,
        *,
        change: Change | None,
        lasts: Micros | None,
    ) -> None:
        due = sorted(arrivals, reverse=True)
        began_at = shown_at = self.began_at
        while due or self.figures.ended < self._to_end:
            now = self._clock.elapsed()
            if lasts is not None and now - began_at >= lasts:
                break
            if change is not None and began_at + change.at <= now:
                await change.make(app)
                self.changed_at, change = self._clock.elapsed(), None
                continue
            if due and began_at + due[-1].at <= now:
                await self._enqueue(app, _take(due, now - began_at, self._at_once), record)
                continue
            if now >= shown_at:
                self.figures.follow(self._tail.look())
                show(self.figures, now - began_at)
                shown_at = now + _TICK
                workers.check()
                if now - began_at > self._at_most:
                    raise StageError(
                        f"the jobs were not done after {self._at_most // SECOND} s; see {self._folder}"
                    )
            planned = [due[-1].at] if due else []
            planned += [] if change is None else [change.at]
            next_at = min([shown_at, *(began_at + at for at in planned)])
            await self._clock.wait(next_at - now)
        show(self.figures, self._clock.elapsed() - began_at)

    async def _enqueue(self, app: Fairlane, arrivals: Sequence[Arrival], record: Recorder) -> None:
        """Enqueue what has arrived, in as few calls as may be."""
        singles = [arrival for arrival in arrivals for _ in range(arrival.jobs)]
        tasks = {name: task_of(app, name) for name in {arrival.task for arrival in arrivals}}
        for start in range(0, len(singles), BATCH):
            batch = singles[start : start + BATCH]
            tenants = [self._tenant or one.tenant for one in batch]
            before = self._clock.elapsed()
            jobs = await app.aenqueue_many(
                tasks[one.task].using(tenant=tenant, priority=one.priority).bind(lasts=one.lasts)
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
                self.figures.bring(one.tenant, [str(job.id)], before, after)
                self._to_end += one.task not in HELD

    async def _until_there(self, app: Fairlane, workers: Crew) -> None:
        """Wait until every worker has introduced itself."""
        request = WorkersRequest(scope=Scope.all())
        while True:
            found = await app.client.store.registry.workers(request)
            if sum(self._plan.queue in one.card.queues for one in found) >= self._processes:
                return
            workers.check()
            await self._clock.wait(SECOND // 50)

    async def _read(self, app: Fairlane) -> None:
        """Write down where every job is in the end; what was there before this run is left out."""
        record = Recorder(self._folder / "reading.jsonl")
        for queue in self._plan.queues:
            await self._read_queue(app, queue, record)
        record.write(Reading(**{home.value: jobs for home, jobs in self.homes.items()}))
        record.close()

    async def _read_queue(self, app: Fairlane, queue: str, record: Recorder) -> None:
        cursor: str | None = None
        while True:
            request = FindRequest(
                scope=Scope.all(), queue=queue, since=self._since, limit=PAGE_MOST, cursor=cursor
            )
            page = await app.client.store.jobs.find(request)
            found = [
                Found(
                    job=str(job.id),
                    home=home(job.state),
                    state=job.state,
                    attempt=job.attempt,
                    failures=job.failures,
                    tenant=job.tenant,
                )
                for job in page.jobs
            ]
            for one in found:
                self.homes[one.home] += 1
            for job in page.jobs:
                seen = self.figures.jobs.get(str(job.id))
                if seen is not None and job.attempts:
                    seen.claimed_at, seen.settled_at = job.attempts[-1].started_at, job.attempts[-1].ended_at
            record.write(*found)
            cursor = page.cursor
            if cursor is None:
                return


def _unseen(_figures: Figures, _elapsed: Micros) -> None:
    """Show nothing."""


def _take(due: list[Arrival], elapsed: Micros, most: int) -> list[Arrival]:
    """Take what has become due, the last first, but no more than so many jobs."""
    taken = [due.pop()]
    while due and due[-1].at <= elapsed and sum(one.jobs for one in taken) + due[-1].jobs <= most:
        taken.append(due.pop())
    return taken
