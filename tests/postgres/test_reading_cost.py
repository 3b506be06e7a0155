"""Reading costs what it shows, not what there is: 210,000 jobs, and how many rows were looked at (S51)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

import psycopg
import pytest

from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadRequest, DeadTallyRequest
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.jobs import CountRequest, ExplainRequest, FindRequest, TallyRequest, Why
from fairlane.store.contract.line import FirstRequest, JobLine
from fairlane.store.contract.policies import ListRequest
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.jobs.find import FIRST_CHUNK
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World
from tests.oracle.clock import START, DrivenClock
from tests.servers.postgres import shared_url
from tests.servers.schemas import lent_schema, url_of

JOBS: Final = 100_000
TENANTS: Final = 1_000
DEAD: Final = 10_000
WAITING: Final = frozenset({State.READY})

# One row in a hundred is of the rare tenant, one in 10,000 has the rare correlation id.
FILL: Final = """
INSERT INTO {schema}.job (id, tenant, queue, task, state, payload, checksum, version, priority, enqueued_at,
                     run_at, sort_key, dedup_until, correlation_id, max_attempts, at_most_once, metadata)
SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
       CASE WHEN n %% 100 = 0 THEN 'rare' ELSE 't' || n %% {tenants} END, 'default', 'work',
       CASE WHEN n %% 1000 = 7 THEN 'delayed' ELSE 'ready' END, '{}', 0, 1, 0, %(now)s + n, %(now)s + n,
       %(now)s + n, 'settled', CASE WHEN n %% 10000 = 0 THEN 'rare' END, 3, false, '{}'
FROM generate_series(1, {jobs}) n;
INSERT INTO {schema}.history (id, tenant, queue, task, state, payload, checksum, version, priority,
                         enqueued_at, run_at, sort_key, dedup_until, max_attempts, at_most_once, metadata,
                         attempt, failures, crashes, crashes_alone, snoozes, is_suspect, fence, settled_at)
