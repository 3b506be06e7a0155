"""A pass of pruning costs what it removes, not what there is to remove (S52, S103)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, Final

import psycopg

from fairlane.model.instants import DAY, SECOND
from fairlane.model.policy.prune_mark import NO_MARK, PruneMark
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL
from tests.oracle.clock import DrivenClock
from tests.servers.schemas import url_of

JOBS: Final = 20_000
LIMIT: Final = 40

# A job every ten seconds.
FILL: Final = """
INSERT INTO {schema}.history (id, tenant, queue, task, state, payload, checksum, version, priority,
                         enqueued_at, run_at, sort_key, dedup_until, max_attempts, at_most_once, metadata,
                         attempt, failures, crashes, crashes_alone, snoozes, is_suspect, fence, settled_at)
SELECT ('00000000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid, 'acme', 'default', 'work', 'succeeded',
       '{}', 0, 1, 0, %(first)s, %(first)s, 0, 'settled', 3, false, '{}', 1, 0, 0, 0, 0, false, 1,
       %(first)s + n * 10000000::bigint
FROM generate_series(1, %(jobs)s) n
"""

# As the server does by itself within a minute.
SUMMARIZE: Final = """
SELECT brin_summarize_new_values(i.oid) FROM pg_class i JOIN pg_am a ON a.oid = i.relam
WHERE a.amname = 'brin' AND i.relkind = 'i' AND i.relnamespace = %s::regnamespace
"""


async def test_a_pass_reads_no_more_of_the_history_than_it_needs(
    schema: str, admin: psycopg.Connection
) -> None:
    """S103: after days without pruning, too; the oldest jobs go first, and none is left."""
    clock = DrivenClock()
    first = clock.now() - 10 * DAY
    admin.execute(FILL.replace("{schema}", schema).encode(), {"first": first, "jobs": JOBS})
    admin.execute(SUMMARIZE.encode(), (schema,))
    async with AsyncExitStack() as stack:
        store = PostgresStore(url_of(schema) + "&pool=1", clock.now)
        stack.push_async_callback(store.upkeep.aclose)
        reply, _ = await one_pass(store, admin, LIMIT)
        cost = []
        for removed in (2, 3):
            reply, read = await one_pass(store, admin, LIMIT, reply.mark)
            cost.append(read)
            assert (reply.is_partial, reply.jobs) == (True, LIMIT)
            assert oldest(admin, schema) == first + (removed * LIMIT + 1) * 10 * SECOND
        assert min(cost) < JOBS / 4
        reply, _ = await one_pass(store, admin, JOBS, reply.mark)
        assert (reply.is_partial, oldest(admin, schema)) == (False, None)


async def one_pass(
    store: PostgresStore, admin: psycopg.Connection, limit: int, mark: PruneMark = NO_MARK
) -> tuple[PruneReply, int]:
    """Take one; return how many rows of its tables the server has read for it, too."""
    before = await rows_read(store, admin)
    retention = Retention(succeeded=DAY, cancelled=DAY, results=DAY)
    reply = await store.upkeep.prune(PruneRequest(scope=ALL, retention=retention, limit=limit, mark=mark))
    return reply, await rows_read(store, admin) - before


async def rows_read(store: PostgresStore, admin: psycopg.Connection) -> int:
    """Count them: the pool has one connection, which says what it has done when a transaction ends."""
    await store._server.fetch("SELECT pg_stat_force_next_flush()")
    statement = (
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE schemaname = %s"
    )
    return int(one(admin, statement, store._server.schema))


def oldest(admin: psycopg.Connection, schema: str) -> int | None:
    """Return when the oldest job of the history has ended."""
    found = one(admin, f"SELECT min(settled_at) FROM {schema}.history")  # noqa: S608 (ours)
    return None if found is None else int(found)


def one(admin: psycopg.Connection, statement: str, *values: Any) -> Any:
    """Return the one value of an answer."""
    row = admin.execute(statement.encode(), values).fetchone()
    assert row is not None
    return row[0]
