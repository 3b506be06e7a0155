"""What every campaign needs: how much to do, a seed, an outside record, and the judgement at the end."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import apsw

from fairlane.lab import ledger
from fairlane.lab.history import check as judge_history
from fairlane.model.errors import EnqueueUnknown, StoreBusy, StoreUnavailable
from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND, Instant
from fairlane.model.job import Claim, JobRecord, NewJob
from fairlane.model.lifecycle.states import Home, home
from fairlane.model.retry.decision import AttemptResult
from fairlane.store.contract import Store
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import SUCCEEDED, World
from tests.invariants import check
from tests.oracle.clock import DrivenClock


def times(normal: int) -> int:
    """How often to do something that the normal run does so often."""
    return round(normal * float(os.environ.get("FAIRLANE_FAULTS", "1")))


def seeded() -> random.Random:
    """Return random draws that can be repeated; the seed is shown by a test that fails."""
    seed = int(os.environ.get("FAIRLANE_SEED") or random.SystemRandom().getrandbits(32))
    print(f"FAIRLANE_SEED={seed}")
    return random.Random(seed)


class RealClock(DrivenClock):
    """The machine's clock, moved on by what a test wants to have passed."""

    def __init__(self, ahead: float = 0) -> None:
        """Be so many seconds ahead."""
        super().__init__(0)
        self.advance(ahead)

    def now(self) -> Instant:
        """Say what time it is, and how much further we are."""
        return time.time_ns() // 1_000 + super().now()


def moment() -> ledger.Moment:
    """Return the recording clock, which all processes of a machine share."""
    return time.monotonic_ns() // 1_000


class Ledger:
    """One process's outside record: every line is in the file before anything else happens."""

    def __init__(self, path: Path, *, is_shared: bool = False) -> None:
        """Never continue another process's file, unless it is shared by the processes of one command."""
        self.path = path
        exclusive = 0 if is_shared else os.O_EXCL
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | exclusive | os.O_APPEND, 0o666)

    def write(self, record: ledger.Record) -> None:
        """Append one line by one write."""
        os.write(self._fd, ledger.encode_line(record))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def recorded(paths: Iterable[Path]) -> list[ledger.Record]:
    """Read the records of many processes."""
    files = (path.read_bytes().splitlines(keepends=True) for path in paths)
    return list(chain.from_iterable(ledger.decode_lines(lines) for lines in files))


