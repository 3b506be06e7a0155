"""Delete finished jobs, results and keys whose retention is over (S52, S103), or for want of room (S126)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.archive_settings import NO_ARCHIVE, ArchiveSettings
from fairlane.duties.archive.ship import Archive
from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import DAY, MINUTE, SECOND, Instant, Micros
from fairlane.model.policy.prune_mark import NO_MARK, PruneMark
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.upkeep import PruneReply, PruneRequest

EVERY: Final[Micros] = MINUTE
ARCHIVED_EVERY: Final[Micros] = 10 * MINUTE
"""With an archive less often: each pass makes a file."""
BETWEEN: Final[Micros] = SECOND // 40
"""The pause between passes of a long prune: the store has other work to do."""

AT_ONCE: Final = 100
"""How many jobs a pass removes: on SQLite everybody else waits for it, some milliseconds."""

MOST_UNSHIPPED: Final = 1_000
"""How many removed jobs may wait for the archive while more are removed: so many make a file."""

WHOLE_EVERY: Final[Micros] = DAY
"""How often the whole history is read: what a jump of the clock has hidden from the other passes is found."""

_log: Final = getLogger("fairlane.duties")


class Prune:
    """Takes passes of pruning, each from where the one before has come to."""

    def __init__(self, retention: Retention, archive: ArchiveSettings = NO_ARCHIVE) -> None:
        self._retention = retention
        self._archive = Archive(archive)
        self._unshipped = 0
        self._is_early = False
        self._is_full = False
        self._mark: PruneMark = NO_MARK
        self._whole_at: Instant = 0

    async def __call__(self, store: Store) -> Micros:
        """Take one pass; return the pause before the next, short if there was more.

        With an archive, what was removed is written when it fills a file, or nothing is left to remove. If
        that fails, it is tried first in the next pass, and nothing else is removed. While the store is too
        full, the oldest history goes before its time, a pass at a time.
        """
        archived = 0 if self._unshipped else await self._archive.ship(store)
        request = PruneRequest(
            scope=Scope.all(),
            retention=self._retention,
            limit=AT_ONCE,
            mark=self._mark,
            is_archived=self._archive.is_on,
            is_early=self._is_early,
            # Not in each pass of a long prune: PostgreSQL looks at every table.
            is_measured=self._is_full or not self._mark.is_under_way,
        )
        reply = await store.upkeep.prune(request)
        self._mark = self._next_mark(reply.mark)
        removed = _log_removed(reply, is_early=self._is_early)
        self._is_early = self._goes_on_early(reply)
        is_partial = reply.is_partial or self._is_early
        self._unshipped += reply.jobs
        if not is_partial or self._unshipped >= MOST_UNSHIPPED:
            self._unshipped = 0
            archived += await self._archive.ship(store)
        did = ", ".join(text for text in (removed, counted(archived, "archived")) if text)
        return Pause(BETWEEN if is_partial else self._every, did)

    def _goes_on_early(self, reply: PruneReply) -> bool:
        """Whether the next pass is an early one: the store is too full, and there may be history that can go.

        What is past its retention goes first. Once nothing else can go, the rest is for people to decide. A
        sweep that has begun is ended: what ended at one instant, or on one day of PostgreSQL, goes together.
        """
        if reply.size is not None:
            self._is_full = reply.size.pressure(self._retention.store_limit) == "bad"
        if self._is_early and reply.is_partial:
            return True
        if not self._is_full:
            return False
        return reply.has_more_early if self._is_early else not reply.is_partial

    @property
    def _every(self) -> Micros:
        return ARCHIVED_EVERY if self._archive.is_on else EVERY

    def _next_mark(self, mark: PruneMark) -> PruneMark:
        self._whole_at = self._whole_at or mark.at
        if mark.at - self._whole_at < WHOLE_EVERY:
            return mark
        self._whole_at = 0
        return NO_MARK


def _log_removed(reply: PruneReply, *, is_early: bool) -> str:
    states = {state.value: jobs for state, jobs in sorted(reply.states.items())}
    removed = {**states, "results": reply.results, "keys": reply.keys}
    words = ", ".join(f"{number} {what}" for what, number in removed.items() if number)
    if words:
        if is_early:
            extra = {"event": "pruned_early", **removed}
            _log.warning("removed early, the store is nearly full: %s", words, extra=extra)
        else:
            _log.info("removed after its retention: %s", words, extra={"event": "pruned", **removed})
    return f"{words} removed{' early' if is_early else ''}" if words else ""
