"""Schedules: what runs next, whether every past run happened, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from fairlane.app.ambient import scope_for
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.schedules.clock_changes import ClockChange, clock_change
from fairlane.app.schedules.reading import timing_of
from fairlane.app.schedules.schedule_json import shown_schedule, shown_slot
from fairlane.app.schedules.views import SchedulePreview, ScheduleView, SlotView
from fairlane.model.errors import Problem
from fairlane.model.instants import to_datetime, to_instant
from fairlane.model.job import JobRecord
from fairlane.model.schedule.errors import InvalidSchedule
from fairlane.model.schedule.slots import slots_between
from fairlane.model.schedule.timing import Timing
from fairlane.runtime.loops import read_together
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.contract.request import Request
from fairlane.web.api.schedules import ScheduleTimes, words_in
from fairlane.web.call import WebCall
from fairlane.web.html.slot_marks import (
    MOST_MARKS,
    MOST_RUNS,
    ComingRuns,
    SlotMark,
    coming_runs,
    hours_of,
    slot_marks,
)
from fairlane.web.page import PageGroup, PageView

SCHEDULES: Final = PageGroup("Schedules", section="work", icon="schedule", key="c")

_PAGE: Final = 20
_HISTORY: Final = 50
_RUNS: Final = 8
_DRAWN: Final = 10
_COMING: Final = timedelta(hours=12)


class ListQuery(ScheduleTimes, frozen=True, kw_only=True):
    """What the URL of the list says: where the page begins, and an expression to try out."""

    cursor: str | None = None


class ShowQuery(ScheduleTimes, frozen=True, kw_only=True):
    """What the URL of one schedule says: where its history begins."""

    cursor: str | None = None


class ListedSchedule(msgspec.Struct, frozen=True):
    """A schedule in the list, with its last slots."""

    view: ScheduleView
    marks: Sequence[SlotMark]


@SCHEDULES.page("/schedules", "schedules.list")
async def list_schedules(call: WebCall, query: ListQuery) -> PageView:
    """Show the schedules, next first, with their last slots, the next twelve hours and changes of clocks."""
    now = await _now(call)
    page = await call.app.schedules.alist(limit=_PAGE, cursor=query.cursor or None)
    views = sorted(map(shown_schedule, page.items), key=_urgency)
    rows = await _rows(call, views)
    words = words_in(query)
    words.pop("cursor", None)
    seen, problems = await _tried(call, {word: value for word, value in words.items() if value})
    values: dict[str, Any] = {
        "rows": rows,
        "more": page.cursor,
        "is_first": query.cursor is None,
        "now": now,
        "coming": _coming(views, now),
        "hours": hours_of(now),
        "changes": _changes(views, now),
        "query": query,
        "tried": {word: value for word, value in words.items() if value},
        "seen": seen,
        "problems": problems,
        "sees_all": call.principal.tenant is None,
    }
    return PageView("schedules/list.html", values)


@SCHEDULES.page("/schedules/{schedule}", "schedules.show")
async def show_schedule(call: WebCall, schedule: str, query: ShowQuery) -> PageView:
    """Show one schedule: everything that is said of it, its next runs, and what became of its slots."""
    now = await _now(call)
    view = shown_schedule(await call.app.schedules.aget(schedule))
    runs = await call.app.schedules.anext(schedule, _RUNS)
    page = await call.app.schedules.ahistory(schedule, limit=_HISTORY, cursor=query.cursor or None)
    slots = tuple(map(shown_slot, page.items))
    jobs = await _jobs(call, slots)
    timing = _timing(view)
    values: dict[str, Any] = {
        "one": view,
        "runs": [(run, run.astimezone(ZoneInfo(view.timezone))) for run in runs],
        "slots": slots,
        "jobs": jobs,
        "marks_shown": slot_marks(slots, jobs),
        "more": page.cursor,
        "is_first": query.cursor is None,
        "change": None if timing is None else clock_change(timing, to_instant(now)),
        "now": now,
        "sees_all": call.principal.tenant is None,
    }
    return PageView("schedules/schedule.html", values)


async def failing_schedules(call: WebCall) -> Sequence[ScheduleView]:
    """Return the schedules whose slots fail."""
    return tuple(map(shown_schedule, await call.app.schedules.afailing()))


async def _now(call: WebCall) -> datetime:
    status = await call.app.client.store.registry.status(Request(scope=scope_for(None)))
    return to_datetime(status.now)


def _urgency(view: ScheduleView) -> tuple[bool, bool, datetime, str]:
    """Put those that fail first, then the next ones, then those that do not run."""
    last = datetime.max.replace(tzinfo=UTC)
    return (not view.problem, view.next_at is None, view.next_at or last, view.name)


async def _rows(call: WebCall, views: Sequence[ScheduleView]) -> Sequence[ListedSchedule]:
    """Read the last slots of all schedules at the same time, and their jobs in one call."""
    pages = await read_together(*(call.app.schedules.ahistory(one.name, limit=MOST_MARKS) for one in views))
    jobs = await _jobs(call, [slot for page in pages for slot in page.items])
    return [
        ListedSchedule(view, slot_marks(list(map(shown_slot, page.items)), jobs))
        for view, page in zip(views, pages, strict=True)
    ]


async def _jobs(call: WebCall, slots: Sequence[SlotView]) -> Mapping[Any, JobRecord]:
    ids = tuple(slot.job for slot in slots if slot.job is not None)
    return await call.app.client.store.jobs.get(GetRequest(scope=scope_for(None), ids=ids)) if ids else {}


def _timing(view: ScheduleView) -> Timing | None:
    words = (
        "cron",
        "every",
        "at",
        "timezone",
        "between",
        "weekdays",
        "holidays",
        "days",
        "missing",
        "repeated",
    )
    given = {word: getattr(view, word) for word in words if getattr(view, word)}
    if view.every is not None and view.starts is not None:
        given["starts"] = view.starts
    return timing_of(ProblemList(0), given)


def _coming(views: Sequence[ScheduleView], now: datetime) -> Sequence[ComingRuns]:
    """Return the runs of the next twelve hours of those that come first."""
    found: list[ComingRuns] = []
    start, end = to_instant(now), to_instant(now + _COMING)
    for view in views:
        timing = _timing(view) if view.is_active and view.next_at is not None else None
        if timing is None or len(found) == _DRAWN:
            continue
        until = end if view.ends is None else min(end, to_instant(view.ends))
        first = start if view.starts is None else max(start, to_instant(view.starts) - 1)
        runs = [to_datetime(slot) for slot in slots_between(timing, first, until, MOST_RUNS + 1)]
        if runs:
            found.append(coming_runs(view.name, runs, now))
    return found


def _changes(views: Sequence[ScheduleView], now: datetime) -> Sequence[tuple[ScheduleView, ClockChange]]:
    """Return what the next changes of clocks mean for those that follow one, the next change first."""
    found: list[tuple[ScheduleView, ClockChange]] = []
    for view in views:
        timing = _timing(view) if view.is_active else None
        change = None if timing is None else clock_change(timing, to_instant(now))
        if change is not None:
            found.append((view, change))
    return sorted(found, key=lambda one: (one[1].at, one[1].is_same, one[0].name))


async def _tried(call: WebCall, words: Mapping[str, Any]) -> tuple[SchedulePreview | None, Sequence[Problem]]:
    """Return what an expression would do, or what is wrong with it."""
    if not {"cron", "every", "at"} & set(words):
        return None, ()
    try:
        return await call.app.schedules.apreview(count=_RUNS, **words), ()
    except InvalidSchedule as error:
        return None, error.problems