SELECT ('00000000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid, 't' || n %% {tenants}, 'default',
       'work', 'succeeded', '{}', 0, 1, 0, %(now)s + n, %(now)s + n, %(now)s + n, 'settled', 3, false, '{}',
       1, 0, 0, 0, 0, false, 1, %(now)s + n
FROM generate_series(1, {jobs}) n;
INSERT INTO {schema}.delta (ord, queue, tenant, task, delayed, ready, head_key, head_id)
SELECT row_number() OVER (), queue, tenant, task, count(*) FILTER (WHERE state = 'delayed'),
       count(*) FILTER (WHERE state = 'ready'), min(sort_key) FILTER (WHERE state = 'ready'),
       (array_agg(id ORDER BY sort_key) FILTER (WHERE state = 'ready'))[1]
FROM {schema}.job GROUP BY queue, tenant, task;
INSERT INTO {schema}.dead (id, tenant, queue, task, state, payload, checksum, version, priority, enqueued_at,
                      run_at, sort_key, dedup_until, max_attempts, at_most_once, metadata, attempt,
                      failures, crashes, crashes_alone, snoozes, is_suspect, fence, settled_at, fingerprint,
                      review)
SELECT ('00000000-0000-7000-a000-' || lpad(to_hex(n), 12, '0'))::uuid,
       CASE WHEN n %% 100 = 0 THEN 'rare' ELSE 't' || n %% {tenants} END, 'default', 'work', 'dead', '{}',
       0, 1, 0, %(now)s + n, %(now)s + n, %(now)s + n, 'settled', 3, false, '{}',
       1, 0, 0, 0, 0, false, 1, %(now)s + n, CASE WHEN n %% 100 = 5 THEN 'rare' ELSE 'f' || n %% 12 END,
       CASE WHEN n %% 100 = 7 THEN 'resolved' ELSE 'pending' END
FROM generate_series(1, {dead}) n;
INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
SELECT tenant, queue, state, count(*)
FROM (SELECT tenant, queue, state FROM {schema}.history
      UNION ALL SELECT tenant, queue, state FROM {schema}.dead) finished
GROUP BY tenant, queue, state;
"""

# As a flood leaves it that is over but for a few jobs: a later one finds a planner that expects no more.
DRAIN: Final = """
DELETE FROM {schema}.job WHERE enqueued_at <= %(now)s + {jobs} - 10;
DELETE FROM {schema}.history WHERE enqueued_at <= %(now)s + {jobs} - 10;
DELETE FROM {schema}.dead WHERE enqueued_at <= %(now)s + {jobs} - 10;
DELETE FROM {schema}.delta;
DELETE FROM {schema}.tally_delta;
VACUUM {schema}.job, {schema}.history, {schema}.dead;
DELETE FROM {schema}.job;
DELETE FROM {schema}.history;
DELETE FROM {schema}.dead;
"""


class Filled:
    """A store with many jobs and a way to ask what a call cost."""

    def __init__(
        self, store: PostgresStore, clock: DrivenClock, server: Server, admin: psycopg.Connection
    ) -> None:
        self.store = store
        self.world = World(store, clock)
        self._server = server
        self._admin = admin

    async def cost(self, call: Callable[[], Awaitable[Any]]) -> int:
        """Return how many rows of its tables the server read for a call.

        Called three times: what other connections did before may be counted only now, but only once.
        """
        costs = []
        for _ in range(3):
            before = await self._read()
            await call()
            costs.append(await self._read() - before)
        return min(costs)

    async def _read(self) -> int:
        # The pool has one connection, which says what it has done when a transaction ends.
        await self._server.fetch("SELECT pg_stat_force_next_flush()")
        row = self._admin.execute(
            "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
            " WHERE schemaname = %s",
            (self._server.schema,),
        ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture(scope="module", params=[FILL, FILL + DRAIN + FILL], ids=["new", "drained before"])
def crowd(request: pytest.FixtureRequest) -> Iterator[str]:
    """A schema with 210,000 jobs, half of them finished, of which the planner has a wrong idea or none."""
    with asyncio.Runner() as runner, psycopg.connect(shared_url(), autocommit=True) as admin:
        lending = lent_schema()
        schema = runner.run(lending.__aenter__())
        words = {"schema": schema, "jobs": str(JOBS), "tenants": str(TENANTS), "dead": str(DEAD)}
        text: str = request.param
        for word, value in words.items():
            text = text.replace(f"{{{word}}}", value)
        for statement in text.strip().split(";\n"):
            admin.execute(statement.encode(), {"now": START})
        # What it read to do so is told now, and not in the middle of a test.
        admin.execute("SELECT pg_stat_force_next_flush()")
        yield schema
        runner.run(lending.__aexit__(None, None, None))


@pytest.fixture
async def filled(crowd: str, admin: psycopg.Connection) -> AsyncIterator[Filled]:
    """A store on that schema, with one connection."""
    clock = DrivenClock(START + SECOND)
    store = PostgresStore(url_of(crowd) + "&pool=1", clock.now)
    yield Filled(store, clock, store._server, admin)
    await store.upkeep.aclose()


FINDS: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "newest": ({}, 1_200),
    "of a tenant": ({"scope": Scope("rare")}, 1_200),
    "by correlation": ({"correlation_id": "rare"}, 100),
    "delayed": ({"states": frozenset({State.DELAYED})}, 1_000),
    "running": ({"states": frozenset({State.RUNNING})}, 100),
    "running or delayed": ({"states": frozenset({State.RUNNING, State.DELAYED})}, 1_000),
    "dead": ({"states": frozenset({State.DEAD})}, 500),
    "by what has no index": ({"tag": "missing"}, 25_000),
}
"""Filters, and how many rows a page of 50 may cost: three homes are each read as far as the page might go."""


@pytest.mark.parametrize(("filters", "most"), FINDS.values(), ids=FINDS)
async def test_a_page_costs_no_more_than_it_may_read(
    filled: Filled, filters: dict[str, Any], most: int
) -> None:
    """S51: by time, tenant, correlation and current state indexes lead; other filters read 10,000 rows."""
    assert (
        await filled.cost(
            lambda: filled.store.jobs.find(FindRequest(**{"scope": ALL, "limit": 50, **filters}))
        )
        <= most
    )


TALLIES: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "by tag": ({"tag": "missing"}, 40_000),
    "of what waits": ({"states": WAITING, "tag": "missing"}, 21_000),
    "of what is delayed": ({"states": frozenset({State.DELAYED})}, 1_000),
    "of a correlation": ({"correlation_id": "rare"}, 100),
    "of a tenant": ({"scope": Scope("rare"), "task": "missing"}, 4_000),
    "of the newest": ({"since": START + JOBS, "tag": "missing"}, 100),
}
"""Filters, and how many rows a call may cost: three homes are each read as far as the call might go."""


@pytest.mark.parametrize(("filters", "most"), TALLIES.values(), ids=TALLIES)
async def test_a_tally_costs_no_more_than_it_may_look_at(
    filled: Filled, filters: dict[str, Any], most: int
) -> None:
    """S51: by time, tenant, correlation and current state indexes lead; other filters look at 10,000 jobs."""
    asked = TallyRequest(**{"scope": ALL, **filters})
    assert await filled.cost(lambda: filled.store.jobs.tally(asked)) <= most


async def test_a_job_is_got_by_its_id_alone(filled: Filled) -> None:
    """S51: whatever home it is in."""
    job = (await filled.store.jobs.find(FindRequest(scope=ALL, limit=1))).jobs[0]
    assert await filled.cost(lambda: filled.world.get(job.id)) <= 3


async def test_counts_read_sums_and_no_jobs(filled: Filled) -> None:
    """S51: what is summed, what is not yet, and what runs: not the 210,000 jobs."""
    counts = await filled.world.counts()
    assert sum(counts.values()) == 2 * JOBS + DEAD
    assert await filled.cost(lambda: filled.store.jobs.count(CountRequest(scope=ALL))) <= 5 * TENANTS


async def test_explaining_a_job_reads_those_before_it_and_no_others(filled: Filled) -> None:
    """S51: a thousand of the same tenant, not the hundred thousand of all."""
    (job,) = (await filled.store.jobs.find(FindRequest(scope=Scope("rare"), states=WAITING, limit=1))).jobs
    asked = ExplainRequest(scope=ALL, id=job.id)
    assert await filled.store.jobs.explain(asked) == Why("no_worker", "queue default", None, JOBS // 100 - 1)
    assert await filled.cost(lambda: filled.store.jobs.explain(asked)) <= 1_100


async def test_who_is_first_in_line_is_read_without_the_others_in_it(filled: Filled) -> None:
    """One job a task, of a hundred to a thousand."""
    lines = tuple(JobLine(tenant, "default") for tenant in ("rare", "t1", "t2", "nobody"))
    asked = FirstRequest(scope=ALL, lines=lines)
    assert len(await filled.store.jobs.first_in_line(asked)) == 3
    assert await filled.cost(lambda: filled.store.jobs.first_in_line(asked)) <= 4 * len(lines)


async def test_names_of_tenants_are_listed_without_reading_their_jobs(filled: Filled) -> None:
    """S54: from one name to the next; each costs a look into each home."""
    asked = ListRequest(scope=ALL, kind=SubjectKind.TENANT, limit=10)
    assert len(await filled.store.policies.list(asked)) == asked.limit
    assert await filled.cost(lambda: filled.store.policies.list(asked)) <= 20 * asked.limit


async def test_looking_into_the_store_reads_what_waits_for_a_time_and_one_job_of_each_strand(
    filled: Filled,
) -> None:
    """Which tasks unfinished jobs need, which deltas are not applied: not the 100,000 that are ready."""
    asked = InspectRequest(scope=ALL)
    assert (await filled.store.upkeep.inspect(asked)).tasks == ("work",)
    assert await filled.cost(lambda: filled.store.upkeep.inspect(asked)) <= 3 * TENANTS


LETTERS: Final[dict[str, dict[str, Any]]] = {
    "of all": {},
    "of a tenant": {"scope": Scope("rare")},
    "of a cause": {"fingerprint": "rare"},
    "with a review": {"review": "resolved"},
    "of some hours": {"until": START + DEAD // 2, "since": START + DEAD // 4},
}
"""Filters that an index answers, each met by one letter in a hundred or more."""


@pytest.mark.parametrize("filters", LETTERS.values(), ids=LETTERS)
async def test_a_page_of_dead_letters_costs_no_more_than_it_may_read(
    filled: Filled, filters: dict[str, Any]
) -> None:
    """S43, S75: the latest deaths of all, or of one in a hundred, by an index of their own."""
    asked = DeadRequest(**{"scope": ALL, "limit": 50, **filters})
    assert len((await filled.store.dead.find(asked)).letters) == asked.limit
    assert await filled.cost(lambda: filled.store.dead.find(asked)) <= 2 * FIRST_CHUNK


@pytest.mark.parametrize(("filters", "most"), [({}, DEAD), ({"fingerprint": "rare"}, DEAD // 100)], ids=str)
async def test_a_tally_of_dead_letters_reads_each_once(
    filled: Filled, filters: dict[str, Any], most: int
) -> None:
    """S75: what they have in common, from the narrowest index; the sample is looked up nowhere."""
    asked = DeadTallyRequest(**{"scope": ALL, **filters})
    page = await filled.store.dead.tally(asked)
    assert (sum(one.letters for one in page.tallies), page.looked_at, page.cursor) == (most, most, None)
    assert await filled.cost(lambda: filled.store.dead.tally(asked)) <= most + 10
