"""The kinds of events, how severe each is, and whom it concerns (S76)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["info", "warning", "error", "critical"]
Addressee: TypeAlias = Literal["operators", "creator"]


class EventKind(StrEnum):
    """What can be told. The values are stable: applications subscribe to them."""

    JOB_LIMIT_WARNING = "job_limit_warning"
    QUEUE_FULL = "queue_full"
    TENANT_MISMATCH = "tenant_mismatch"
    DEAD_LETTER = "dead_letter"
    DEAD_LETTER_REVIEWED = "dead_letter_reviewed"
    DEAD_LETTERS_EXPIRE = "dead_letters_expire"
    DLQ_ALERT = "dlq_alert"
    REPROCESS_REQUESTED = "job_dlq_reprocess_requested"
    REPROCESS_SUCCESS = "job_dlq_reprocess_success"
    JOB_STUCK = "job_stuck"
    WORKER_LOST = "worker_lost"
    BREAKER_OPENED = "breaker_opened"
    BREAKER_CLOSED = "breaker_closed"
    EVENTS_LOST = "events_lost"
    BUDGET_ALERT = "budget_alert"
    BUDGET_SPENT = "budget_spent"
    SCHEDULE_FAILED = "schedule_failed"
    SCHEDULE_MISSED = "schedule_missed"
    SCHEDULE_PAUSED = "schedule_paused"
    FINDING = "finding"
    FINDING_CRITICAL = "finding_critical"
    FINDING_ENDED = "finding_ended"


class KindOfEvent(msgspec.Struct, frozen=True):
    """How severe events of a kind are, and whether they are for whoever created the job or for operators."""

    severity: Severity
    addressee: Addressee = "operators"


KINDS: Final = {
    EventKind.JOB_LIMIT_WARNING: KindOfEvent("warning", "creator"),
    EventKind.QUEUE_FULL: KindOfEvent("error"),
    EventKind.TENANT_MISMATCH: KindOfEvent("error"),
    EventKind.DEAD_LETTER: KindOfEvent("error"),
    EventKind.DEAD_LETTER_REVIEWED: KindOfEvent("info"),
    EventKind.DEAD_LETTERS_EXPIRE: KindOfEvent("warning"),
    EventKind.DLQ_ALERT: KindOfEvent("critical"),
    EventKind.REPROCESS_REQUESTED: KindOfEvent("info"),
    EventKind.REPROCESS_SUCCESS: KindOfEvent("info", "creator"),
    EventKind.JOB_STUCK: KindOfEvent("critical"),
    EventKind.WORKER_LOST: KindOfEvent("error"),
    EventKind.BREAKER_OPENED: KindOfEvent("error"),
    EventKind.BREAKER_CLOSED: KindOfEvent("info"),
    EventKind.EVENTS_LOST: KindOfEvent("error"),
    EventKind.BUDGET_ALERT: KindOfEvent("warning"),
    EventKind.BUDGET_SPENT: KindOfEvent("critical"),
    EventKind.SCHEDULE_FAILED: KindOfEvent("error"),
    EventKind.SCHEDULE_MISSED: KindOfEvent("warning"),
    EventKind.SCHEDULE_PAUSED: KindOfEvent("error"),
    EventKind.FINDING: KindOfEvent("warning"),
    EventKind.FINDING_CRITICAL: KindOfEvent("critical"),
    EventKind.FINDING_ENDED: KindOfEvent("info"),
}

_BY_NAME: Final = {kind.value: found for kind, found in KINDS.items()}


def addressee_of(kind: str) -> Addressee:
    """Return for whom an event is; one of a kind that only a newer version knows is for operators.

    >>> addressee_of("job_limit_warning"), addressee_of("of a newer version")
    ('creator', 'operators')
    """
    found = _BY_NAME.get(kind)
    return "operators" if found is None else found.addressee


def severity_of(kind: str) -> Severity:
    """Return how severe an event is; one of a kind that only a newer version knows is a warning.

    >>> severity_of("job_stuck"), severity_of("of a newer version")
    ('critical', 'warning')
    """
    found = _BY_NAME.get(kind)
    return "warning" if found is None else found.severity
