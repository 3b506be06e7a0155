"""Remove what was kept long enough: days as a whole where everything in them is over, else rows (S52)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.model.instants import DAY, Instant
from fairlane.model.retention import Retention
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.postgres.connect import Connection, Server
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.statements import load

LARGE_DAY: Final = 256 * 2**20
"""From this size on a day's jobs wait for the end of the day's time instead of each for its own: taking
hundreds of thousands of rows out one by one costs more than all that was done with them before."""

KEYS_MOST: Final = 10_000
TALLIES_MOST: Final = 50_000
_ROLLS: Final = 40
"""How often in a pass so many are added up: more than settlements can leave behind within a minute."""
_AHEAD: Final = 2


async def prune(server: Server, request: PruneRequest) -> PruneReply:
    """Take one pass. Whole days count as what was in them, whatever `most` says: removing one is one step."""
    sql = load("upkeep", server.schema)
    now: Instant = await server.value(sql.now, server.now())
    in_days = 0
    if request.scope.tenant is None:
        await server.fetch(sql.make_days, server.now())
        in_days = await _remove_days(server, sql, now, request.retention)
    reply = await _remove_rows(server, sql, now, request)
    for _ in range(_ROLLS):
        if await server.value(sql.roll_tally, TALLIES_MOST) < TALLIES_MOST:
            break
    await server.fetch(sql.marks_out, now)
    return msgspec.structs.replace(reply, jobs=in_days + reply.jobs)


async def _remove_days(server: Server, sql: Any, now: Instant, keep: Retention) -> int:
    """Empty the days that are over and drop what is empty; one that somebody reads waits for another pass."""
    last = now - _longest(keep)
    removed = 0
    for day, since, until, _ in await server.fetch(sql.days):
        if until <= last:
            removed += await server.value(sql.clear_day, day) or 0
        if until <= last or since > now + (_AHEAD + 1) * DAY:
            await server.fetch(sql.drop_day, day)
    return removed


async def _remove_rows(server: Server, sql: Any, now: Instant, request: PruneRequest) -> PruneReply:
    keep, tenant = request.retention, request.scope.tenant
    async with reading(server) as connection:
        if not await connection.fetchval(sql.one_pruner, f"{server.schema} prune"):
            return PruneReply()  # somebody else is at it
        over = await _over(connection, sql, now, request)
        page = over[: request.most]
        done = _Done(page)
        await connection.execute(sql.history_out, *done.history)
        await connection.execute(sql.dead_out, done.dead)
        await connection.execute(sql.results_out, *done.results)
        reply = PruneReply(len(done.history[0]) + len(done.dead), len(done.results[0]))
        if len(over) > request.most:
            return msgspec.structs.replace(reply, is_partial=True)
        keys = await connection.fetch(sql.keys_out, now - keep.keys, tenant, KEYS_MOST)
        return msgspec.structs.replace(reply, keys=len(keys), is_partial=len(keys) == KEYS_MOST)


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
    """Give what is over, oldest first, one more than asked for if there is more."""
    keep = request.retention
    by_state = (keep.succeeded, keep.cancelled, keep.dead, keep.results)
    by_name = (msgspec.json.encode(keep.queues).decode(), msgspec.json.encode(keep.tenants).decode())
    shortest = min(*by_state, *keep.queues.values(), *keep.tenants.values())
    large = [day for day, *_, size in await connection.fetch(sql.days) if size > LARGE_DAY]
    values = (now, request.scope.tenant, request.most + 1, *by_state, *by_name, now - shortest, large)
    rows: list[Any] = await connection.fetch(sql.over, *values)
    return rows


def _longest(keep: Retention) -> int:
    """Give the time after which nothing of a day of history is kept by anybody."""
    return max(keep.succeeded, keep.cancelled, *keep.queues.values(), *keep.tenants.values())