class Actor(World):
    """The verbs of the suite's world, written down outside before and after they happen."""

    def __init__(
        self,
        store: Store,
        write: Callable[[ledger.Record], None] = lambda _: None,
        clock: DrivenClock | None = None,
        name: str = "",
    ) -> None:
        """Have ids and a name of its own; without `write`, leave no record."""
        super().__init__(store, clock or RealClock())
        self._ids = IdMaker(random.SystemRandom().getrandbits)
        self.name = name or f"w{os.getpid()}"
        self.write = write
        self.unknown: set[str] = set()
        self.file = ""

    async def give(self, *jobs: NewJob) -> None:
        """Enqueue one batch."""
        batch = str(jobs[0].id)
        for job in jobs:
            self.write(ledger.Attempted(**_work(job), at=moment(), batch=batch))
        try:
            reply = await self.send(*jobs)
        except EnqueueUnknown:
            self.unknown.update(str(job.id) for job in jobs)
            raise
        assert not reply.refused, reply.refused
        at = moment()
        for job in jobs:
            self.write(ledger.Acknowledged(**_work(job), at=at, batch=batch))

    async def insist(self, *jobs: NewJob) -> int:
        """Enqueue one batch until the store says that it has it; say how often nobody knew whether it had."""
        batch, repeats = str(jobs[0].id), 0
        for job in jobs:
            self.write(ledger.Attempted(**_work(job), at=moment(), batch=batch))
        while True:
            try:
                reply = await self.send(*jobs, is_repeated=repeats > 0)
            except EnqueueUnknown:
                repeats += 1
            except (StoreUnavailable, StoreBusy):
                await asyncio.sleep(0.05)
            else:
                break
        assert not reply.refused, reply.refused
        at = moment()
        for job in jobs:
            self.write(ledger.Acknowledged(**_work(job), at=at, batch=batch))
        return repeats

    async def start(self, total: int = 1, lease: int = 60 * SECOND) -> list[Claim]:
        """Claim, and begin what was claimed."""
        claims = await self.claim(total, worker=self.name, lease=lease)
        for claim in claims:
            job = claim.job
            self.write(
                ledger.Started(
                    job=str(job.id),
                    attempt=job.attempt,
                    fence=claim.fence,
                    worker=self.name,
                    pid=os.getpid(),
                    at=moment(),
                    tenant=job.tenant,
                )
            )
        return claims

    async def end(self, claims: Iterable[Claim], ending: AttemptResult = SUCCEEDED) -> None:
        """Settle in one request."""
        verdicts = {str(claim.job.id): (claim, self.verdict(claim, ending)) for claim in claims}
        at = moment()
        reply = await self.settle_reply(*(verdict for _, verdict in verdicts.values()), worker=self.name)
        for done in reply.settled:
            claim, verdict = verdicts[str(done.id)]
            self.write(
                ledger.Settled(
                    job=str(done.id),
                    attempt=claim.job.attempt,
                    fence=claim.fence,
                    event=verdict.event,
                    state=done.state,
                    at=at,
                    unstarted=verdict.is_unstarted,
                )
            )
        for id in reply.stale:
            self.write(ledger.Stale(job=str(id), fence=verdicts[str(id)][0].fence, at=moment()))

    async def take_back(self) -> int:
        """Reclaim once."""
        at = moment()
        reply = await self.reclaim()
        for lost in reply.lost:
            self.write(ledger.Reclaimed(job=str(lost.id), fence=lost.fence, state=lost.state, at=at))
        return len(reply.lost)

    async def drain(self) -> None:
        """Run everything that is left, however long it would have to wait."""
        while True:
            self.advance(3_600)
            await self.take_back()
            await self.promote()
            claims = await self.start(50)
            if not claims and not any(one.waiting or one.running for one in (await self.census()).tenants):
                return
            await self.end(claims)


def _work(job: NewJob) -> dict[str, Any]:
    return {"job": str(job.id), "tenant": job.tenant, "queue": job.queue, "task": job.task}


async def verify(path: Path, records: Iterable[ledger.Record], *, drained: bool = False) -> list[JobRecord]:
    """Open the file afresh: it is whole, its books balance, and it keeps what the record says it promised."""
    db = apsw.Connection(str(path))
    assert db.pragma("integrity_check") == "ok"
    db.close()
    store = SqliteStore(f"sqlite:///{path}")
    try:
        return await verify_store(store, records, drained=drained)
    finally:
        await store.upkeep.aclose()


async def verify_store(
    store: Store, records: Iterable[ledger.Record], *, drained: bool = False
) -> list[JobRecord]:
    """Look into a store: its books balance, and it keeps what the record says it promised."""
    await check(store)
    jobs = await World(store, RealClock()).find_all(page=500)
    verdict = judge_history(chain(records, reading(jobs)), drained=drained)
    assert verdict.ok, str(verdict)
    return jobs


def reading(jobs: Iterable[JobRecord]) -> list[ledger.Record]:
    """Write down the final reading."""
    found: list[ledger.Record] = []
    homes: Counter[Home] = Counter()
    for job in jobs:
        place = home(job.state)
        homes[place] += 1
        counted = {"attempt": job.attempt, "failures": job.failures}
        found.append(ledger.Found(job=str(job.id), home=place, state=job.state, tenant=job.tenant, **counted))
    return [*found, ledger.Reading(hot=homes[Home.HOT], history=homes[Home.HISTORY], dead=homes[Home.DEAD])]
