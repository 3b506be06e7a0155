"""Say what a schedule would do: in words, and its next runs. Saves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from fairlane.app.client import Client
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.schedules.building import build_schedule
from fairlane.app.schedules.reading import moment, timing_of
from fairlane.app.schedules.views import SchedulePreview, expression_of
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.job import NewJob
from fairlane.model.schedule.errors import InvalidSchedule
from fairlane.model.schedule.problems import problems as timing_problems
from fairlane.model.schedule.restart import next_slot
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import Timing
from fairlane.model.schedule.words import describe

_NO_JOB: Final = NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0)


def runs_of(spec: ScheduleSpec, after: Instant, count: int) -> tuple[datetime, ...]:
    """Return the next slots of a schedule after an instant."""
    found: list[datetime] = []
    slot: Instant | None = after
    while slot is not None and len(found) < count:
        slot = next_slot(spec, slot)
        if slot is not None:
            found.append(to_datetime(slot))
    return tuple(found)


async def preview_of(
    client: Client, name: str, words: Mapping[str, Any], now: Instant, count: int
) -> SchedulePreview:
    """Return what a schedule would do; without a task, only what says when is looked at."""
    if words.get("task") is not None:
        spec = await build_schedule(client, name, words, now=now)
    else:
        spec = _without_task(name, words)
    return preview_spec(spec, now, count)


def preview_spec(spec: ScheduleSpec, now: Instant, count: int) -> SchedulePreview:
    """Return what a checked schedule would do."""
    timing = spec.timing
    return SchedulePreview(
        when=describe(timing),
        expression=expression_of(timing),
        timezone=timing.timezone,
        runs=runs_of(spec, now, count),
    )


def _without_task(name: str, words: Mapping[str, Any]) -> ScheduleSpec:
    problems = ProblemList(0)
    timing: Timing | None = timing_of(problems, words)
    if timing is not None:
        problems.take(timing_problems(timing))
    zone = str(words.get("timezone") or "UTC")
    starts, ends = (moment(problems, word, words.get(word), zone) for word in ("starts", "ends"))
    if timing is None or problems.found:
        raise InvalidSchedule(problems.found)
    return ScheduleSpec(name=name, job=_NO_JOB, timing=timing, starts=starts, ends=ends)
