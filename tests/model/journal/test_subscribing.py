"""Who gets which event (S77)."""

from __future__ import annotations

import pytest

from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.memory import EventMemory, Subscriber
from fairlane.model.journal.subscribing import DROPPED_AFTER, Subscription, is_for, with_subscribers

NOW = 10 * DROPPED_AFTER


def task(name: str, *kinds: str, seen_at: int = NOW) -> Subscription:
    """Return a published task."""
    return Subscription(name, frozenset(kinds), seen_at)


def memory_of(**subscribers: Subscriber) -> EventMemory:
    """Return a memory with these subscribers."""
    return EventMemory(subscribers=subscribers)


def test_a_new_subscriber_begins_with_the_next_event() -> None:
    """What was before it is not its concern."""
    found = with_subscribers(EventMemory(), [task("mail", "dead_letter"), task("work")], last=7, now=NOW)
    assert found.subscribers == {"mail": Subscriber(7, NOW)}


def test_a_subscriber_keeps_its_cursor() -> None:
    """And what is known of when it was published last is brought up to date."""
    known = memory_of(mail=Subscriber(3, NOW - 5))
    found = with_subscribers(known, [task("mail", "dead_letter")], last=7, now=NOW)
    assert found.subscribers == {"mail": Subscriber(3, NOW)}


def test_a_task_that_no_longer_subscribes_is_dropped_at_once() -> None:
    """Its events would wait for nobody."""
    known = memory_of(mail=Subscriber(3, NOW))
    assert with_subscribers(known, [task("mail")], last=7, now=NOW).subscribers == {}


@pytest.mark.parametrize(("age", "is_kept"), [(DROPPED_AFTER - 1, True), (DROPPED_AFTER, False)])
def test_a_subscriber_that_nobody_publishes_is_dropped_after_a_week(age: int, is_kept: bool) -> None:
    """Whether the registry still knows its task or not."""
    known = memory_of(mail=Subscriber(3, NOW - age))
    for published in ([], [task("mail", "dead_letter", seen_at=NOW - age)]):
        found = with_subscribers(known, published, last=7, now=NOW)
        assert ("mail" in found.subscribers) is is_kept


def test_an_event_is_for_those_who_subscribe_to_its_kind() -> None:
    """To one of several kinds."""
    mail, page = task("mail", "dead_letter", "job_stuck"), task("page", "dlq_alert")
    event = NewEntry(kind="job_stuck", body=b'{"task":"import"}')
    assert is_for(event, mail, [mail, page])
    assert not is_for(event, page, [mail, page])


def test_a_failing_subscriber_causes_no_job_of_a_subscriber_to_the_same_kind() -> None:
    """Neither its own nor another's, which may fail as well: two would keep one another busy for ever."""
    mail, page, log = task("mail", "dead_letter"), task("page", "dead_letter"), task("log", "dlq_alert")
    event = NewEntry(kind="dead_letter", body=b'{"task":"mail"}')
    everyone = [mail, page, log]
    assert [one.task for one in everyone if is_for(event, one, everyone)] == []


def test_of_a_failing_subscriber_to_another_kind_one_is_told() -> None:
    """Whoever looks after dead letters hears that the alerts do not get through."""
    mail, log = task("mail", "dead_letter"), task("log", "dlq_alert")
    event = NewEntry(kind="dead_letter", body=b'{"task":"log"}')
    assert is_for(event, mail, [mail, log])


def test_an_event_about_no_task_is_for_everybody() -> None:
    """A lost worker, say."""
    page = task("page", "worker_lost")
    assert is_for(NewEntry(kind="worker_lost", body=b'{"queues":[]}'), page, [page])
