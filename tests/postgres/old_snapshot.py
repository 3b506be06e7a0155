"""Work beside a snapshot that somebody forgot, and say what each job costs at the start and at the end.

``python -m tests.postgres.old_snapshot --minutes 10 --more 1``. The snapshot keeps every dead row and
every dead index entry, so whatever walks over them costs more with each job. Pages read and processor time
used by the server for a job tell it whatever else the machine does; jobs a second are printed beside them.
A machine may be slower after ten minutes by itself: each round times a piece of work that is always the same.
``make proofs STORE=postgres ONLY=snapshot`` keeps what it printed as a page.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from fairlane.lab.bench.environment import host
from fairlane.model.instants import SECOND
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    GateRules,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
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
FROM pg_statio_user_tables WHERE schemaname = $1
"""

_SAME: Final = "SELECT count(*) FROM generate_series(1, 20000) AS n WHERE n % 7 = 3"
"""What takes as long beside any snapshot."""


class Way(NamedTuple):
    """How jobs go through: under which rules, with what, and how many of them need a second try."""

    rules: Mapping[Subject, Rules] = {}
    values: Mapping[str, Any] = {}
    retries: int = 0


_QUEUE: Final = Subject(SubjectKind.QUEUE, "default")
_WHALE: Final = Subject(SubjectKind.TENANT, "whale")
WAYS: Final[Mapping[str, Way]] = {
    "many at once": Way(),
    "one after the other": Way({_WHALE: TenantRules(limits={"*": Limits(rate=_NEVER_BINDS)})}),
    "retries": Way(retries=BATCH // 2),
    "expiry": Way(values={"expires_in": 2 * SECOND}),
    "running limit": Way({_WHALE: TenantRules(limits={"*": Limits(running=3)})}),
    "tenant's rate": Way({_WHALE: TenantRules(limits={"*": Limits(rate=Rate(5, "second", burst=5))})}),
    "queue's rate": Way({_QUEUE: QueueRules(rate=_NEVER_BINDS)}),
    "task's rate": Way({Subject(SubjectKind.TASK, "noop"): TaskRules(rate=Rate(15, "second", burst=15))}),
    "gate": Way({
        Subject(SubjectKind.TASK, "noop"): TaskRules(gate="door"),
        Subject(SubjectKind.GATE, "door"): GateRules(limit=8),
    }),
    "seconds": Way({_QUEUE: QueueRules(cost="seconds")}),
}  # fmt: skip

FLAT: Final = ("many at once", "one after the other", "retries", "expiry", "tenant's rate", "queue's rate")
"""Those that must not get slower. The others walk over what they leave behind; docs/explanation/postgresql.md
says how much that is."""


class Pace(msgspec.Struct, frozen=True):
    """What one round of jobs has cost."""

    pages: float
    """Read for each job."""
    cost: float
    """Milliseconds of the server's processor for each job."""
    rate: float
    """Jobs a second."""
    same: float = 1.0
    """Milliseconds for a piece of work that is always the same: how fast the machine was."""


class Course(msgspec.Struct, frozen=True):
    """How one way went: what the first and the last tenth of its rounds have cost, on average."""

    way: str
    jobs: int
    seconds: float
    first: Pace
    last: Pace

    @property
    def by_processor(self) -> float:
        """What is left of the speed of the start, had the machine been as fast at the end."""
        return (self.first.cost / self.first.same) / (self.last.cost / self.last.same)

    @property
    def by_clock(self) -> float:
        """The same of the jobs a second."""
        return (self.last.rate * self.last.same) / (self.first.rate * self.first.same)

    @property
    def is_flat(self) -> bool:
        """Whether enough is left of the speed of the start."""
        return min(self.by_processor, self.by_clock) >= GOAL

    def __str__(self) -> str:
        """Say it in a line."""
        first, last = self.first, self.last
        return (
            f"{self.way:>20}: {self.jobs:>9,} jobs; first and last tenth: "
            f"{first.pages:6.1f} and {last.pages:6.1f} pages and "
            f"{first.cost:.3f} and {last.cost:.3f} ms of the server's processor a job "
            f"({self.by_processor:.0%} of the speed), {first.rate:.0f} and {last.rate:.0f} jobs/s "
            f"({self.by_clock:.0%}), {first.same:.2f} and {last.same:.2f} ms for what is always the same"
        )


class Courses(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    host: Mapping[str, str | int | float]
    courses: tuple[Course, ...]
    duties: str = f"after every {BATCHES * BATCH} jobs"
    """How often the duties passed. The default is that of figures measured before this field existed."""


class Churn:
    """Jobs that come in and go out, half of them of one tenant, one way."""

    def __init__(self, store: PostgresStore, clock: DrivenClock, way: Way, duties_every: float) -> None:
        """Work on a store that runs by this clock; let the duties pass after so many seconds of ours."""
        self._store = store
        self._world = World(store, clock)
        self._way = way
        self._duties_every = duties_every
        self._passed_at = 0.0

    async def round(self) -> Pace:
        """Put jobs in and take them out, then let the duties pass if it is time."""
        world, way = self._world, self._way
        await world.put(way.rules)
        backend = await self._store._server.value("SELECT pg_backend_pid()")
        before, used, began = await self._pages(), _used(backend), time.perf_counter()
        for _ in range(BATCHES):
            tenants = ("whale" if number % 2 else f"t{number % TENANTS}" for number in range(BATCH))
            await world.send(*(world.new(tenant, **way.values) for tenant in tenants))
            await self._work(way.retries)
        if time.monotonic() >= self._passed_at + self._duties_every:
            self._passed_at = time.monotonic()
            await world.reclaim()
            await world.expire()
            await world.promote()
        jobs = BATCHES * BATCH
        pages, cost = await self._pages() - before, 1_000 * (_used(backend) - used)
        rate = jobs / (time.perf_counter() - began)
        return Pace(pages / jobs, cost / jobs, rate, min([await self._same() for _ in range(3)]))

    async def forget(self) -> int:
        """Let who is idle be forgotten, by the second minute's sweep; say how many pages both have read."""
        before, known = await self._pages(), await self._turns()
        for _ in range(2):
            self._world.advance(61)
            await self._world.promote()
        assert await self._turns() < known
        return await self._pages() - before

    async def _turns(self) -> int:
        schema = self._store._server.schema
        return int(await self._store._server.value(f"SELECT count(*) FROM {schema}.tenant_queue"))  # noqa: S608 (its own schema)

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

    async def _same(self) -> float:
        began = time.perf_counter()
        await self._store._server.value(_SAME)
        return 1_000 * (time.perf_counter() - began)

    async def _pages(self) -> int:
        await self._store._server.fetch("SELECT pg_stat_force_next_flush()")
        return int(await self._store._server.value(_PAGES, self._store._server.schema))


def _used(process: int) -> float:
    """Say how many seconds of processor time a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def churning(url: str, way: str, duties_every: float = 0) -> AsyncIterator[Churn]:
    """Return jobs that have gone one way for a while, and hold a snapshot of that moment.

    What was in the schema that the URL names is gone. The store has one connection, whose counts are whole.
    """
    clock = DrivenClock()
    store = PostgresStore(f"{url}&pool=1", clock.now)
    schema = store._server.schema
    async with store._server.apart() as old:
        await old.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await store.upkeep.migrate()
        churn = Churn(store, clock, WAYS[way], duties_every)
        for _ in range(2):
            await churn.round()
        await old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await old.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await old.fetch("SELECT 1")  # from now on it has one
        yield churn
        await old.execute("ROLLBACK")
    await store.upkeep.aclose()


async def _measure(url: str, way: str, seconds: float) -> Course:
    async with churning(url, way, duties_every=1) as churn:
        began = time.monotonic()
        rounds = [await churn.round() for _ in range(10)]
        while time.monotonic() < began + seconds:
            rounds.append(await churn.round())
        took = time.monotonic() - began
    tenth = max(5, len(rounds) // 10)
    first, last = _average(rounds[:tenth]), _average(rounds[-tenth:])
    return Course(way, len(rounds) * BATCHES * BATCH, took, first, last)


def _average(rounds: Sequence[Pace]) -> Pace:
    """Put rounds of as many jobs together: all their jobs in all their time."""
    return Pace(
        statistics.mean(one.pages for one in rounds),
        statistics.mean(one.cost for one in rounds),
        statistics.harmonic_mean([one.rate for one in rounds]),
        statistics.mean(one.same for one in rounds),
    )


@contextmanager
def _own_server() -> Iterator[str]:
    server = PostgresServer(*HASTY, folder=MEMORY)
    server.start()
    try:
        yield f"{server.url}&schema=churn"
    finally:
        server.close()


def main() -> None:
    """Print each way's figures; fail where less than the goal is left of one that must be flat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=10, help="of many jobs at once, no rule in their way"
    )
    parser.add_argument("--more", type=float, default=1, help="minutes of each other way; 0 for none")
    parser.add_argument("--url", help="a schema that is emptied; else on a server of its own, in memory")
    parser.add_argument("--json", action="store_true", help="one object at the end, whatever is left")
    options = parser.parse_args()
    plain, *others = WAYS
    courses: list[Course] = []
    with nullcontext(options.url) if options.url else _own_server() as url:
        for way in (plain, *(others if options.more else ())):
            minutes = options.minutes if way == plain else options.more
            courses.append(asyncio.run(_measure(url, way, minutes * 60)))
            print(courses[-1], file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(
            msgspec.json.encode(
                Courses(host(), tuple(courses), "once a second, as workers let them")
            ).decode()
        )
    elif any(one.way in FLAT and not one.is_flat for one in courses):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
