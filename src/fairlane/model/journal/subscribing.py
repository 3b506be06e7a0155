"""Decide which tasks subscribe to events, and which event is for which of them (S77). Knows no store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from fairlane.model.instants import DAY, Instant, Micros
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.memory import EventMemory, Subscriber

DROPPED_AFTER: Final[Micros] = 7 * DAY
"""A subscriber whose task no worker has published for so long is dropped."""


class Subscription(msgspec.Struct, frozen=True):
    """A published task, the kinds of events it subscribes to, if any, and when a worker last published it."""

    task: str
    kinds: frozenset[str]
    seen_at: Instant


def with_subscribers(
    memory: EventMemory, published: Iterable[Subscription], *, last: int, now: Instant
) -> EventMemory:
    """Return the memory with the subscribers of now. A new one begins with the event after `last`.

    A subscriber goes if its task subscribes no longer, or was not published for `DROPPED_AFTER`.

    >>> found = Subscription("alert", frozenset({"dlq_alert"}), 5)
    >>> with_subscribers(EventMemory(), [found], last=7, now=9).subscribers
    {'alert': Subscriber(cursor=7, seen_at=5)}
    """
    subscribers = dict(memory.subscribers)
    for one in published:
        known = subscribers.pop(one.task, None)
        if one.kinds:
            cursor = last if known is None else known.cursor
            subscribers[one.task] = Subscriber(cursor, one.seen_at)
    fresh = {task: one for task, one in subscribers.items() if now - one.seen_at < DROPPED_AFTER}
    return msgspec.structs.replace(memory, subscribers=fresh)


def is_for(entry: NewEntry, subscription: Subscription, subscribing: Iterable[Subscription]) -> bool:
    """Whether an event is for a subscriber, given all subscribers.

    What happens to a job of a task that subscribes to the same kind is for none: else a subscriber that fails
    would cause its own next job, without end.

    >>> mail = Subscription("mail", frozenset({"dead_letter"}), 0)
    >>> is_for(NewEntry(kind="dead_letter", body=b'{"task":"import"}'), mail, [mail])
    True
    >>> is_for(NewEntry(kind="dead_letter", body=b'{"task":"mail"}'), mail, [mail])
    False
    """
    if entry.kind not in subscription.kinds:
        return False
    about = _task_of(entry)
    return not any(one.task == about and entry.kind in one.kinds for one in subscribing)


def _task_of(entry: NewEntry) -> Any:
    return msgspec.json.decode(entry.body, type=dict[str, Any]).get("task")
