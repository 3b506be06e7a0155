"""Prune: remove jobs, results and keys past their retention, whole days of history where possible (S52)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.model.finished_job import FinishedJob, finished_job
from fairlane.model.instants import DAY, SECOND, Instant, Micros
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.pressure import StoreSize
from fairlane.model.policy.prune_mark import Span, mark_after, spans
from fairlane.model.policy.retention import CountCuts
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.dead.letters import read_letter
from fairlane.store.postgres.history import add_to_batch
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.upkeep.count_cuts import find_cuts, find_early

LARGE_DAY: Final = 256 * 2**20
"""From this size on a day is removed as a whole, when its last job is past its retention: deleting hundreds
of thousands of rows one by one costs more than all that was done with them before."""

MAX_KEYS: Final = 10_000
MAX_TALLY_DELTAS: Final = 50_000
_MAX_SUMS: Final = 40
"""How many times a pass sums up `MAX_TALLY_DELTAS`: more than settlements leave behind within a minute."""
_DAYS_AHEAD: Final = 2
_FIRST_WIDTH: Final[Micros] = 4 * SECOND
"""How much time of the history a pass reads at first. A pass of every day reads some minutes."""
_STEP: Final = 4


async def prune(server: Server, request: PruneRequest) -> PruneReply:
    """Take one pass. A day that is removed as a whole counts with all its jobs, whatever `limit` says."""
    sql = load("upkeep", server.schema)
    now: Instant = await server.value(sql.now, server.now())
    early = await find_early(server, sql, now, request)
    cuts = await find_cuts(server, sql, now, request, early)
    days: Counter[State] = Counter()
    if request.scope.tenant is None:
        await server.fetch(sql.create_history_days, server.now())
        days = await _remove_days(server, sql, now, request, cuts)
    reply = await _remove_rows(server, sql, now, request, cuts)
    if request.is_early and not reply.is_partial:
        await _drop_empty_days(server, sql, cuts)
    for _ in range(_MAX_SUMS):
        if await server.value(sql.sum_tally_deltas, MAX_TALLY_DELTAS) < MAX_TALLY_DELTAS:
            break
    await server.fetch(sql.delete_policy_changes, now)
    states = dict(days + Counter(reply.states))
    size = None
    if request.is_measured:
        size = StoreSize(await server.value(load("inspection", server.schema).size))
    return msgspec.structs.replace(
        reply, jobs=sum(states.values()), states=states, has_more_early=early.has_more, size=size
    )


async def _drop_empty_days(server: Server, sql: Any, cuts: CountCuts) -> None:
    """Drop days before the cut in which nothing is left: only then the disk has their space again."""
    for day, _, until, _ in await server.fetch(sql.history_days):
        if until <= cuts.finished:
            await server.fetch(sql.drop_history_day, day)


async def _remove_days(
    server: Server, sql: Any, now: Instant, request: PruneRequest, cuts: CountCuts
) -> Counter[State]:
    """Empty the days past retention and drop empty ones; a day that somebody reads waits for another pass.

    A day before the cut by number is past retention, too, unless its jobs may have a time of their own.
    What is to be archived leaves job by job.
    """
    keep = request.retention
    last = now - keep.longest
    if not keep.has_own:
        last = max(last, cuts.finished)
    removed: Counter[State] = Counter()
    for day, since, until, _ in await server.fetch(sql.history_days):
        if until <= last and not request.is_archived:
            removed += await _empty(server, sql, day, since, until)
        if until <= last or since > now + (_DAYS_AHEAD + 1) * DAY:
            await server.fetch(sql.drop_history_day, day)
    return removed


async def _empty(server: Server, sql: Any, day: int, since: Instant, until: Instant) -> Counter[State]:
    """Empty a day; return what was in it. That is counted first: later nobody can."""
    states = {State(state): jobs for state, jobs in await server.fetch(sql.states_between, since, until)}
    return Counter(states) if await server.value(sql.empty_history_day, day) else Counter()


async def _remove_rows(
    server: Server, sql: Any, now: Instant, request: PruneRequest, cuts: CountCuts
) -> PruneReply:
    keep, tenant = request.retention, request.scope.tenant
    async with read_transaction(server) as connection:
        if not await connection.fetchval(sql.one_pruner, f"{server.schema} prune"):
            return PruneReply(mark=request.mark)  # another pass is under way
        over = await _over(connection, sql, now, request, cuts)
        page = over[: request.limit]
        done = _Done(page)
        gone = await _remove(connection, server.schema, done, is_archived=request.is_archived)
        if done.results[0]:
            await connection.execute(sql.delete_results, *done.results)
        reply = PruneReply(results=len(done.results[0]), states=gone)
        if len(over) > request.limit:
            mark = mark_after(request.mark, now, cuts, page[-1]["settled_at"])
            return msgspec.structs.replace(reply, is_partial=True, mark=mark)
        keys = await connection.fetch(sql.delete_keys, now - keep.keys, tenant, MAX_KEYS)
        mark = mark_after(request.mark, now, cuts)
        return msgspec.structs.replace(reply, keys=len(keys), is_partial=len(keys) == MAX_KEYS, mark=mark)


async def _remove(connection: Connection, schema: str, done: _Done, *, is_archived: bool) -> Counter[State]:
    """Remove jobs, to the archive or for good; return of which states they were."""
    sql = load("upkeep", schema)
    dead = await connection.fetch(sql.delete_dead, *done.dead) if done.dead[0] else []
    letters = [read_letter(row) for row in dead]
    gone = Counter(letter.job.state for letter in letters)
    if not is_archived:
        ended = await connection.fetch(sql.delete_history, *done.history)
        return gone + Counter({State(state): jobs for state, jobs in ended})
    jobs = [read_record(row) for row in await connection.fetch(sql.take_history, *done.history)]
    leaving = [finished_job(letter.job, letter.review) for letter in letters]
    await add_to_batch(connection, schema, [*leaving, *(FinishedJob(job) for job in jobs)])
    return gone + Counter(job.state for job in jobs)


class _Done:
    """What one pass removes, as the statements take it."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.history: tuple[list[Any], list[Instant]] = ([], [])
        self.results: tuple[list[Any], list[Instant]] = ([], [])
        self.dead: tuple[list[Any], list[Instant | None]] = ([], [])
        for home, id, settled_at, decided_at, is_over in rows:
            if home == "dead":
                self.dead[0].append(id)
                self.dead[1].append(decided_at)
                continue
            ids, instants = self.history if is_over else self.results
            ids.append(id)
            instants.append(settled_at)


