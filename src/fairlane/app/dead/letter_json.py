"""A dead letter as JSON for programs; secrets are redacted unless they are to be revealed (S6)."""

from __future__ import annotations

from typing import Any

from fairlane.app.admin.breakers import BreakerView
from fairlane.app.dead.views import BulkResult, DeadGroup, DeadLetterView, DeadStatistics
from fairlane.app.job_json import full_json
from fairlane.app.redaction import REDACTED, Redactor
from fairlane.model.instants import iso
from fairlane.store.contract.dead import DeadLetter


def review_json(view: DeadLetterView, redactor: Redactor = REDACTED) -> dict[str, Any]:
    """Return what people decided about a dead letter, and its error, without the job itself."""
    return {
        "id": str(view.id),
        "tenant": view.job.tenant,
        "queue": view.job.queue,
        "task": view.job.task,
        "died_at": iso(view.died_at),
        "error_class": None if view.error_class is None else view.error_class.value,
        "error_type": view.error_type,
        "message": redactor.text(view.message),
        "fingerprint": view.fingerprint,
        "review": view.review,
        "acknowledged_by": view.acknowledged_by,
        "acknowledged_at": iso(view.acknowledged_at),
        "decided_by": view.decided_by,
        "decided_at": iso(view.decided_at),
        "notes": [
            {"who": one.who, "at": iso(one.at), "action": one.action, "text": redactor.text(one.text)}
            for one in view.notes
        ],
        "new_job": None if view.new_job is None else str(view.new_job),
        "new_job_state": None if view.new_job_state is None else view.new_job_state.value,
        "is_new_job_gone": view.is_new_job_gone,
    }


def letter_json(letter: DeadLetter, view: DeadLetterView, redactor: Redactor) -> dict[str, Any]:
    """Return everything about a dead letter, with its job."""
    return {**review_json(view, redactor), "job": full_json(letter.job, view.job, redactor)}


def group_json(group: DeadGroup) -> dict[str, Any]:
    """Return a group of dead letters."""
    return {
        "fingerprint": group.fingerprint,
        "task": group.task,
        "error_class": None if group.error_class is None else group.error_class.value,
        "error_type": group.error_type,
        "message": group.message,
        "letters": group.letters,
        "tenants": list(group.tenants),
        "first_at": iso(group.first_at),
        "last_at": iso(group.last_at),
        "sample": str(group.sample),
        "breaker": None if group.breaker is None else _breaker_json(group.breaker),
    }


def _breaker_json(one: BreakerView) -> dict[str, Any]:
    return {"name": one.name, "tenant": one.tenant, "state": one.state, "until": iso(one.until)}


def statistics_json(statistics: DeadStatistics) -> dict[str, Any]:
    """Return the statistics of dead letters."""
    return {
        "letters": statistics.letters,
        "queues": dict(statistics.by_queue),
        "tasks": dict(statistics.by_task),
        "tenants": dict(statistics.by_tenant),
        "error_classes": dict(statistics.by_error_class),
        "reviews": dict(statistics.by_review),
    }


def result_json(result: BulkResult) -> dict[str, Any]:
    """Return what became of a bulk action."""
    return {
        "matches": result.matches,
        "done": result.done,
        "refused": dict(result.refused),
        "examples": [{"id": str(one.id), "reason": one.reason, "text": one.text} for one in result.examples],
        "left": result.left,
    }
