"""Give committed events their numbers, and fold storms (S76). Enqueues nothing."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.duties.journals.journal_end import JournalLook
from fairlane.duties.journals.pending_letters import PendingLetters
from fairlane.model.journal.memory import EventMemory, encode_memory
from fairlane.model.journal.publishing import publish
from fairlane.model.journal.subscribing import Subscription, with_subscribers
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import NumberRequest


class NumberEvents:
    """Numbers what waits, together with what the duty itself has to tell."""

    def __init__(self, letters: PendingLetters, most: int) -> None:
        self._letters = letters
        self._most = most

    async def __call__(
        self, store: Store, look: JournalLook[EventMemory], published: Iterable[Subscription]
    ) -> bool:
        """Take one pass. False: another leader was faster, and nothing has changed.

        A new subscriber begins with the first event of this pass.
        """
        news = await self._letters.news(store, look)
        last = look.end.last
        memory = with_subscribers(news.memory, published, last=last, now=look.now)
        done = publish(look.entries, news.entries, memory, last=last, now=look.now, most=self._most)
        if not look.entries and not done.entries and done.memory == look.memory:
            return True
        request = NumberRequest(
            scope=Scope.all(),
            journal="events",
            revision=look.end.revision,
            taken=tuple(one.place for one in look.entries),
            entries=done.entries,
            memory=encode_memory(done.memory),
        )
        return await store.journal.number(request)
