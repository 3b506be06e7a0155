"""One worker, a million jobs in a row: nothing is lost, its memory stays, and a job costs what it did.

What was written down is judged in chapters, some thousand jobs at a time, and let go of; so that the judge
needs no more memory for the last chapter than for the first.
"""

from __future__ import annotations

import asyncio
import random
import signal
import statistics
import tempfile
import time
import zlib
from array import array
from collections import deque
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from fairlane.lab import ledger
from fairlane.lab.history import check as judge_history
from fairlane.model.instants import SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import is_finished
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.opening import open_store
from tests.campaigns.errand import Errand
from tests.campaigns.field import SETTINGS, TENANTS, Worker, opened_in
from tests.campaigns.places import Place, processor_time
from tests.contract.world import payload
from tests.faults.campaign import Actor, reading
from tests.invariants import count_all, of_each, read_books
from tests.processes.conftest import PATIENCE

TASKS: Final = ("short",) * 7 + ("plain",)
"""Seven of eight handlers run in the worker's loop, one in a thread."""
SLOTS: Final = 64
BATCH: Final = 250
BACKLOG: Final = 3_000
CHAPTER: Final = 2_500
SAMPLED: Final = 2_000
SOAKED: Final = 200_000
"""Jobs after which growth and drift are judged; before that they are only told."""
GROWTH: Final = 1.05
DRIFT: Final = 1.5
COST: Final = 1.3
"""Others use the same cores, and jobs wait longer: that is drift only if they take more processor time."""


async def soak(errand: Errand) -> None:
    """Let one worker run jobs for long; its memory, the wait of jobs and what they cost stay as they are."""
    with tempfile.TemporaryDirectory(prefix="fairlane-soak-") as name, opened_in(errand, name) as place:
        store = open_store(place.url)
        settings = {**SETTINGS, "slots": SLOTS}
        errand.settings |= {"workers": "1", **{name: str(value) for name, value in settings.items()}}
        worker = Worker(place.url, Path(name), settings, None)
        try:
            await store.upkeep.migrate()
            await Soak(errand, place, store, worker).run()
        finally:
            worker.stop()
            await store.upkeep.aclose()


class _Chapter:
    """Some thousand jobs in a row, and all that was written down of them."""

    def __init__(self) -> None:
        self.ids: list[UUID] = []
        self.records: list[ledger.Record] = []
        self.acknowledged: dict[str, ledger.Moment] = {}
        self.unsettled = 0


class _Sample(NamedTuple):
    """What was so when a number of jobs had started: megabytes, and seconds of the processor so far."""

    jobs: int
    memory: float
    processor: float


