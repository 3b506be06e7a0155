"""Number events, enqueue the jobs of subscribers, and remove old events: one duty, so that idle costs little.

Every step begins with the journal as it is and ends with a compare-and-set: of two leaders at once one does
it, and a leader that is killed between two steps leaves the rest to the next.
"""

from __future__ import annotations

from typing import Final

from fairlane.app.settings import Settings
from fairlane.duties.journals.deliver import Deliver
from fairlane.duties.journals.journal_end import JournalReader
from fairlane.duties.journals.number_events import NumberEvents
from fairlane.duties.journals.pending_letters import PendingLetters
from fairlane.duties.journals.subscriptions import published_tasks
from fairlane.duties.journals.trim import is_full, trim_events
from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import MINUTE, SECOND, Instant, Micros
from fairlane.model.journal.memory import EventMemory
from fairlane.store.contract import Store
from fairlane.store.contract.journal import MAX_ENTRIES

EVERY: Final[Micros] = SECOND
QUIET: Final[Micros] = 4 * SECOND
"""The pause while nothing happens: the first event is told within it. Shorter ones cost queries at rest."""

TRIM_EVERY: Final[Micros] = MINUTE


class TellEvents:
    """The duty of the events."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.events
        self._reader = JournalReader("events", EventMemory)
        self._letters = PendingLetters(settings.dead_letters.alert_above, settings.retention)
        self._number = NumberEvents(self._letters, settings.events.most)
        self._deliver = Deliver()
        self._trimmed_at: Instant = 0

    async def __call__(self, store: Store) -> Micros:
        """Take one pass; return the pause before the next, zero if there was more."""
        look = await self._reader.look(store, MAX_ENTRIES)
        if look is None:
            return MINUTE
        if is_full(look, self._settings) or look.now - self._trimmed_at >= TRIM_EVERY:
            if await trim_events(store, look, self._settings):
                return 0  # the journal is another one now
            self._trimmed_at = look.now
        is_busy = bool(look.entries or look.memory.folds or look.memory.lost)
        if not (is_busy or self._letters.is_due(look) or self._deliver.is_behind(look)):
            return QUIET
        tasks = await published_tasks(store)
        if not await self._number(store, look, [one.subscription for one in tasks]):
            return EVERY  # another leader numbers them
        has_more = len(look.entries) == MAX_ENTRIES
        numbered = await self._reader.look(store, 0)
        if numbered is not None and self._deliver.is_behind(numbered):
            has_more |= await self._deliver(store, numbered, tasks)
        return Pause(0 if has_more else EVERY, counted(len(look.entries), "numbered"))
