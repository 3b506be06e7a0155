"""Lay out the life of a job as a line: its attempts to scale, and the waits between them. Asks no clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from fairlane.model.lifecycle.states import State
from fairlane.web.api.job_replies import AttemptReply, JobReply

_LEFT: Final = 1.0
_WIDTH: Final = 98.0
_THINNEST: Final = 0.5


class TimelineBar(msgspec.Struct, frozen=True):
    """An attempt: where it begins and how wide it is, in percent, and how it ended."""

    number: int
    outcome: str
    x: float
    width: float

    @property
    def middle(self) -> float:
        """Where its number stands."""
        return self.x + self.width / 2


class TimelineMark(msgspec.Struct, frozen=True):
    """A moment: where it is, in percent, and which."""

    x: float
    at: datetime
    what: str


class Timeline(msgspec.Struct, frozen=True):
    """The whole line. `ran` and `waited` are seconds of ended attempts and of the time between them."""

    bars: Sequence[TimelineBar]
    marks: Sequence[TimelineMark]
    ran: float
    waited: float


def timeline(job: JobReply) -> Timeline | None:
    """Return the line of a job from its enqueue to the last thing known; None if that is one moment."""
    begin = job.enqueued_at
    moments = [one.ended_at or one.started_at for one in job.attempts]
    last = [job.settled_at] if job.settled_at else []
    due = [job.run_at] if job.state is State.DELAYED else []
    end = max([begin, *moments, *last, *due])
    whole = (end - begin).total_seconds()
    if whole <= 0:
        return None

    def x(moment: datetime) -> float:
        share = max(0.0, (moment - begin).total_seconds() / whole)
        return round(_LEFT + _WIDTH * share, 2)

    bars = [_bar(one, x(one.started_at), x(one.ended_at or end)) for one in job.attempts]
    marks = [TimelineMark(x(begin), begin, "enqueued")]
    if job.settled_at is not None:
        marks.append(TimelineMark(x(job.settled_at), job.settled_at, job.state.value))
    elif job.state is State.DELAYED:
        marks.append(TimelineMark(x(job.run_at), job.run_at, "due"))
    ended = [one for one in job.attempts if one.ended_at is not None]
    ran = sum((one.ended_at - one.started_at).total_seconds() for one in ended if one.ended_at)
    until = max([begin, *moments, *last])
    return Timeline(bars, marks, ran, max(0.0, (until - begin).total_seconds() - ran))


def _bar(attempt: AttemptReply, left: float, right: float) -> TimelineBar:
    return TimelineBar(attempt.number, attempt.outcome, left, max(_THINNEST, round(right - left, 2)))
