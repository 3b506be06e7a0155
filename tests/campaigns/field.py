"""A place with real workers and somebody who enqueues, everything written down outside, and the judgement."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from fairlane.lab import ledger
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND
from fairlane.model.job import NewJob
from fairlane.store.contract import Store
from fairlane.store.opening import open_store
from tests.campaigns.clock import SharedClock
from tests.campaigns.errand import Errand
from tests.campaigns.places import Place, opened
from tests.contract.world import payload
from tests.faults.campaign import Actor, recorded, verify_store
from tests.processes.conftest import PATIENCE, Process
from tests.servers.proxy import Proxy, proxied

TENANTS: Final = ("acme", "bolt", "core", "dune")
BATCH: Final = 8
SETTINGS: Final = {"lease": 2, "renew_every": 0.5, "slots": 4, "shutdown_deadline": 10}
"""Short leases, so that a campaign loses many of them; read recovery times with this in mind."""
_GLANCE: Final = 0.02
"""Seconds between two looks at what has happened."""


class Worker(Process):
    """One `fairlane worker`, and what its record says it is doing."""

    def __init__(
        self, url: str, folder: Path, settings: dict[str, float], clock: Path | None, processes: int = 0
    ) -> None:
        """Start it on a store, with the store's clock in a file if campaigns set it.

        Without processes it is one worker; with some, a supervisor, whose processes share one record.
        """
        self.processes = processes
        self.running: dict[tuple[str, int], ledger.Started] = {}
        self._clock = clock
        self._file: BinaryIO | None = None
        self._part_of_a_line = b""
        super().__init__("worker", url, folder, settings)

    def command(self, role: str, place: str) -> tuple[str, ...]:
        """Run the command that production runs."""
        application = "tests.campaigns.application:app"
        number = ("--processes", str(self.processes))
        return (sys.executable, "-m", "fairlane", "worker", application, "--log", "json", *number)

    def surroundings(self, place: str) -> dict[str, str]:
        """Tell the application where its store, its record and its clock are."""
        clock = {} if self._clock is None else {"CAMPAIGN_CLOCK": str(self._clock)}
        return {"CAMPAIGN_STORE": place, "CAMPAIGN_RECORD": str(self.record), **clock}

    def pids(self) -> set[int]:
        """Return the worker processes of a supervisor that live."""
        started = {"process_started", "successor_started"}
        pids = {one["pid"] for one in self.events() if one.get("event") in started}
        return {pid for pid in pids if is_alive(pid)}

    def look(self) -> list[ledger.Started]:
        """Read on in its record; return what has started since."""
        news = self.news()
        for one in news:
            if isinstance(one, ledger.Started):
                self.running[one.job, one.fence] = one
            elif isinstance(one, ledger.Ended):
                self.running.pop((one.job, one.fence), None)
        return [one for one in news if isinstance(one, ledger.Started)]

    def news(self) -> list[ledger.Record]:
        """Return the whole lines that it has written since the last call. Nothing is stored here."""
        if self._file is None:
            if not self.record.exists():
                return []
            self._file = self.record.open("rb")
        data = self._part_of_a_line + self._file.read()
        end = data.rfind(b"\n") + 1
        self._part_of_a_line = data[end:]
        return list(ledger.decode_lines(data[:end].splitlines(keepends=True)))

    def stop(self) -> None:
        """Make sure that it is gone."""
        self.signal(signal.SIGCONT)  # which does nothing to one that has ended
        super().stop()
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._file is not None:
            self._file.close()


def is_alive(pid: int) -> bool:
    """Whether a process runs: one that has ended, and that nobody has collected, does not."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()[0]
            != "Z"
        )
    except (FileNotFoundError, ProcessLookupError):
        return False


