"""The last slots of a schedule as marks, and the next ones on a line. Asks no store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.app.schedules.views import SlotView
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State

MarkKind: TypeAlias = Literal["succeeded", "died", "late", "waiting", "skipped", "missed"]

LATE_AFTER: Final = timedelta(minutes=1)
"""How long after its time a slot may be taken before it counts as late."""

MOST_MARKS: Final = 30
MOST_RUNS: Final = 72
"""Runs of twelve hours that are drawn one by one; more are one line."""

_COMING: Final = timedelta(hours=12)
_WORDS: Final[Mapping[MarkKind, str]] = {
    "succeeded": "succeeded",
    "died": "died",
    "late": "late",
    "waiting": "under way",
    "skipped": "skipped",
    "missed": "missed",
}


class SlotMark(msgspec.Struct, frozen=True):
    """A slot as a mark: what became of it, its words, and the job behind it."""

    kind: MarkKind
    at: datetime
    words: str
    job: UUID | None = None


class ComingRuns(msgspec.Struct, frozen=True):
    """The runs of the next twelve hours, in percent of them. `is_dense`: too many to tell apart."""

    name: str
    places: Sequence[float]
    is_dense: bool


def slot_marks(slots: Sequence[SlotView], jobs: Mapping[UUID, JobRecord]) -> Sequence[SlotMark]:
    """Return the marks of slots, oldest first; a job that is no longer stored has done its work."""
    return [_mark(slot, jobs) for slot in reversed(slots[:MOST_MARKS])]


def _mark(slot: SlotView, jobs: Mapping[UUID, JobRecord]) -> SlotMark:
    kind, words = _kind(slot, None if slot.job is None else jobs.get(slot.job))
    return SlotMark(kind, slot.at, words, slot.job)


def _kind(slot: SlotView, job: JobRecord | None) -> tuple[MarkKind, str]:
    if slot.state in {"skipped", "missed"}:
        kind: MarkKind = "skipped" if slot.state == "skipped" else "missed"
        return kind, f"{kind}: {slot.because}" if slot.because else kind
    if slot.state == "failed":
        return "died", f"no job: {slot.because}"
    if slot.failed:
        return "died", f"{slot.failed} of its tenants got no job"
    if job is not None and job.state is State.DEAD:
        return "died", "its job died"
    if job is not None and job.state is State.CANCELLED:
        return "skipped", "its job was cancelled"
    if slot.state == "pending" or (job is not None and job.state is not State.SUCCEEDED):
        return "waiting", "taken" if job is None else f"its job is {job.state.value}"
    if slot.cause == "due" and slot.taken_at - slot.at > LATE_AFTER:
        return "late", f"taken {slot.taken_at - slot.at} late"
    return "succeeded", f"{slot.enqueued} jobs" if slot.tenant is None else "succeeded"


def marks_in_words(marks: Sequence[SlotMark]) -> str:
    """Return how many marks of each kind there are.

    >>> from datetime import UTC
    >>> mark = SlotMark("died", datetime(2026, 1, 1, tzinfo=UTC), "")
    >>> marks_in_words([mark, mark]), marks_in_words([])
    ('2 died', 'no slot yet')
    """
    counts = Counter(mark.kind for mark in marks)
    return (
        ", ".join(f"{counts[kind]} {word}" for kind, word in _WORDS.items() if counts[kind]) or "no slot yet"
    )


def coming_runs(name: str, runs: Sequence[datetime], now: datetime) -> ComingRuns:
    """Return where the next runs of a schedule lie within the next twelve hours."""
    soon = [run for run in runs if run <= now + _COMING]
    places = [round(100 * (run - now) / _COMING, 2) for run in soon[:MOST_RUNS]]
    return ComingRuns(name, places, len(soon) > MOST_RUNS)


def hours_of(now: datetime) -> Sequence[tuple[float, str]]:
    """Return the full hours that are written below the line, every third, with their places in percent."""
    first = now.replace(minute=0, second=0, microsecond=0)
    hours = [first + timedelta(hours=number) for number in range(1, 13)]
    return [(round(100 * (hour - now) / _COMING, 2), f"{hour:%H:%M}") for hour in hours if hour.hour % 3 == 0]
