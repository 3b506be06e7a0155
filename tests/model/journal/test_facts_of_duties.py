"""What the duties themselves tell as events (S76)."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.model.instants import DAY
from fairlane.model.journal import facts
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.kinds import severity_of


def told(entry: NewEntry) -> tuple[str, str | None, str, int, object]:
    """Return all of an entry, its body decoded."""
    return entry.kind, entry.tenant, entry.subject, entry.count, msgspec.json.decode(entry.body)


def test_the_alert_says_how_many_letters_wait_and_how_many_may() -> None:
    """It is critical, and of no tenant."""
    entry = facts.dlq_alert(51, 50)
    assert told(entry) == ("dlq_alert", None, "", 1, {"count": 51, "threshold": 50})
    assert severity_of(entry.kind) == "critical"


def test_letters_that_expire_are_counted() -> None:
    """With the time that is left to look at them."""
    entry = facts.letters_expire(7, 3 * DAY)
    body = {"count": 7, "within_seconds": 3 * 86_400}
    assert told(entry) == ("dead_letters_expire", None, "", 7, body)


def test_a_lost_worker_is_named_with_the_queues_of_its_jobs() -> None:
    """Each once."""
    entry = facts.worker_lost("w1", 3, ["mail", "bulk", "mail"])
    assert told(entry) == ("worker_lost", None, "w1", 3, {"queues": ["bulk", "mail"]})


def test_lost_events_are_counted() -> None:
    """The count is in the event as in any other, and in its body."""
    assert told(facts.events_lost(9)) == ("events_lost", None, "", 9, {"count": 9})


@pytest.mark.parametrize("tenant", ["", "acme"])
def test_a_breaker_that_opens_says_until_when_and_why(tenant: str) -> None:
    """Of all tenants, or of one, which then hears of it."""
    opened = facts.breaker_opened("mail", tenant, 7, "failures")
    assert (opened.kind, opened.tenant, opened.subject) == ("breaker_opened", tenant or None, "breaker mail")
    assert opened.body == b'{"breaker":"mail","reason":"failures","until":7}'
    closed = facts.breaker_closed("mail", tenant)
    assert (closed.kind, closed.tenant, closed.subject) == ("breaker_closed", tenant or None, "breaker mail")
