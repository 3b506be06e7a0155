"""Find the settlement of the last job that a limit by number keeps (S103), or of the oldest day (S126).

History has no index in the order of settlement, which every settlement would pay for. Its blocks are roughly
in that order, and an index of ranges of blocks says what a block may hold: so the last minutes are counted,
then four times as many, until they hold enough.
"""

from __future__ import annotations

from typing import Any, Final

from fairlane.model.instants import MINUTE, Instant
from fairlane.model.policy.pressure import EarlyCut, early_cut
from fairlane.model.policy.retention import CountCuts
from fairlane.store.contract.upkeep import PruneRequest
from fairlane.store.postgres.connection import Server

_STEP: Final = 4
_ENOUGH: Final = _STEP
"""How many times the wanted number may be read and sorted; at an even rate nothing is halved then."""


async def find_early(server: Server, sql: Any, now: Instant, request: PruneRequest) -> EarlyCut:
    """Return what goes early: the oldest day that is over, because only a whole day gives space back.

    A sweep that is under way has its cut, and does not know what comes after.
    """
    if not request.is_early or request.mark.is_under_way:
        return EarlyCut(has_more=request.is_early)
    days = await server.fetch(sql.history_days)
    return early_cut([until - 1 for _, _, until, _ in days if request.mark.cut < until <= now][:1], 1)


async def find_cuts(
    server: Server, sql: Any, now: Instant, request: PruneRequest, early: EarlyCut
) -> CountCuts:
    """Return the cuts; each is 0 while the store holds fewer than it may."""
    keep, mark = request.retention, request.mark
    finished, dead = mark.next_cut, 0
    if keep.newest_finished is not None and not mark.is_under_way:
        finished = await _newest_finished(server, sql, now, keep.newest_finished)
    if not mark.is_under_way:
        finished = max(finished, early.at)
    if keep.newest_dead is not None:
        dead = await server.value(sql.newest_dead, keep.newest_dead - 1) or 0
    return CountCuts(finished, dead)


async def _newest_finished(server: Server, sql: Any, now: Instant, newest: int) -> Instant:
    if await server.value(sql.history_total) < newest:
        return 0
    low, high = await _window(server, sql, now, newest)
    while high - low > 1 and await server.value(sql.settled_after, low, _ENOUGH * newest) == _ENOUGH * newest:
        middle = (low + high) // 2
        if await server.value(sql.settled_after, middle, newest) == newest:
            low = middle
        else:
            high = middle
    return await server.value(sql.newest_finished, low, newest - 1) or 0


async def _window(server: Server, sql: Any, now: Instant, newest: int) -> tuple[Instant, Instant]:
    """Return two instants: after the first at least `newest` jobs have ended, after the second fewer.

    The first may be the beginning of time.
    """
    width, high = MINUTE, now
    while width < now:
        if await server.value(sql.settled_after, now - width, newest) == newest:
            return now - width, high
        high = now - width
        width *= _STEP
    return -1, high
