"""Enqueue one job for each event and subscriber, then move the subscriber's cursor (S77).

The jobs come first, under a key made of task and number: whoever does it again after a crash makes no second
job. The cursor moves only if no other leader has moved it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from logging import getLogger
from random import SystemRandom
from typing import Final

import msgspec

from fairlane.app.task.subscriber import event_job
from fairlane.duties.journals.journal_end import JournalLook
from fairlane.duties.journals.subscriptions import SubscribedTask
from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.journal.entries import Entry
from fairlane.model.journal.memory import EventMemory, Subscriber, encode_memory
from fairlane.model.journal.subscribing import is_for
from fairlane.model.lifecycle.admission import Refusal
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.journal import EntriesRequest, NumberRequest
from fairlane.store.contract.registry import TaskRecord

BATCH: Final = 100
"""How many events a subscriber gets in one pass."""

REFUSED_FOR: Final[Micros] = 10 * SECOND
"""The pause after a subscriber's queue has refused its job."""

_log: Final = getLogger("fairlane.duties")


class Deliver:
    """Brings every subscriber up to date. Says once if a subscriber's queue refuses its jobs."""

    def __init__(self) -> None:
        self._ids = IdMaker(SystemRandom().getrandbits)
        self._refused: dict[str, Instant] = {}

    def is_behind(self, look: JournalLook[EventMemory]) -> bool:
        """Whether a subscriber has not got all events and its queue may take some now."""
        return any(
            one.cursor < look.end.last and not self._rests(task, look.now)
            for task, one in look.memory.subscribers.items()
        )

    async def __call__(
        self, store: Store, look: JournalLook[EventMemory], tasks: Sequence[SubscribedTask]
    ) -> bool:
        """Take one pass; return whether there is more to do at once."""
        known = look.memory.subscribers
        moved: dict[str, Subscriber] = {}
        for task in tasks:
            subscriber = known.get(task.name)
            if subscriber is None or subscriber.cursor >= look.end.last or self._rests(task.name, look.now):
                continue
            cursor = await self._bring(store, task, tasks, subscriber.cursor, look.now)
            if cursor > subscriber.cursor:
                moved[task.name] = msgspec.structs.replace(subscriber, cursor=cursor)
        if not moved:
            return False
        memory = msgspec.structs.replace(look.memory, subscribers={**known, **moved})
        request = NumberRequest(
            scope=Scope.all(),
            journal="events",
            revision=look.end.revision,
            taken=(),
            entries=(),
            memory=encode_memory(memory),
        )
        is_mine = await store.journal.number(request)
        return is_mine and any(one.cursor < look.end.last for one in moved.values())

    async def _bring(
        self, store: Store, task: SubscribedTask, tasks: Sequence[SubscribedTask], cursor: int, now: Instant
    ) -> int:
        """Enqueue a subscriber's next jobs; return the number up to which it has got every event."""
        kinds = task.subscription.kinds
        request = EntriesRequest(scope=Scope.all(), journal="events", after=cursor, kinds=kinds, limit=BATCH)
        page = await store.journal.entries(request)
        subscribing = [one.subscription for one in tasks]
        events = [one for one in page.entries if is_for(one.entry, task.subscription, subscribing)]
        if events:
            refusal = await self._enqueue(store, task.record, events, now)
            if refusal is not None and len(events) > 1:  # the queue may have room for one
                events = events[:1]
                page = msgspec.structs.replace(page, after=events[0].number)
                refusal = await self._enqueue(store, task.record, events, now)
            if refusal is not None:
                self._note_refusal(task.name, refusal, now)
                return events[0].number - 1
        self._refused.pop(task.name, None)
        return page.after or cursor

    async def _enqueue(
        self, store: Store, task: TaskRecord, events: Sequence[Entry], now: Instant
    ) -> Refusal | None:
        ids = self._ids.many(now, len(events))
        jobs = tuple(event_job(id, event, task) for id, event in zip(ids, events, strict=True))
        reply = await store.jobs.enqueue(EnqueueRequest(scope=Scope.all(), jobs=jobs))
        return reply.refused[0] if reply.refused else None

    # ── refusals ──────────────────────────────────────────────────────────────

    def _rests(self, task: str, now: Instant) -> bool:
        refused_at = self._refused.get(task)
        return refused_at is not None and now - refused_at < REFUSED_FOR

    def _note_refusal(self, task: str, refusal: Refusal, now: Instant) -> None:
        if task not in self._refused:
            text = "events for task %s wait, since queue %s refuses its jobs: %s"
            extra = {"event": "event_refused", "task": task, "queue": refusal.queue}
            _log.warning(text, task, refusal.queue, refusal.detail or refusal.kind.value, extra=extra)
        self._refused[task] = now
