"""What events say for people: amounts and instants in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane.model.instants import DAY, LAST_INSTANT
from fairlane.model.journal.event_text import event_text
from fairlane.model.journal.facts import breaker_closed, breaker_opened
from fairlane.model.policy.budget import Account, BudgetRules, alert

START = 1_800_000_000_000_000
RULES = BudgetRules(500_000_000, "USD", alert_at=(80, 100))
ACCOUNT = Account(START, START + 16 * DAY, spent=412_500_000)


def body_of(entry: Any) -> dict[str, Any]:
    """Return what an event that Fairlane itself makes has in its body."""
    body: dict[str, Any] = msgspec.json.decode(entry.body)
    return body


def test_a_budget_says_what_is_spent_of_what_and_until_when() -> None:
    """No millionths and no microseconds."""
    assert event_text("budget_alert", body_of(alert("ai", "", RULES, ACCOUNT, 80))) == (
        "Budget ai: 412.50 of 500.00 USD are spent, 80 % is reached; the period ends 2027-01-31 08:00 UTC."
    )
    assert event_text("budget_spent", body_of(alert("ai", "", RULES, ACCOUNT, 100))) == (
        "Budget ai is spent: 412.50 of 500.00 USD; no job has room until the period ends "
        "2027-01-31 08:00 UTC."
    )


def test_a_breaker_says_until_when_it_is_open() -> None:
    """One that an operator has opened without an end, until it is reset."""
    for until, said in ((START, "2027-01-15 08:00 UTC"), (LAST_INSTANT, "it is reset")):
        body = body_of(breaker_opened("mail", "", until, ""))
        assert event_text("breaker_opened", body) == f"Breaker mail is open until {said}."
    body = body_of(breaker_closed("mail", "acme"))
    assert event_text("breaker_closed", body) == "Breaker mail is closed: everybody passes."


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("dead_letter", {"queue": "mail"}),
        ("of_a_newer_version", {}),
        ("budget_alert", {}),
        ("budget_alert", body_of(alert("ai", "", RULES, ACCOUNT, 80)) | {"spent": "much"}),
        ("breaker_opened", {"breaker": "mail", "until": "soon"}),
    ],
)
def test_a_body_that_needs_no_words_or_is_not_understood_has_none(kind: str, body: dict[str, Any]) -> None:
    """Then its names and values are shown as they are."""
    assert event_text(kind, body) == ""
