"""Render dead letters: as a table row, in full, as a group, as the result of a bulk action."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from fairlane import BreakerView, BulkResult, DeadGroup, DeadLetterView, DeadStatistics
from fairlane.app.dead.letter_json import group_json, review_json
from fairlane.app.redaction import REDACTED, Redactor
from fairlane.cli.render.escaping import cut
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.times import timestamp, timestamp_and_age
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, to_instant

_ERROR_CHARS: Final = 100
_NAMES: Final = 10
"""How many names a line of the statistics has."""


def letters_view(now: Instant) -> TableView[DeadLetterView]:
    """Return the table of dead letters, with times relative to `now`."""
    return TableView(
        {
            "ID": lambda one: str(one.id),
            "DIED": lambda one: ago(to_instant(one.died_at), now),
            "REVIEW": _review,
            "TENANT": lambda one: one.job.tenant,
            "TASK": lambda one: one.job.task,
            "ERROR": lambda one: cut(error_text(one, REDACTED), _ERROR_CHARS),
        },
        review_json,
        stacks=True,
    )


def _review(view: DeadLetterView) -> str:
    if view.review == "pending" and view.acknowledged_by is not None:
        return "acknowledged"
    return view.review


def error_text(view: DeadLetterView, redactor: Redactor) -> str:
    """Return the error of a letter on one line; why its job died, if it never failed."""
    if not view.error_type:
        return redactor.text(view.job.because) or ""
    first_line = (redactor.text(view.message) or "").partition("\n")[0]
    return f"{view.error_type}: {first_line}" if first_line else view.error_type


def review_fields(view: DeadLetterView, redactor: Redactor, now: Instant) -> dict[str, Cell]:
    """Return what people decided about a dead letter, for people."""
    notes = [
        f"{one.who}, {ago(to_instant(one.at), now)}, {one.action}: {redactor.text(one.text)}".rstrip(": ")
        for one in view.notes
    ]
    new = None if view.new_job is None else f"{view.new_job}, {_state_of_new_job(view)}"
    return {
        "review": view.review,
        "died": timestamp_and_age(to_instant(view.died_at), now),
        "error": error_text(view, redactor),
        "class": None if view.error_class is None else view.error_class.value,
        "fingerprint": view.fingerprint,
        "acknowledged": _mark(view.acknowledged_by, view.acknowledged_at, now),
        "decided": _mark(view.decided_by, view.decided_at, now),
        "new job": new,
        "notes": "\n".join(notes),
    }


def _state_of_new_job(view: DeadLetterView) -> str:
    if view.is_new_job_gone:
        return "which was removed before anybody saw how it ended"
    return "which has not ended" if view.new_job_state is None else view.new_job_state.value


def _mark(who: str | None, at: datetime | None, now: Instant) -> str | None:
    return None if who is None or at is None else f"by {who} {ago(to_instant(at), now)}"


def groups_view(now: Instant) -> TableView[DeadGroup]:
    """Return the table of groups, with times relative to `now`."""
    return TableView(
        {
            "FINGERPRINT": lambda one: one.fingerprint,
            "LETTERS": lambda one: one.letters,
            "TENANTS": lambda one: len(one.tenants),
            "FIRST": lambda one: ago(to_instant(one.first_at), now),
            "LAST": lambda one: ago(to_instant(one.last_at), now),
            "TASK": lambda one: one.task,
            "BREAKER": lambda one: None if one.breaker is None else one.breaker.state,
            "ERROR": lambda one: cut(_group_error(one), _ERROR_CHARS),
        },
        group_json,
        stacks=True,
    )


def breaker_warning(groups: Sequence[DeadGroup]) -> str | None:
    """Return which breakers are not closed, and how many letters are about their tasks; None without any."""
    letters_of: Counter[tuple[str, str, str]] = Counter()
    for group in groups:
        one = group.breaker
        if one is not None:
            of = "" if one.tenant is None else f" of {one.tenant}"
            letters_of[f"{one.name}{of}", _until(one), group.task] += group.letters
    if not letters_of:
        return None
    return "\n".join(
        f"Breaker {name} {how}: {letters(number)} of {task} would wait, or fail again, if run again now."
        for (name, how, task), number in letters_of.items()
    )


def _until(one: BreakerView) -> str:
    if one.state != "open":
        return "is recovering"
    return "is open until " + ("it is reset" if one.until is None else timestamp(to_instant(one.until)))


def _group_error(group: DeadGroup) -> str:
    first_line = group.message.partition("\n")[0]
    return f"{group.error_type}: {first_line}" if first_line else group.error_type


def statistics_fields(statistics: DeadStatistics) -> dict[str, Cell]:
    """Return the statistics of dead letters, for people."""
    return {
        "dead letters": statistics.letters,
        "reviews": _numbers(statistics.by_review),
        "error classes": _numbers(statistics.by_error_class),
        "queues": _numbers(statistics.by_queue),
        "tasks": _numbers(statistics.by_task),
        "tenants": _numbers(statistics.by_tenant),
    }


def _numbers(counts: Mapping[str, int]) -> str:
    shown = [f"{number:,} {name}" for name, number in list(counts.items())[:_NAMES]]
    more = len(counts) - _NAMES
    return "\n".join([*shown, *([f"and {more:,} more"] if more > 0 else [])])


def result_text(result: BulkResult, done: str) -> str:
    """Return the result of a bulk action in words: what was done, what was left and why.

    >>> nothing = BulkResult(matches=3, done=3, refused={}, examples=(), left=0)
    >>> result_text(nothing, "resolved")
    '3 dead letters resolved.'
    """
    lines = [f"{letters(result.done)} {done}."]
    if result.refused:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in sorted(result.refused.items()))
        lines.append(f"{letters(sum(result.refused.values()))} left as they are: {reasons}.")
        lines += [f"  {one.id}: {REDACTED.text(one.text)}" for one in result.examples]
    if result.left:
        lines.append(f"{letters(result.left)} not looked at.")
    return "\n".join(lines)


def letters(number: int) -> str:
    """Return a number of dead letters.

    >>> letters(1), letters(2_000)
    ('1 dead letter', '2,000 dead letters')
    """
    return f"{number:,} dead letter{'' if number == 1 else 's'}"
