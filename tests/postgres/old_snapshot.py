"""Work beside a snapshot that somebody forgot, and say what each job costs at the start and at the end.

``python -m tests.postgres.old_snapshot --minutes 10 [--way WAY …]``. The snapshot keeps every dead row and
every dead index entry, so whatever walks over them costs more with each job. Pages read and processor time
used by the server for a job tell it whatever else the machine does; jobs a second are printed beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from fairlane.model.instants import SECOND
from fairlane.model.layers import GateRules, Kind, QueueRules, Rules, Subject, TaskRules, TenantRules
from fairlane.model.limits import Limits, Rate
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import SUCCEEDED, World, failed
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import HASTY, MEMORY, PostgresServer

BATCHES: Final = 20
BATCH: Final = 20
TENANTS: Final = 20
TICK: Final = 1 / BATCHES
"""Seconds from claim to claim, by the store's clock: a round is a second."""
GOAL: Final = 0.8
"""What must be left of the speed of the start."""

_NEVER_BINDS: Final = Rate(1_000_000, "second", burst=100_000)
_PAGES: Final = """
SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))::bigint
FROM pg_statio_user_tables WHERE schemaname = 'churn'
"""


class Way(NamedTuple):
    """How jobs go through: under which rules, with what, and how many of them need a second try."""

    rules: Mapping[Subject, Rules] = {}
    values: Mapping[str, Any] = {}
    retries: int = 0


_QUEUE: Final = Subject(Kind.QUEUE, "default")
_WHALE: Final = Subject(Kind.TENANT, "whale")
WAYS: Final[Mapping[str, Way]] = {
    "many at once": Way(),
    "one after the other": Way({_WHALE: TenantRules(limits={"*": Limits(rate=_NEVER_BINDS)})}),
    "retries": Way(retries=BATCH // 2),
    "expiry": Way(values={"expires_in": 2 * SECOND}),
    "running limit": Way({_WHALE: TenantRules(limits={"*": Limits(running=3)})}),
    "tenant's rate": Way({_WHALE: TenantRules(limits={"*": Limits(rate=Rate(5, "second", burst=5))})}),
    "queue's rate": Way({_QUEUE: QueueRules(rate=_NEVER_BINDS)}),
    "task's rate": Way({Subject(Kind.TASK, "noop"): TaskRules(rate=Rate(15, "second", burst=15))}),
    "gate": Way({
        Subject(Kind.TASK, "noop"): TaskRules(gate="door"),
        Subject(Kind.GATE, "door"): GateRules(limit=8),
    }),
    "seconds": Way({_QUEUE: QueueRules(cost="seconds")}),
}  # fmt: skip

FLAT: Final = ("many at once", "one after the other", "retries", "expiry", "tenant's rate", "queue's rate")
"""Those that must not get slower. The others walk over what they leave behind; docs/explanation/postgresql.md
says how much that is."""


class Round(NamedTuple):
    """What one round of jobs has cost."""

    pages: float
    """Read for each job."""
    cost: float
    """Milliseconds of the server's processor for each job."""
    rate: float
    """Jobs a second."""


class Churn:
    """Jobs that come in and go out, half of them of one tenant, one way."""

    def __init__(self, store: PostgresStore, clock: DrivenClock, way: Way) -> None:
        """Work on a store that runs by this clock."""
        self._store = store
        self._world = World(store, clock)
        self._way = way

    async def round(self) -> Round:
        """Put jobs in and take them out, then let the duties pass once, as they do each second."""
        world, way = self._world, self._way
        await world.put(way.rules)
        backend = await self._store._server.value("SELECT pg_backend_pid()")
        before, used, began = await self._pages(), _used(backend), time.perf_counter()
        for _ in range(BATCHES):
            tenants = ("whale" if number % 2 else f"t{number % TENANTS}" for number in range(BATCH))
            await world.send(*(world.new(tenant, **way.values) for tenant in tenants))
            await self._work(way.retries)
        await world.reclaim()
        await world.expire()
        await world.promote()
        jobs = BATCHES * BATCH
        pages, cost = await self._pages() - before, 1_000 * (_used(backend) - used)
        return Round(pages / jobs, cost / jobs, jobs / (time.perf_counter() - began))

    async def _work(self, retries: int) -> None:
        """Let everything succeed that came in, some of it at the second try."""
        world, left = self._world, BATCH
        while left > 0:
            world.advance(TICK)
            claims = await world.claim(BATCH)
            if not claims:
                world.advance(1)
                continue
            endings = [failed(after=SECOND) if n < retries else SUCCEEDED for n in range(len(claims))]
            await world.settle_reply(*map(world.verdict, claims, endings))
            left -= len(claims) - min(retries, len(claims))
            retries = max(0, retries - len(claims))

    async def _pages(self) -> int:
        await self._store._server.fetch("SELECT pg_stat_force_next_flush()")
        return int(await self._store._server.value(_PAGES))


def _used(process: int) -> float:
    """Say how many seconds of processor time a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def churning(server: PostgresServer, way: str) -> AsyncIterator[Churn]:
    """Give jobs on an empty schema that have gone one way for a while, and hold a snapshot of that moment.

    The store has one connection, whose counts are then whole.
    """
    clock = DrivenClock()
    store = PostgresStore(f"{server.url}&schema=churn&pool=1", clock.now)
    async with store._server.apart() as old:
        await old.execute("DROP SCHEMA IF EXISTS churn CASCADE")
        await store.upkeep.migrate()
        churn = Churn(store, clock, WAYS[way])
        for _ in range(2):
            await churn.round()
        await old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await old.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await old.fetch("SELECT count(*) FROM churn.job")
        yield churn
        await old.execute("ROLLBACK")
    await store.upkeep.aclose()


async def _measure(server: PostgresServer, way: str, seconds: float) -> bool:
    async with churning(server, way) as churn:
        until = time.monotonic() + seconds
        rounds = [await churn.round() for _ in range(10)]
        while time.monotonic() < until:
            rounds.append(await churn.round())
    tenth = max(5, len(rounds) // 10)
    first, last = (
        Round(*(sum(figures) / tenth for figures in zip(*some, strict=True)))
        for some in (rounds[:tenth], rounds[-tenth:])
    )
    print(
        f"{way:>20}: {len(rounds) * BATCHES * BATCH:>9,} jobs; first and last tenth: "
        f"{first.pages:6.1f} and {last.pages:6.1f} pages and "
        f"{first.cost:.3f} and {last.cost:.3f} ms of the server's processor a job "
        f"({first.cost / last.cost:.0%} of the speed), {first.rate:.0f} and {last.rate:.0f} jobs/s",
        flush=True,
    )
    return last.rate >= GOAL * first.rate and first.cost >= GOAL * last.cost


def main() -> None:
    """Print each way's figures; fail where less than the goal is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="in all, shared by the ways")
    parser.add_argument("--way", action="append", choices=WAYS, help="this one; may be repeated")
    options = parser.parse_args()
    ways = options.way or FLAT
    server = PostgresServer(*HASTY, folder=MEMORY)
    server.start()
    try:
        seconds = options.minutes * 60 / len(ways)
        kept = [asyncio.run(_measure(server, way, seconds)) for way in ways]
    finally:
        server.close()
    if not all(kept):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