class Soak:
    """A soak under way."""

    def __init__(self, errand: Errand, place: Place, store: Store, worker: Worker) -> None:
        self._errand = errand
        self._place = place
        self._worker = worker
        self._actor = Actor(store, self._write)
        self._draw = random.Random(errand.seed)
        self._chapters = deque([_Chapter()])
        self._of: dict[str, _Chapter] = {}
        """The chapter of each job whose chapter is not judged yet."""
        self._waits = array("q")
        self._samples: list[_Sample] = []
        self._given = self._settled = 0
        self._last_news = time.monotonic()

    async def run(self) -> None:
        """Feed and follow the worker until enough is done; then all is drained and judged."""
        errand = self._errand
        while self._settled < self._given or errand.goes_on:
            wanted = min(BATCH, errand.wanted - self._given)
            if errand.goes_on and wanted and self._given - self._settled < BACKLOG:
                await self._feed(wanted)
            else:
                await asyncio.sleep(0.005)
            self._follow()
            await self._judge_chapters(keeping=2)
        self._worker.signal(signal.SIGTERM)
        code = await asyncio.to_thread(self._worker.end)
        assert code == 0, f"the worker ended with {code}"
        self._follow()
        await self._judge_chapters(keeping=0)
        await self._judge_books()
        self._judge_drift()

    # ── work ──────────────────────────────────────────────────────────────────

    async def _feed(self, number: int) -> None:
        if len(self._chapters[-1].ids) >= CHAPTER:
            self._chapters.append(_Chapter())
        body = payload(seconds=0.0)
        options: dict[str, Any] = {"payload": body, "checksum": zlib.crc32(body), "max_attempts": 100}
        jobs = [
            self._actor.new(self._draw.choice(TENANTS), task=self._draw.choice(TASKS), **options)
            for _ in range(number)
        ]
        self._given += number
        self._errand.figures["repeats"] += await self._actor.insist(*jobs)

    def _write(self, record: ledger.Record) -> None:
        """Write down what the enqueuer does, in the chapter of its jobs."""
        chapter = self._chapters[-1]
        chapter.records.append(record)
        if isinstance(record, ledger.Attempted):
            chapter.ids.append(UUID(record.job))
            chapter.unsettled += 1
            self._of[record.job] = chapter
        elif isinstance(record, ledger.Acknowledged):
            chapter.acknowledged[record.job] = record.at

    def _follow(self) -> None:
        """Read on in what the worker writes down."""
        news = self._worker.news()
        now = time.monotonic()
        if news:
            self._last_news = now
        assert now - self._last_news < PATIENCE, f"the worker has done nothing for {PATIENCE:.0f} s"
        for one in news:
            self._note(one)

    def _note(self, one: ledger.Record) -> None:
        assert isinstance(
            one, ledger.Started | ledger.Ended | ledger.Settled | ledger.Stale | ledger.Reclaimed
        )
        chapter = self._of.get(one.job)
        if chapter is None:
            # A renewal that was on its way as its job was settled may be answered long after.
            assert isinstance(one, ledger.Stale), f"long after its end: {one}"
            self._errand.figures["stale"] += 1
            return
        chapter.records.append(one)
        if isinstance(one, ledger.Started):
            self._errand.figures["starts"] += 1
            # The enqueuer may hear later that its batch was taken than the worker runs it.
            self._waits.append(max(0, one.at - chapter.acknowledged.get(one.job, one.at)))
        elif isinstance(one, ledger.Settled) and is_finished(one.state):
            chapter.unsettled -= 1
            self._settled += 1
            self._errand.n = self._settled
            if not self._settled % SAMPLED:
                self._samples.append(self._sample())

    # ── judgement ─────────────────────────────────────────────────────────────

    async def _judge_chapters(self, keeping: int) -> None:
        """Judge what is over, except the newest: more records of their jobs may follow."""
        while len(self._chapters) > keeping and not self._chapters[0].unsettled:
            chapter = self._chapters.popleft()
            jobs = await self.read(chapter.ids)
            wrong = list(of_each(jobs))
            assert not wrong, wrong[:5]
            verdict = judge_history(chain(chapter.records, reading(jobs)), drained=True)
            assert verdict.ok, str(verdict)
            self._errand.figures["jobs"] += len(jobs)
            self._errand.figures["stale"] += verdict.counts.stale
            for id in chapter.ids:
                del self._of[str(id)]

    async def read(self, ids: Sequence[UUID]) -> list[JobRecord]:
        """Look jobs up; one that is not there is lost, and the checker says so."""
        found: list[JobRecord] = []
        for first in range(0, len(ids), MAX_PAGE_SIZE):
            request = GetRequest(scope=Scope.all(), ids=tuple(ids[first : first + MAX_PAGE_SIZE]))
            found += (await self._actor.store.jobs.get(request)).values()
        return found

    async def _judge_books(self) -> None:
        """Count at the end: all that was enqueued is there, is over, and nothing else is."""
        counts = await count_all(self._actor.store)
        assert sum(one.jobs for one in counts) == self._given, (counts, self._given)
        assert all(is_finished(one.state) for one in counts), counts
        books = await read_books(self._actor.store)
        assert sum(books.homes.values()) == self._given, books.homes
        assert not any(one.waiting or one.running for one in books.tenants), books.tenants

    def _sample(self) -> _Sample:
        pid = self._worker.popen.pid
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        # Its own: what it has of a library's pages grows when another process that shares them ends.
        memory = next(int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:")) / 1_024
        return _Sample(self._settled, memory, processor_time(pid) + self._place.processor_time())

    def _judge_drift(self) -> None:
        """Compare the last fifth with the second one: the first is the worker's own youth."""
        waits, samples, settings = self._waits, self._samples, self._errand.settings
        fifth = max(1, len(waits) // 5)
        drift = statistics.median(waits[-fifth:]) / max(1, statistics.median(waits[fifth : 2 * fifth]))
        settings["wait"] = f"{statistics.median(waits) / SECOND:.3f} s, last fifth {drift:.2f} of the second"
        fifth = len(samples) // 5
        if not fifth:
            return
        second, last = samples[fifth : 2 * fifth + 1], samples[-fifth - 1 :]
        growth = _median_memory(last) / _median_memory(second)
        cost = _seconds_a_job(last) / _seconds_a_job(second)
        settings["memory"] = (
            f"{samples[0].memory:.1f} to {samples[-1].memory:.1f} MB, last fifth {growth:.3f} of the second"
        )
        settings["processor"] = (
            f"{1e6 * _seconds_a_job(samples):.0f} us a job in worker and server,"
            f" last fifth {cost:.2f} of the second"
        )
        if self._settled < SOAKED:
            return
        if growth > GROWTH:
            self._errand.fail(f"memory grew to {growth:.3f} of what it was")
        if drift > DRIFT and cost > COST:
            self._errand.fail(f"jobs waited {drift:.2f} and cost {cost:.2f} of what they did before")


def _median_memory(samples: Sequence[_Sample]) -> float:
    return statistics.median(one.memory for one in samples)


def _seconds_a_job(samples: Sequence[_Sample]) -> float:
    first, last = samples[0], samples[-1]
    return max(1e-9, last.processor - first.processor) / max(1, last.jobs - first.jobs)
