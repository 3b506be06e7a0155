"""Play one run: start real workers, bring the jobs when they are due, end when all is done.

What the run meant is judged from the ledger that it leaves.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlane.app.fairlane import Fairlane
from fairlane.app.tasks import Task
from fairlane.demo.arrivals import PROCESSES, Arrival
from fairlane.demo.figures import Figures
from fairlane.demo.play import LEDGER, work
from fairlane.demo.recorder import Recorder, Tail, read_all
from fairlane.model.errors import FairlaneError
from fairlane.model.history import Verdict, check
from fairlane.model.instants import SECOND, Micros
from fairlane.model.ledger import Acknowledged, Found, Reading
from fairlane.model.lifecycle import home
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract.registry import WorkersRequest

_TICK: Final[Micros] = SECOND // 4
_LONGEST: Final[Micros] = 120 * SECOND
_STOP_WITHIN: Final = 20.0
_PAGE: Final = 1_000

Show = Callable[[Figures, Micros], None]
"""Gets the figures and how long the run has lasted, four times a second."""


class DemoError(FairlaneError):
    """The demonstration could not be played to its end."""


class Run:
    """One store in a folder of its own, its workers, and what was seen of them."""

    def __init__(self, folder: Path, *, one_tenant: bool) -> None:
        """With `one_tenant` all jobs are stored under one name: then the order is first in, first out."""
        self.figures = Figures()
        self._folder = folder
        self._tenant = "everyone" if one_tenant else None
        self._clock = MachineClock()
        self._url = f"sqlite:///{folder / 'fairlane.db'}"
        folder.mkdir()

    async def play(self, arrivals: Sequence[Arrival], show: Show) -> Verdict:
        """Bring all arrivals, see every job end, and say what the history checker says."""
        async with Fairlane(self._url, name="demo", config={}) as app:
            task: Task[[], None] = app.task(name=work.name)(work.func)
            await app.client.store.upkeep.migrate()
            with self._workers() as workers:
                await self._until_there(app, workers)
                await self._bring(app, task, arrivals, workers, show)
            await self._read(app)
        return check(read_all(self._folder), drained=True)

    async def _bring(
        self,
        app: Fairlane,
        task: Task[[], None],
        arrivals: Sequence[Arrival],
        workers: Sequence[subprocess.Popen[bytes]],
        show: Show,
    ) -> None:
        record = Recorder(self._folder / "demo.jsonl")
        tail = Tail(self._folder)
        due = list(reversed(arrivals))
        began_at = shown_at = self._clock.elapsed()
        while due or any(tally.ended < tally.came for tally in self.figures.tallies.values()):
            now = self._clock.elapsed()
            if due and began_at + due[-1].at <= now:
                await self._enqueue(app, task, due.pop(), record)
                continue
            if now >= shown_at:
                self.figures.follow(tail.look())
                show(self.figures, now - began_at)
                shown_at = now + _TICK
                _check_on(workers, self._folder)
                if now - began_at > _LONGEST:
                    raise DemoError(
                        f"the jobs were not done after {_LONGEST // SECOND} s; see {self._folder}"
                    )
            next_at = min([shown_at, *(began_at + one.at for one in due[-1:])])
            await self._clock.wait(next_at - now)
        show(self.figures, self._clock.elapsed() - began_at)
        record.close()

    async def _enqueue(self, app: Fairlane, task: Task[[], None], arrival: Arrival, record: Recorder) -> None:
        tenant = self._tenant or arrival.tenant
        before = self._clock.elapsed()
        jobs = await app.aenqueue_many(task.using(tenant=tenant).bind() for _ in range(arrival.jobs))
        after = self._clock.elapsed()
        ids = [str(job.id) for job in jobs]
        record.write(
            *(Acknowledged(job=id, tenant=tenant, queue="default", task=work.name, at=after) for id in ids)
        )
        self.figures.bring(arrival.tenant, ids, before)

    async def _until_there(self, app: Fairlane, workers: Sequence[subprocess.Popen[bytes]]) -> None:
        """Wait until every worker has introduced itself."""
        while len(await app.client.store.registry.workers(WorkersRequest(scope=Scope.all()))) < PROCESSES:
            _check_on(workers, self._folder)
            await self._clock.wait(SECOND // 50)

    async def _read(self, app: Fairlane) -> None:
        """Write down where every job is in the end."""
        record = Recorder(self._folder / "reading.jsonl")
        homes = {"hot": 0, "history": 0, "dead": 0}
        cursor: str | None = None
        while True:
            page = await app.jobs.afind(limit=_PAGE, cursor=cursor)
            found = [
                Found(
                    job=str(job.id),
                    home=home(job.state),
                    state=job.state,
                    attempt=job.attempt,
                    failures=job.failures,
                    tenant=job.tenant,
                )
                for job in page
            ]
            for one in found:
                homes[one.home.value] += 1
            record.write(*found)
            cursor = page.cursor
            if cursor is None:
                break
        record.write(Reading(**homes))
        record.close()

    @contextmanager
    def _workers(self) -> Generator[list[subprocess.Popen[bytes]]]:
        # What is set for another application is not meant for this one.
        own = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLANE_")}
        environment = {**own, "FAIRLANE_URL": self._url, LEDGER: str(self._folder)}
        command = [sys.executable, "-m", "fairlane", "worker", f"{work.func.__module__}:app"]
        workers: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(PROCESSES):
                with (self._folder / f"worker-{number}.log").open("wb") as log:
                    workers.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))  # noqa: S603
            yield workers
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(_STOP_WITHIN)
            _check_on(workers, self._folder, at_end=True)
        finally:
            for worker in workers:
                worker.kill()  # without effect on one that has ended
                worker.wait()


def _check_on(workers: Sequence[subprocess.Popen[bytes]], folder: Path, *, at_end: bool = False) -> None:
    for number, worker in enumerate(workers):
        code = worker.poll()
        if code is not None and (code != 0 or not at_end):
            log = (folder / f"worker-{number}.log").read_text(errors="replace")[-2_000:]
            raise DemoError(f"worker {number} ended with code {code}:\n{log}")
