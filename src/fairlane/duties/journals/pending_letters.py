"""Count the dead letters that await a decision: whether there are too many, and which expire soon (S75, S76).

Reads only. What is told of it is stored with the events, so that a new leader neither repeats it nor forgets.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, NamedTuple

import msgspec

from fairlane.duties.journals.journal_end import JournalLook
from fairlane.model.instants import DAY, MINUTE, Instant, Micros
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import dlq_alert, letters_expire
from fairlane.model.journal.kinds import EventKind
from fairlane.model.journal.memory import EventMemory
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadTally, DeadTallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ

RECOUNT_EVERY: Final[Micros] = MINUTE
"""How often is looked whether an alert is over: retention removes dead letters without an event."""

EXPIRY_EVERY: Final[Micros] = DAY
EXPIRY_WITHIN: Final[Micros] = 3 * DAY
"""How long before dead letters are removed operators are told."""

_FEW: Final = 1_000
"""How many are read at least, where one call may read many that do not match."""

_COUNTED: Final = frozenset(
    {
        EventKind.DEAD_LETTER.value,
        EventKind.DEAD_LETTER_REVIEWED.value,
        EventKind.REPROCESS_REQUESTED.value,
    }
)
"""Events after which another number of dead letters is pending."""


class LetterNews(NamedTuple):
    """Events about pending dead letters, and the memory of having told them."""

    entries: tuple[NewEntry, ...]
    memory: EventMemory


class PendingLetters:
    """Tells once that more dead letters than `alert_above` are pending, and once a day how many expire."""

    def __init__(self, alert_above: int | None, retention: Retention) -> None:
        self._alert_above = alert_above
        self._retention = retention
        self._counted_at: Instant = 0

    def is_due(self, look: JournalLook[EventMemory]) -> bool:
        """Whether there may be something to tell."""
        return self._is_expiry_due(look) or self._is_alert_due(look)

    async def news(self, store: Store, look: JournalLook[EventMemory]) -> LetterNews:
        """Return what is to be told now. Asks the store only if something may have changed."""
        alerts, memory = await self._alert(store, look)
        if not self._is_expiry_due(look):
            return LetterNews(alerts, memory)
        memory = msgspec.structs.replace(memory, expiry_looked_at=look.now)
        expiring = await self._expiring(store, look.now)
        return LetterNews((*alerts, letters_expire(expiring, EXPIRY_WITHIN)) if expiring else alerts, memory)

    # ── too many ──────────────────────────────────────────────────────────────

    async def _alert(self, store: Store, look: JournalLook[EventMemory]) -> LetterNews:
        memory, threshold = look.memory, self._alert_above
        if threshold is None or not self._is_alert_due(look):
            return LetterNews((), memory)
        self._counted_at = look.now
        is_above = await _count(store, most=threshold) > threshold
        if is_above == memory.is_alerting:
            return LetterNews((), memory)
        memory = msgspec.structs.replace(memory, is_alerting=is_above)
        return LetterNews((dlq_alert(await _count(store), threshold),) if is_above else (), memory)

    def _is_alert_due(self, look: JournalLook[EventMemory]) -> bool:
        if any(one.entry.kind in _COUNTED for one in look.entries):
            return True
        return look.memory.is_alerting and look.now - self._counted_at >= RECOUNT_EVERY

    # ── expiry ────────────────────────────────────────────────────────────────

    def _is_expiry_due(self, look: JournalLook[EventMemory]) -> bool:
        return look.now - look.memory.expiry_looked_at >= EXPIRY_EVERY

    async def _expiring(self, store: Store, now: Instant) -> int:
        """Count the pending letters that retention removes soon; the most specific time counts (S103)."""
        keep = self._retention
        found = 0
        async for one in _tallies(store, until=_cut(now, keep.dead)):
            if keep.own(one.queue, one.tenant, one.task) is None:
                found += one.letters
        for queue, time in keep.queues.items():
            async for one in _tallies(store, until=_cut(now, time), queue=queue):
                has_closer = one.tenant in keep.tenants or one.task in keep.tasks
                found += 0 if has_closer else one.letters
        for tenant, time in keep.tenants.items():
            async for one in _tallies(store, until=_cut(now, time), scope=Scope(tenant)):
                found += 0 if one.task in keep.tasks else one.letters
        for task, time in keep.tasks.items():
            async for one in _tallies(store, until=_cut(now, time), task=task):
                found += one.letters
        return found


def _cut(now: Instant, keep: Micros) -> Instant:
    return max(0, now + EXPIRY_WITHIN - keep)


async def _count(store: Store, most: int | None = None) -> int:
    """Count pending dead letters; stop when there are more than `most`."""
    found = 0
    limit = MAX_ROWS_READ if most is None else min(MAX_ROWS_READ, max(_FEW, most + 1))
    async with aclosing(_tallies(store, limit=limit)) as tallies:
        async for one in tallies:
            found += one.letters
            if most is not None and found > most:
                break
    return found


async def _tallies(
    store: Store, *, scope: Scope | None = None, limit: int = MAX_ROWS_READ, **filters: Any
) -> AsyncGenerator[DeadTally, None]:
    cursor: str | None = None
    while True:
        request = DeadTallyRequest(
            scope=scope or Scope.all(), review="pending", limit=limit, cursor=cursor, **filters
        )
        page = await store.dead.tally(request)
        for one in page.tallies:
            yield one
        cursor = page.cursor
        if cursor is None:
            return
