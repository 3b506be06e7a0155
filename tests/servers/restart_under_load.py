"""Restart PostgreSQL while real workers work on it, and say what became of every job.

``python -m tests.servers.restart_under_load [JOBS]``. Judged from outside: what was acknowledged, what
handlers began, what was settled is recorded outside the store, and compared with it at the end.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from fairlane.lab import ledger
from fairlane.model.errors import EnqueueUnknown, StoreUnavailable
from fairlane.model.job import NewJob
from fairlane.store.opening import open_store
from tests.contract.world import payload
from tests.faults.campaign import Actor, moment, recorded, verify_store
from tests.processes.conftest import PATIENCE, Process
from tests.servers.postgres import FAST, PostgresServer, wanted_version

WORKERS: Final = 2
BATCH: Final = 20
TENANTS: Final = ("acme", "bolt", "core")
SETTINGS: Final = {"lease": 2, "renew_every": 0.3, "slots": 16}


class Account(NamedTuple):
    """What became of the jobs, and what the workers logged."""

    acknowledged: int
    repeated: int
    found: int
    attempts: int
    lost: int
    settled_twice: int
    reclaimed: int
    outages_logged: tuple[int, ...]


class Site:
    """A durable server, workers on it, and one who keeps enqueueing."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        """Start the server, empty."""
        self._folder = folder
        self._began = time.monotonic()
        self._say = say
        self.server = PostgresServer()
        self.server.start()
        self.records: list[ledger.Record] = []
        self.repeated = 0

    def say(self, text: str) -> None:
        """Tell what happens, and when."""
        self._say(f"{time.monotonic() - self._began:7.2f}s  {text}")

    async def give(self, actor: Actor, jobs: tuple[NewJob, ...]) -> None:
        """Enqueue a batch until the store says that it has it: the application must not lose it."""
        work: list[dict[str, Any]] = [
            {"job": str(job.id), "tenant": job.tenant, "queue": job.queue, "task": job.task} for job in jobs
        ]
        self.records += (ledger.Attempted(**one, at=moment(), batch=str(jobs[0].id)) for one in work)
        is_repeated = False
        while True:
            try:
                reply = await actor.send(*jobs, is_repeated=is_repeated)
            except EnqueueUnknown:
                is_repeated = True
                self.repeated += 1
            except StoreUnavailable:
                await asyncio.sleep(0.05)
            else:
                break
        assert not reply.refused
        self.records += (ledger.Acknowledged(**one, at=moment(), batch=str(jobs[0].id)) for one in work)

    async def feed(self, actor: Actor, total: int) -> None:
        """Enqueue all jobs, a batch at a time."""
        for number in range(0, total, BATCH):
            await self.give(actor, tuple(_job(actor, n) for n in range(number, min(total, number + BATCH))))

    async def harm(self, processes: list[Process], total: int) -> None:
        """Restart the server in good order at a third of the work, kill it at two thirds."""
        await self.until_started(processes, total // 3)
        self.say("fast shutdown: connections are cut, the server goes down")
        await asyncio.to_thread(self.server.stop, FAST)
        await asyncio.sleep(1)
        await asyncio.to_thread(self.server.start)
        self.say("the server is back")
        await self.until_started(processes, 2 * total // 3)
        self.say("SIGKILL of the postmaster")
        killed_at = moment()
        await asyncio.to_thread(self.server.kill)
        await asyncio.sleep(1)
        await asyncio.to_thread(self.server.start)
        # Nothing acknowledged may be gone; claims are not waited for, and one may be lost with its number.
        self.records.append(ledger.Outage(at=killed_at, until=moment(), loses=0))
        self.say("the server is back, recovered from its log")

    async def until_started(self, processes: list[Process], ended: int) -> None:
        """Wait until so many attempts have begun."""
        async with asyncio.timeout(PATIENCE):
            while sum(len(process.starts()) for process in processes) < ended:  # noqa: ASYNC110 (other processes)
                await asyncio.sleep(0.05)


def _job(actor: Actor, number: int) -> NewJob:
    body = payload(seconds=number % 5 / 200)
    values = {"payload": body, "checksum": zlib.crc32(body), "max_attempts": 100}
    return actor.new(TENANTS[number % len(TENANTS)], task="short", **values)


async def restart_under_load(
    total: int, say: Callable[[str], None] = print, kind: type[Site] = Site
) -> Account:
    """Let workers work through all that, and return the account."""
    with tempfile.TemporaryDirectory() as name:
        site = kind(Path(name), say)
        url = site.server.tcp_url
        store = open_store(url)
        try:
            await store.upkeep.migrate()
            site.say(f"PostgreSQL {wanted_version()}, fsync on; {WORKERS} workers, {total} jobs")
            return await _play(site, Actor(store), url, total)
        finally:
            await store.upkeep.aclose()
            site.server.close()


async def _play(site: Site, actor: Actor, url: str, total: int) -> Account:
    processes = [Process("worker", url, site._folder, SETTINGS) for _ in range(WORKERS)]
    try:
        for process in processes:
            await asyncio.to_thread(process.until, "worker_started")
        async with asyncio.TaskGroup() as group:
            group.create_task(site.feed(actor, total))
            group.create_task(site.harm(processes, total))
        while any(one.waiting or one.running for one in (await actor.census()).tenants):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        site.say("nothing waits or runs any more")
        for process in processes:
            process.signal(signal.SIGTERM)
        codes = [await asyncio.to_thread(process.end) for process in processes]
        assert codes == [0] * WORKERS
    finally:
        for process in processes:
            process.stop()
    return await _account(site, actor, processes)


async def _account(site: Site, actor: Actor, processes: list[Process]) -> Account:
    records = [*site.records, *recorded(process.record for process in processes)]
    jobs = await verify_store(actor.store, records, drained=True)
    acknowledged = {one.job for one in records if isinstance(one, ledger.Acknowledged)}
    ends = (one for one in records if isinstance(one, ledger.Settled) and not one.unstarted)
    settled = Counter((one.job, one.attempt) for one in ends)
    return Account(
        acknowledged=len(acknowledged),
        repeated=site.repeated,
        found=len(jobs),
        attempts=sum(job.attempt for job in jobs),
        lost=len(acknowledged - {str(job.id) for job in jobs}),
        settled_twice=sum(times > 1 for times in settled.values()),
        reclaimed=sum(_count_logged(process, "job_lost") for process in processes),
        outages_logged=tuple(_count_logged(process, "store_away") for process in processes),
    )


def _count_logged(process: Process, event: str) -> int:
    return sum(one.get("event") == event for one in process.events())


def main(jobs: str = "20000") -> None:
    """Print what happened and the account."""
    account = asyncio.run(restart_under_load(int(jobs)))
    for name, value in account._asdict().items():
        print(f"{name:>14}: {value}")
    assert account.lost == account.settled_twice == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
