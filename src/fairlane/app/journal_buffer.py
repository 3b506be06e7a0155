"""Hold entries of the journals that no store verb appends, until somebody sends them (S60, S76).

These are refusals of a foreign tenant, each use of `as_system`, and enqueues that a full queue has refused.
They are folded: the first of a kind, tenant and subject is sent at once, the rest of 10 s as one with a
count. It is as well as can be: a crash loses what was not sent, and no caller ever gets an error because of
it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TypeAlias

from fairlane.model.errors import StoreError
from fairlane.model.instants import LAST_INSTANT, Micros
from fairlane.model.journal.entries import JournalName, NewEntry, PendingEntry
from fairlane.model.journal.folding import Fold, FoldKey, fold
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import AppendRequest

MOST_HELD: Final = 200
"""How many kinds and subjects are told apart, and how many entries wait to be sent; more are dropped."""

_LOCK_FOR: Final = 0.1
"""Seconds. A forked child may inherit the lock held by a thread that it does not have."""

_Waiting: TypeAlias = tuple[JournalName, NewEntry]


class JournalBuffer:
    """The entries of one client. Thread-safe; `elapsed` is the client's monotonic clock."""

    def __init__(self, elapsed: Callable[[], Micros]) -> None:
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._folds: dict[JournalName, dict[FoldKey, Fold]] = {"audit": {}, "events": {}}
        self._ready: list[_Waiting] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be sent, now or when its fold has ended."""
        return not self._ready and not any(
            one.count for folds in self._folds.values() for one in list(folds.values())
        )

    @property
    def is_due(self) -> bool:
        """Whether `send` would send something now."""
        if self._ready or not any(self._folds.values()):  # nearly always: nothing was ever refused
            return bool(self._ready)
        now = self._elapsed()
        return any(
            one.count and one.until <= now for folds in self._folds.values() for one in list(folds.values())
        )

    def note(self, journal: JournalName, entry: NewEntry) -> None:
        """Hold an entry, or count it with the others of its kind, tenant and subject."""
        if not self._lock.acquire(timeout=_LOCK_FOR):
            return
        try:
            key = (entry.kind, entry.tenant, entry.subject)
            if key in self._folds[journal] or len(self._folds[journal]) < MOST_HELD:
                self._fold(journal, [PendingEntry(0, self._elapsed(), entry)], self._elapsed())
        finally:
            self._lock.release()

    async def send(self, store: Store, *, is_last: bool = False) -> None:
        """Append what is due to the journals; with `is_last`, everything. What fails is sent next time."""
        ready = self._take(LAST_INSTANT if is_last else self._elapsed())
        try:
            for journal in ("audit", "events"):
                entries = tuple(entry for name, entry in ready if name == journal)
                if entries:
                    request = AppendRequest(scope=Scope.all(), journal=journal, entries=entries)
                    with suppress(StoreError):
                        await store.journal.append(request)
                        ready = [one for one in ready if one[0] != journal]
        finally:
            self._put_back(ready)

    def _take(self, now: Micros) -> list[_Waiting]:
        if not self._lock.acquire(timeout=_LOCK_FOR):
            return []
        try:
            for journal in self._folds:
                self._fold(journal, [], now)
            ready, self._ready = self._ready, []
            return ready
        finally:
            self._lock.release()

    def _put_back(self, unsent: list[_Waiting]) -> None:
        if unsent and self._lock.acquire(timeout=_LOCK_FOR):
            self._ready = (unsent + self._ready)[:MOST_HELD]
            self._lock.release()

    def _fold(self, journal: JournalName, new: Iterable[PendingEntry], now: Micros) -> None:
        folded = fold(new, self._folds[journal], now)
        self._folds[journal] = dict(folded.folds)
        self._ready = (self._ready + [(journal, entry) for _, entry in folded.published])[:MOST_HELD]
