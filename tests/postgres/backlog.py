"""Say what a claim costs the server while 10,000, a million and ten million jobs wait, in turns on one.

``python -m tests.postgres.backlog`` measures, prints the table and writes docs/proofs/postgres-backlog;
``--render`` writes the page of what was measured before. Jobs are put in by the server itself, which makes
the indexes afterwards, with the deltas that enqueues would have left; the store applies and counts them. Ten
million take some six gigabytes and ten minutes. What a claim costs is the processor time of its session,
which says the same whatever else the machine does; how long it took is printed beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import Final

import asyncpg

from fairlane.model.lifecycle.states import State
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.postgres.backlog_page import PAGE, Backlog, Backlogs, Quantiles
from tests.servers.postgres import PostgresServer, wanted_version

BATCH: Final = 10
TENANTS: Final = 1_000
CHUNK: Final = 500_000
_WARM: Final = 30
_LONG: Final = 3_600
"""Seconds that a statement may take."""

_SETTINGS: Final = ("shared_buffers=1GB", "max_wal_size=8GB", "maintenance_work_mem=512MB")
# Ids rise with time, as those of clients do.
_FILL: Final = """
INSERT INTO {schema}.job (id, tenant, queue, task, state, payload, checksum, version, priority, enqueued_at,
                     run_at, sort_key, dedup_until, max_attempts, at_most_once, metadata)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 't' || n % $3::bigint, 'default',
       'k' || n % 3, 'ready', convert_to(repeat('x', 100), 'UTF8'), 0, 1, 0, $4::bigint + n, $4 + n, $4 + n,
       'settled', 5, false, '{}'
FROM generate_series($1::bigint, $2::bigint) AS n
"""
_DELTAS: Final = """
INSERT INTO {schema}.delta (ord, queue, tenant, task, ready, head_key, head_id)
SELECT row_number() OVER (), queue, tenant, task, count(*), min(sort_key),
       (array_agg(id ORDER BY sort_key))[1]
FROM {schema}.job GROUP BY queue, tenant, task
"""
_FOLD: Final = "SELECT {schema}.apply_all_deltas({schema}.now_or(NULL), 'default')"
_INDEXES: Final = (
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = '{schema}' AND tablename = 'job'"
)
_SIZE: Final = "SELECT pg_total_relation_size('{schema}.job'::regclass)"


class Site:
    """One backlog in a schema of its own, and the session that claims from it."""

    def __init__(self, store: PostgresStore, jobs: int) -> None:
        """Measure nothing yet."""
        self.jobs = jobs
        self.fill_seconds = 0.0
        self.bytes = 0
        self.costs: list[float] = []
        self.waits: list[float] = []
        self._store = store
        self._world = World(store, DrivenClock())  # names nothing here: the store has the server's clock
        self._taken = 0

    async def fill(self) -> None:
        """Let the jobs wait."""
        await self._store.upkeep.migrate()
        began = time.monotonic()
        since = time.time_ns() // 1_000 - self.jobs
        async with self._store._server.apart() as connection:
            await connection.execute("SET statement_timeout = 0")
            indexes = await connection.fetch(self._sql(_INDEXES))
            for name, _ in indexes:
                await self._run(connection, f"DROP INDEX {{schema}}.{name}")
            for first in range(1, self.jobs + 1, CHUNK):
                last = min(first + CHUNK - 1, self.jobs)
                await self._run(connection, _FILL, first, last, TENANTS, since)
            for _, definition in indexes:
                await self._run(connection, definition)
            await self._run(connection, _DELTAS)
            async with connection.transaction():
                await connection.execute(self._sql("SELECT {schema}.lock_queue('default')"))
                await self._run(connection, _FOLD)
            await self._run(connection, "VACUUM (ANALYZE) {schema}.job")
            self.bytes = await connection.fetchval(self._sql(_SIZE))
        self.fill_seconds = time.monotonic() - began

    async def claim(self, *, is_counted: bool) -> None:
        """Claim a batch and settle it; note what the claim cost the server."""
        session = await self._store._server.value("SELECT pg_backend_pid()")  # the pool may have replaced it
        used, began = _processor(session), time.perf_counter()
        claims = await self._world.claim(BATCH)
        waited, cost = time.perf_counter() - began, _processor(session) - used
        assert len(claims) == BATCH
        if is_counted:
            self.costs.append(cost)
            self.waits.append(waited * 1_000)
        await self._world.settle_reply(*map(self._world.verdict, claims))
        self._taken += len(claims)

    async def close(self) -> Backlog:
        """Return what was measured; the counts must be those of the jobs that are left."""
        states = await self._world.states()
        left, done = states[State.READY], states[State.SUCCEEDED]
        assert (left, done) == (self.jobs - self._taken, self._taken), states
        await self._store.upkeep.aclose()
        return Backlog(
            self.jobs, self.fill_seconds, self.bytes, Quantiles.of(self.costs), Quantiles.of(self.waits)
        )

    async def _run(self, connection: asyncpg.Connection, statement: str, *values: int) -> None:
        await connection.execute(self._sql(statement), *values, timeout=_LONG)

    def _sql(self, text: str) -> str:
        return text.replace("{schema}", self._store._server.schema)


def _processor(process: int) -> float:
    """Say how many milliseconds of a processor a process has used."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1_000_000


async def measure(server: PostgresServer, sizes: list[int], claims: int) -> list[Backlog]:
    """Fill one backlog after the other, then claim from one after the other."""
    sites = [Site(PostgresStore(f"{server.url}&schema=backlog_{jobs}&pool=1"), jobs) for jobs in sizes]
    for site in sites:
        await site.fill()
        print(f"{site.jobs:,} jobs in {site.fill_seconds:.0f} s, {site.bytes / 2**30:.1f} GB", flush=True)
    for number in range(_WARM + claims):
        for site in sites:
            await site.claim(is_counted=number >= _WARM)
    return [await site.close() for site in sites]


def main() -> None:
    """Measure and write the page, or write it from the stored figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--jobs", default="10000,1000000,10000000", help="how many wait, the first to compare with"
    )
    parser.add_argument("--claims", type=int, default=1_000, help="measured claims from each backlog")
    parser.add_argument("--folder", help="where the server's data are put; they are removed at the end")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if options.render:
        PAGE.write()
        return
    server = PostgresServer(*_SETTINGS, folder=options.folder)
    try:
        server.start()
        found = asyncio.run(measure(server, [int(jobs) for jobs in options.jobs.split(",")], options.claims))
    finally:
        server.close()
    PAGE.keep(Backlogs(wanted_version(), BATCH, TENANTS, options.claims, found))
    print(PAGE.render())


if __name__ == "__main__":
    main()