async def _over(
    connection: Connection, sql: Any, now: Instant, request: PruneRequest, cuts: CountCuts
) -> Sequence[Any]:
    """Return what is past its retention, oldest first, one more than asked for if there is more.

    History has no index in the order of settlement, so all of a span is read and sorted. After a day without
    pruning that is millions of jobs, in each pass: so the first seconds are read, then four times as many,
    until there are enough.
    """
    keep = request.retention
    by_state = (keep.succeeded, keep.cancelled, keep.dead, keep.results)
    by_name = tuple(msgspec.json.encode(one).decode() for one in (keep.tasks, keep.tenants, keep.queues))
    large: list[int] = []
    # Else a large day would wait for a few jobs, or for the archive.
    if keep.longest == max(keep.succeeded, keep.cancelled) and not request.is_archived:
        large = [day for day, *_, size in await connection.fetch(sql.history_days) if size > LARGE_DAY]
    ranges = spans(keep, now, cuts, request.mark)
    died_by, width = max(now - keep.shortest_dead, cuts.dead - 1), _FIRST_WIDTH
    while True:
        part = _first_part(ranges, width)
        is_all = part == ranges
        values = (
            *(now, request.scope.tenant, request.limit + 1, *by_state, *by_name),
            *([one.first for one in part], [one.last for one in part], large, cuts.finished),
            *(keep.dead_reviewed, keep.is_from_review),
            *(died_by if is_all else min(died_by, part[-1].last), cuts.dead),
        )
        rows: list[Any] = await connection.fetch(sql.over, *values)
        if is_all or len(rows) > request.limit:
            return rows
        width *= _STEP


def _first_part(ranges: Sequence[Span], width: Micros) -> tuple[Span, ...]:
    """Return the first settlements of ranges, so many microseconds together.

    >>> _first_part((Span(1, 3), Span(7, 9)), 4)
    (Span(first=1, last=3), Span(first=7, last=7))
    """
    part: list[Span] = []
    for one in ranges:
        if width <= 0:
            break
        last = min(one.last, one.first + width - 1)
        part.append(Span(one.first, last))
        width -= last - one.first + 1
    return tuple(part)
