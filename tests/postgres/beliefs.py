"""What the planner may believe of a schema: left by a history that is over, and wrong for what comes next.

Autovacuum looks at a table whenever it likes: while it is full, while all of it runs, or when a flood has
gone but for a few jobs and its pages are still there. A plan must be right whatever was seen.
"""

from __future__ import annotations

from typing import Final

from fairlane.store.postgres.connection import Connection
from fairlane.store.postgres.statements import rendered

JOBS: Final = 4_000

_TABLES: Final = """
SELECT string_agg(format('%I.%I', relnamespace::regnamespace, relname), ', ') FROM pg_class
WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relname <> 'meta'
"""
# One tenant has a quarter, the others one each; every second has keys, an expiry and a correlation id.
_FILL: Final = """
INSERT INTO {schema}.job (id, tenant, queue, task, state, payload, checksum, version, priority, enqueued_at,
                     run_at, sort_key, expires_at, idempotency_key, dedup_key, dedup_until, correlation_id,
                     max_attempts, at_most_once, metadata)
SELECT gen_random_uuid(), CASE WHEN n % 4 = 0 THEN 'whale' ELSE 't' || n END, 'default', 'k' || n % 3,
       'ready', '', 0, 1, 0, n, n, n, CASE WHEN n % 2 = 0 THEN n + 1000000 END,
       CASE WHEN n % 2 = 0 THEN 'i' || n END, CASE WHEN n % 2 = 0 THEN 'd' || n END, 'settled',
       CASE WHEN n % 2 = 0 THEN 'c' || n END, 5, false, '{}'
FROM generate_series(1, $1::int) n
"""
_FOLLOW: Final = """
INSERT INTO {schema}.idempotency (tenant, key, id, fingerprint)
SELECT tenant, idempotency_key, id, '' FROM {schema}.job WHERE idempotency_key IS NOT NULL;
INSERT INTO {schema}.dedup (tenant, task, key, id)
SELECT tenant, task, dedup_key, id FROM {schema}.job WHERE dedup_key IS NOT NULL;
INSERT INTO {schema}.history ({finished})
SELECT {sent}, 'succeeded', NULL, run_at, sort_key, 1, 0, 0, 0, 0, false, 1, NULL, enqueued_at, NULL
FROM {schema}.job;
INSERT INTO {schema}.dead ({finished}) SELECT {finished} FROM {schema}.history;
INSERT INTO {schema}.delta (ord, queue, tenant, task, ready, head_key, head_id)
SELECT row_number() OVER (), queue, tenant, task, count(*), min(sort_key),
       (array_agg(id ORDER BY sort_key, id))[1]
FROM {schema}.job GROUP BY queue, tenant, task;
SELECT {schema}.apply_all_deltas(0, 'default')
"""
_BECOMES: Final = {
    "running": """
UPDATE {schema}.job SET state = 'running', worker = 'w' || sort_key % 10, started_at = 1,
                        lease_until = sort_key, fence = 1, gate = CASE WHEN sort_key % 2 = 0 THEN 'door' END;
UPDATE {schema}.strand SET state = {no_ready}, head_key = NULL, head_id = NULL;
UPDATE {schema}.tenant_queue SET state = {no_ready}, ready = 0
""",
    "parked": """
UPDATE {schema}.job SET state = 'delayed', run_at = 86400000000;
UPDATE {schema}.strand SET state = {parked}, parked = 'gate', gate = 'door', parked_until = 1;
UPDATE {schema}.tenant_queue SET state = {parked}, parked = 'rate', parked_until = 1
""",
}
_LEAVE: Final = "DELETE FROM {table} WHERE ctid NOT IN (SELECT ctid FROM {table} LIMIT {most})"

BELIEFS: Final = ("empty", "few", "drained", "running", "parked", "full")


async def mislead(connection: Connection, schema: str, belief: str) -> None:
    """Let the planner see a schema like that, and empty it; nothing is vacuumed or analysed after."""
    tables = (await connection.fetchval(_TABLES, schema)).split(", ")
    if belief != "empty":
        await connection.execute(rendered(_FILL, schema), 10 if belief == "few" else JOBS)
        await connection.execute(rendered(_FOLLOW, schema))
    if belief in _BECOMES:
        await connection.execute(rendered(_BECOMES[belief], schema))
    if belief == "drained":
        await _leave(connection, tables, 10)
    await connection.execute(f"VACUUM {'' if belief == 'drained' else 'ANALYZE'} {', '.join(tables)}")
    await _leave(connection, tables, 0)


async def _leave(connection: Connection, tables: list[str], most: int) -> None:
    for table in tables:
        await connection.execute(_LEAVE.replace("{table}", table).replace("{most}", str(most)))
