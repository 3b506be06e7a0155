"""Say in words what an event's body has in machine units: amounts in millionths, instants in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlane.model.instants import LAST_INSTANT, to_datetime
from fairlane.model.journal.kinds import EventKind
from fairlane.model.policy.amounts import to_decimal


def event_text(kind: str, body: Mapping[str, Any]) -> str:
    """Return a sentence, or nothing for kinds whose body can be read as it is.

    A body of a newer version, which has other values, has no sentence either.

    >>> event_text("breaker_opened", {"breaker": "mail", "until": 1_800_000_000_000_000, "reason": ""})
    'Breaker mail is open until 2027-01-15 08:00 UTC.'
    >>> event_text("worker_lost", {"queues": ["bulk"]})
    ''
    """
    write = _TEXTS.get(kind)
    try:
        return "" if write is None else write(body)
    except (KeyError, TypeError, ValueError, OverflowError):
        return ""


def _budget_alert(body: Mapping[str, Any]) -> str:
    return (
        f"Budget {body['budget']}: {_spent(body)} are spent, {body['share']} % is reached; "
        f"the period ends {_moment(body['period_end'])}."
    )


def _budget_spent(body: Mapping[str, Any]) -> str:
    return (
        f"Budget {body['budget']} is spent: {_spent(body)}; no job has room until the period ends "
        f"{_moment(body['period_end'])}."
    )


def _spent(body: Mapping[str, Any]) -> str:
    return f"{to_decimal(body['spent'])} of {to_decimal(body['ceiling'])} {body['currency']}"


def _breaker_opened(body: Mapping[str, Any]) -> str:
    until = body["until"]
    end = "it is reset" if until is None or until >= LAST_INSTANT else _moment(until)
    return f"Breaker {body['breaker']} is open until {end}."


def _breaker_closed(body: Mapping[str, Any]) -> str:
    return f"Breaker {body['breaker']} is closed: everybody passes."


def _moment(instant: int) -> str:
    return f"{to_datetime(instant):%Y-%m-%d %H:%M} UTC"


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    EventKind.BUDGET_ALERT: _budget_alert,
    EventKind.BUDGET_SPENT: _budget_spent,
    EventKind.BREAKER_OPENED: _breaker_opened,
    EventKind.BREAKER_CLOSED: _breaker_closed,
}