class Field:
    """One store, its workers, who enqueues, and all that was seen."""

    def __init__(self, errand: Errand, place: Place, folder: Path, store: Store, clock: Path | None) -> None:
        """Begin with nobody."""
        self.errand = errand
        self.place = place
        self.records: list[ledger.Record] = []
        self.actor = Actor(store, self.records.append)
        self.workers: list[Worker] = []
        self.orphaned: list[Worker] = []
        """Those whose supervisor was killed: their processes still end their jobs."""
        self.starts: dict[str, list[ledger.Started]] = {}
        self.last_start: dict[int, ledger.Moment] = {}
        self.until_judged = AsyncExitStack()
        """What must outlast the workers: ways to the store, clients of its own."""
        self._folder = folder
        self.clock = clock
        self._all: list[Worker] = []
        self._given = 0
        self._looked_at = 0.0

    async def breakable_way(self) -> tuple[Proxy, str]:
        """Open a way to the store that can be broken, and return its URL."""
        proxy = await self.until_judged.enter_async_context(proxied(self.place.port))
        return proxy, self.place.url.replace(str(self.place.port), str(proxy.port))

    # ── workers ───────────────────────────────────────────────────────────────

    def hire(self, url: str | None = None, processes: int = 0, **settings: float) -> Worker:
        """Start a worker, or a supervisor of some; it is ready some time after."""
        wanted = {**SETTINGS, **settings}
        if processes:
            wanted["processes"] = processes
        made = Worker(url or self.place.url, self._folder, wanted, self.clock, processes)
        self.workers.append(made)
        self.errand.settings |= {name: str(value) for name, value in wanted.items()}
        self.errand.settings["workers"] = str(len(self.workers))
        self._all.append(made)
        return made

    async def hire_ready(
        self, number: int, url: str | None = None, processes: int = 0, **settings: float
    ) -> None:
        """Start some workers, and return when they work."""
        for _ in range(number):
            self.hire(url, processes, **settings)
        await self.until_all_are_ready()

    async def until_all_are_ready(self) -> None:
        """Return when all workers work."""
        for worker in self.workers:
            await self.until(partial(self._is_ready, worker), "a worker does not start")

    def _is_ready(self, worker: Worker) -> bool:
        started = [one for one in worker.events() if one.get("event") == "worker_started"]
        return len(started) >= max(1, worker.processes)

    def dismiss(self, worker: Worker) -> None:
        """Expect nothing more of a worker that was killed, once its last line is read."""
        worker.popen.wait()
        self._look_at(worker)
        self.workers.remove(worker)

    def orphan(self, worker: Worker) -> None:
        """Expect only that the processes of a supervisor that was killed end their jobs."""
        worker.popen.wait()
        self.workers.remove(worker)
        self.orphaned.append(worker)

    def forget(self, worker: Worker) -> None:
        """Expect nothing more of processes that have ended."""
        self._look_at(worker)
        self.orphaned.remove(worker)

    def look(self) -> None:
        """See what has started, anywhere; nobody may have ended who was not told to."""
        self._looked_at = time.monotonic()
        for worker in self.orphaned:
            self._look_at(worker)
        for worker in self.workers:
            self._look_at(worker)
            words = "".join(worker.lines[-20:])
            assert worker.popen.poll() is None, (
                f"a worker ended by itself, {worker.popen.returncode}: {words}"
            )

    def _look_at(self, worker: Worker) -> None:
        for one in worker.look():
            self.starts.setdefault(one.job, []).append(one)
            self.last_start[worker.popen.pid] = one.at

    async def until(self, is_so: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait until something is so; TimeoutError with these words if it is not in time."""
        try:
            async with asyncio.timeout(seconds):
                while not is_so():
                    await asyncio.sleep(_GLANCE)
                    if time.monotonic() - self._looked_at >= _GLANCE:  # nobody else has, meanwhile
                        self.look()
        except TimeoutError:
            raise TimeoutError(f"{what}, after {seconds:.0f} s") from None

    async def busy_workers(self, draw: random.Random, number: int) -> list[Worker]:
        """Return some workers that are in the middle of jobs."""
        await self.until(
            lambda: sum(bool(self.jobs_of(one)) for one in self.workers) >= number, "nobody works"
        )
        return draw.sample([one for one in self.workers if self.jobs_of(one)], number)

    def jobs_of(self, worker: Worker) -> set[str]:
        """Return the jobs in whose middle a worker is, under the last fence that anybody has.

        A handler that was told to stop, because its claim was lost, leaves without a last line.
        """
        return {
            one.job
            for one in worker.running.values()
            if one.fence >= max(other.fence for other in self.starts[one.job])
        }

    async def until_it_starts(self, worker: Worker, since: ledger.Moment) -> float:
        """Wait until a worker has started a job after some moment; return the seconds until then."""
        pid = worker.popen.pid
        await self.until(lambda: self.last_start.get(pid, 0) > since, "a worker does not work again")
        return (self.last_start[pid] - since) / SECOND

    async def until_more_start(self, number: int) -> None:
        """Wait until so many more jobs have started."""
        wanted = len(self.starts) + number
        await self.until(lambda: len(self.starts) >= wanted, "nobody works")

    def started_since(self, job: str, at: ledger.Moment) -> ledger.Moment | None:
        """Say when a job started next after some moment."""
        return min((one.at for one in self.starts.get(job, ()) if one.at > at), default=None)

    # ── work ──────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def fed(
        self, seconds: Sequence[float], backlog: int = 24, tasks: Sequence[str] = ("short", "plain")
    ) -> AsyncIterator[None]:
        """Keep so many jobs waiting that take so long, as long as this lasts."""
        feeding = asyncio.create_task(self._feed(seconds, backlog, tasks))
        try:
            yield
        finally:
            is_ended = feeding.done()
            feeding.cancel()
            await asyncio.wait([feeding])
            if is_ended:
                feeding.result()

    async def _feed(self, seconds: Sequence[float], backlog: int, tasks: Sequence[str]) -> None:
        draw = random.Random(self.errand.seed + 1)
        while True:
            while self._given - len(self.starts) < backlog:
                self._given += BATCH
                jobs = (self.job(draw.choice(tasks), draw.choice(seconds)) for _ in range(BATCH))
                self.errand.figures["repeats"] += await self.actor.insist(*jobs)
            await asyncio.sleep(0.01)

    def job(self, task: str, seconds: float | None, **options: Any) -> NewJob:
        """Make a job that takes so long, or one whose handler takes no argument."""
        body = payload() if seconds is None else payload(seconds=seconds)
        values = {"payload": body, "checksum": zlib.crc32(body), "max_attempts": 100, **options}
        return self.actor.new(self.errand.draw.choice(TENANTS), task=task, **values)

    async def until_idle(self) -> None:
        """Wait until nothing is left to do."""

        async def is_left() -> bool:
            with suppress(StoreError):
                return any(one.waiting or one.running for one in (await self.actor.census()).tenants)
            return True

        try:
            async with asyncio.timeout(PATIENCE):
                while await is_left():
                    await asyncio.sleep(0.1)
                    self.look()
        except TimeoutError:
            raise TimeoutError(f"not drained after {PATIENCE:.0f} s: {await self.actor.states()}") from None

    async def drain(self) -> None:
        """Wait until nothing is left to do, then let the workers go."""
        await self.until_idle()
        await self.until_all_are_ready()  # before that a signal would end them like any other program
        for worker in self.workers:
            worker.signal(signal.SIGTERM)
        codes = [await asyncio.to_thread(worker.end) for worker in self.workers]
        assert not any(codes), f"workers ended with {codes}"

    async def judge(self) -> None:
        """Hold the store to what was written down outside of it."""
        records = [*self.records, *recorded(one.record for one in self._all if one.record.exists())]
        jobs = await verify_store(self.actor.store, records, drained=True)
        known = {str(job.id) for job in jobs}
        figures = self.errand.figures
        figures["jobs"] += len(jobs)
        kinds = {"starts": ledger.Started, "stale": ledger.Stale, "reclaimed": ledger.Reclaimed}
        for name, kind in kinds.items():
            figures[name] += sum(isinstance(one, kind) for one in records)
        acknowledged = {one.job for one in records if isinstance(one, ledger.Acknowledged)}
        figures["acknowledged_lost"] += len(acknowledged - known)

    def close(self) -> None:
        """Leave nothing running."""
        for worker in self._all:
            worker.stop()


@asynccontextmanager
async def staged(errand: Errand, *, is_clock_shared: bool = False) -> AsyncIterator[Field]:
    """Return a field on a new store; drained and judged at the end, unless something was wrong before."""
    with tempfile.TemporaryDirectory(prefix="fairlane-campaign-") as name, opened_in(errand, name) as place:
        clock = Path(name) / "clock" if is_clock_shared else None
        store = open_store(place.url, clock=None if clock is None else SharedClock(clock))
        field = Field(errand, place, Path(name), store, clock)
        try:
            async with field.until_judged:
                await store.upkeep.migrate()
                yield field
                await field.drain()
                await field.judge()
        finally:
            field.close()
            await store.upkeep.aclose()


@contextmanager
def opened_in(errand: Errand, folder: str) -> Iterator[Place]:
    """Open the errand's place, and write down what it is."""
    Path(folder).chmod(0o755)  # a server may run as somebody else
    with opened(errand.store, Path(folder)) as place:
        errand.settings |= place.settings
        errand.versions["store"] = place.version
        yield place
