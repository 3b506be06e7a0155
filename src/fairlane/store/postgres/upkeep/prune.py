"""Prune: remove jobs, results and keys past their retention, whole days of history where possible (S52)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.model.instants import DAY, Instant
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load

LARGE_DAY: Final = 256 * 2**20
"""From this size on a day is removed as a whole, when its last job is past its retention: deleting hundreds
of thousands of rows one by one costs more than all that was done with them before."""

MAX_KEYS: Final = 10_000
MAX_TALLY_DELTAS: Final = 50_000
_MAX_SUMS: Final = 40
"""How often a pass sums up so many: more than settlements can leave behind within a minute."""
_DAYS_AHEAD: Final = 2


async def prune(server: Server, request: PruneRequest) -> PruneReply:
    """Take one pass. A day that is removed as a whole counts with all its jobs, whatever `limit` says."""
    sql = load("upkeep", server.schema)
    now: Instant = await server.value(sql.now, server.now())
    in_days = 0
    if request.scope.tenant is None:
        await server.fetch(sql.create_history_days, server.now())
        in_days = await _remove_days(server, sql, now, request.retention)
    reply = await _remove_rows(server, sql, now, request)
    for _ in range(_MAX_SUMS):
        if await server.value(sql.sum_tally_deltas, MAX_TALLY_DELTAS) < MAX_TALLY_DELTAS:
            break
    await server.fetch(sql.delete_policy_changes, now)
    return msgspec.structs.replace(reply, jobs=in_days + reply.jobs)


async def _remove_days(server: Server, sql: Any, now: Instant, keep: Retention) -> int:
    """Empty the days past retention and drop empty ones; a day that somebody reads waits for another pass."""
    last = now - _longest(keep)
    removed = 0
    for day, since, until, _ in await server.fetch(sql.history_days):
        if until <= last:
            removed += await server.value(sql.empty_history_day, day) or 0
        if until <= last or since > now + (_DAYS_AHEAD + 1) * DAY:
            await server.fetch(sql.drop_history_day, day)
    return removed


async def _remove_rows(server: Server, sql: Any, now: Instant, request: PruneRequest) -> PruneReply:
    keep, tenant = request.retention, request.scope.tenant
    async with read_transaction(server) as connection:
        if not await connection.fetchval(sql.one_pruner, f"{server.schema} prune"):
            return PruneReply()  # another pass is under way
        over = await _over(connection, sql, now, request)
        page = over[: request.limit]
        done = _Done(page)
        await connection.execute(sql.delete_history, *done.history)
        await connection.execute(sql.delete_dead, done.dead)
        await connection.execute(sql.delete_results, *done.results)
        reply = PruneReply(len(done.history[0]) + len(done.dead), len(done.results[0]))
        if len(over) > request.limit:
            return msgspec.structs.replace(reply, is_partial=True)
        keys = await connection.fetch(sql.delete_keys, now - keep.keys, tenant, MAX_KEYS)
        return msgspec.structs.replace(reply, keys=len(keys), is_partial=len(keys) == MAX_KEYS)


class _Done:
    """What one pass removes, as the statements take it."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.history: tuple[list[Any], list[Instant]] = ([], [])
        self.results: tuple[list[Any], list[Instant]] = ([], [])
        self.dead: list[Any] = []
        for home, id, settled_at, is_over in rows:
            if home == "dead":
                self.dead.append(id)
                continue
            ids, instants = self.history if is_over else self.results
            ids.append(id)
            instants.append(settled_at)


async def _over(connection: Connection, sql: Any, now: Instant, request: PruneRequest) -> Sequence[Any]:
    """Return what is past its retention, oldest first, one more than asked for if there is more."""
    keep = request.retention
    by_state = (keep.succeeded, keep.cancelled, keep.dead, keep.results)
    by_name = (msgspec.json.encode(keep.queues).decode(), msgspec.json.encode(keep.tenants).decode())
    shortest = min(*by_state, *keep.queues.values(), *keep.tenants.values())
    large = [day for day, *_, size in await connection.fetch(sql.history_days) if size > LARGE_DAY]
    values = (now, request.scope.tenant, request.limit + 1, *by_state, *by_name, now - shortest, large)
    rows: list[Any] = await connection.fetch(sql.over, *values)
    return rows


def _longest(keep: Retention) -> int:
    """Return the time after which nothing of a day of history is retained."""
    return max(keep.succeeded, keep.cancelled, *keep.queues.values(), *keep.tenants.values())
