"""`/schedules`: what makes jobs by itself, when, and what became of each slot.

A caller of one tenant sees that tenant's own schedules; those for many tenants are nobody's (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.schedules.schedule_json import shown_schedule, shown_slot
from fairlane.app.schedules.views import SchedulePreview, ScheduleView, SlotView
from fairlane.model.access import Role
from fairlane.web.api.bodies import Cursor, Limit, Moment, Reasoned
from fairlane.web.api.job_replies import Reply
from fairlane.web.api.policies import HoldBody, end_in, reason_in
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup

SCHEDULES: Final = EndpointGroup("schedules", "Schedules: when they make jobs, and what became of each slot.")

_NONE: Final = "none"
_NO_WORDS: Final = frozenset({"name", "task", "note", "until", "lasts"})


class ScheduleTimes(Body, frozen=True, kw_only=True):
    """When a schedule runs: exactly one of `cron`, `every` and `at`. Times without a zone are its own."""

    cron: str | UnsetType | None = UNSET
    every: float | str | UnsetType | None = UNSET
    at: str | UnsetType | None = UNSET
    timezone: str | UnsetType | None = UNSET
    between: Sequence[str] | str | UnsetType | None = UNSET
    weekdays: Sequence[str] | str | UnsetType | None = UNSET
    holidays: Sequence[str] | str | UnsetType | None = UNSET
    days: str | UnsetType | None = UNSET
    missing: str | UnsetType | None = UNSET
    repeated: str | UnsetType | None = UNSET
    starts: str | UnsetType | None = UNSET
    ends: str | UnsetType | None = UNSET


class ScheduleWords(ScheduleTimes, frozen=True, kw_only=True):
    """Everything that is said of a schedule; see the options of `app.schedule`. `note` is audited."""

    note: str = ""
    catch_up: int | str | UnsetType | None = UNSET
    look_back: float | str | UnsetType | None = UNSET
    overlap: str | UnsetType | None = UNSET
    unique_for: float | str | UnsetType | None = UNSET
    pause_after: int | str | UnsetType | None = UNSET
    tenant: str | UnsetType | None = UNSET
    for_tenants: Mapping[str, str] | str | UnsetType | None = UNSET
    spread: float | str | UnsetType | None = UNSET
    arguments: Mapping[str, Any] | UnsetType | None = UNSET
    queue: str | UnsetType | None = UNSET
    priority: int | UnsetType | None = UNSET
    max_attempts: int | UnsetType | None = UNSET
    timeout: float | str | UnsetType | None = UNSET
    expires_in: float | str | UnsetType | None = UNSET
    tags: Sequence[str] | UnsetType | None = UNSET
    metadata: Mapping[str, Any] | UnsetType | None = UNSET


class AddBody(ScheduleWords, frozen=True, kw_only=True):
    """A schedule to be made, of a task that workers have published."""

    name: str
    task: str


class EditBody(ScheduleWords, frozen=True, kw_only=True):
    """What is changed of a schedule, for good, until `until`, or `for` a while; null removes a word."""

    task: str | UnsetType = UNSET
    until: datetime | None = None
    lasts: str | None = msgspec.field(default=None, name="for")


class PreviewQuery(ScheduleTimes, frozen=True, kw_only=True):
    """When a schedule would run, and how many of its runs to list."""

    count: int = 5


class SchedulesQuery(Body, frozen=True, kw_only=True):
    """Which schedules."""

    task: str | None = None
    active: bool = False
    limit: Limit = 100
    cursor: Cursor = None


class HistoryQuery(Body, frozen=True, kw_only=True):
    """Which part of the history."""

    limit: Limit = 100
    cursor: Cursor = None


class RunsQuery(Body, frozen=True, kw_only=True):
    """How many runs."""

    count: int = 5


class BackfillBody(Reasoned, frozen=True, kw_only=True):
    """From when to when: both ends are included."""

    since: Moment
    until: Moment


class RecomputeBody(Change, frozen=True, kw_only=True):
    """Of which schedule; without one, of all."""

    schedule: str | None = None


class SchedulePage(Reply, frozen=True, kw_only=True):
    """One page of schedules by name. `cursor` null is the end."""

    items: Sequence[ScheduleView]
    cursor: str | None


class SlotPage(Reply, frozen=True, kw_only=True):
    """One page of slots, newest first. `cursor` null is the end."""

    items: Sequence[SlotView]
    cursor: str | None


class RunsReply(Reply, frozen=True, kw_only=True):
    """The next runs of a schedule, as if it were not paused."""

    items: Sequence[Moment]


class RunReply(Reply, frozen=True, kw_only=True):
    """The job of a run by hand; null for a schedule of many tenants, whose jobs the duty makes."""

    job: UUID | None


class CountReply(Reply, frozen=True, kw_only=True):
    """How many slots were taken, or next runs moved."""

    number: int


def words_in(body: ScheduleTimes) -> dict[str, Any]:
    """Return the words that a request gives; null, or `none` as text, removes one.

    >>> words_in(AddBody(name="a", task="t", cron="@daily", ends="none"))
    {'cron': '@daily', 'ends': None}
    """
    given = {name: getattr(body, name) for name in body.__struct_fields__ if name not in _NO_WORDS}
    words = {name: value for name, value in given.items() if value is not UNSET and name != "count"}
    return {name: None if value == _NONE else _single(value) for name, value in words.items()}


def _single(value: Any) -> Any:
    """Return the only text of a list, as a query sends it: texts have commas of their own."""
    if not isinstance(value, list | tuple):
        return value
    listed = cast("Sequence[Any]", value)
    return listed[0] if len(listed) == 1 and isinstance(listed[0], str) else listed


@SCHEDULES.get("/schedules", "schedules.find")
async def find(call: WebCall, query: SchedulesQuery) -> SchedulePage:
    """Return schedules by name: in words, when each runs next, for whom, and what is wrong with it."""
    page = await call.app.schedules.alist(
        task=query.task, active=query.active, limit=query.limit, cursor=query.cursor
    )
    return SchedulePage(items=tuple(map(shown_schedule, page.items)), cursor=page.cursor)


@SCHEDULES.get("/schedule-preview", "schedules.preview")
async def preview(call: WebCall, query: PreviewQuery) -> SchedulePreview:
    """Return in words when a schedule would run, and its next runs. Saves nothing."""
    return await call.app.schedules.apreview(count=query.count, **words_in(query))


@SCHEDULES.get("/schedules/{schedule}", "schedules.get")
async def get(call: WebCall, schedule: str) -> ScheduleView:
    """Return one schedule."""
    return shown_schedule(await call.app.schedules.aget(schedule))


@SCHEDULES.get("/schedules/{schedule}/next", "schedules.next")
async def next_(call: WebCall, schedule: str, query: RunsQuery) -> RunsReply:
    """Return the next runs of a schedule, as if it were not paused."""
    return RunsReply(items=await call.app.schedules.anext(schedule, query.count))


@SCHEDULES.get("/schedules/{schedule}/history", "schedules.history")
async def history(call: WebCall, schedule: str, query: HistoryQuery) -> SlotPage:
    """Return the slots of a schedule, newest first, also of one that was removed."""
    page = await call.app.schedules.ahistory(schedule, limit=query.limit, cursor=query.cursor)
    return SlotPage(items=tuple(map(shown_slot, page.items)), cursor=page.cursor)


@SCHEDULES.post(
    "/schedules",
    "schedules.add",
    least=Role.MANAGER,
    tenants="all",
    status=201,
    done="Added the schedule.",
    leads_to="/schedules/{name}",
)
async def add(call: WebCall, body: AddBody) -> ScheduleView:
    """Make a schedule. Everything that is wrong is reported at once."""
    words = words_in(body)
    return shown_schedule(await call.app.schedules.aadd(body.name, body.task, note=body.note, **words))


@SCHEDULES.patch(
    "/schedules/{schedule}", "schedules.edit", least=Role.MANAGER, tenants="all", done="Changed {schedule}."
)
async def edit(call: WebCall, schedule: str, body: EditBody) -> ScheduleView:
    """Change words of a schedule; what is left out stays. The edit survives deploys until it is reset."""
    words = words_in(body)
    if not isinstance(body.task, UnsetType):
        words["task"] = body.task
    end = await end_in(call, HoldBody(until=body.until, lasts=body.lasts))
    view = await call.app.schedules.aedit(schedule, note=body.note, until=end, **words)
    return shown_schedule(view)


@SCHEDULES.post(
    "/schedules/{schedule}/pause",
    "schedules.pause",
    least=Role.OPERATOR,
    tenants="all",
    done="Paused {schedule}.",
)
async def pause(call: WebCall, schedule: str, body: HoldBody) -> ScheduleView:
    """Take no slot of a schedule. Its jobs go on; what it leaves out is not made up for."""
    await call.app.schedules.apause(schedule, reason=reason_in(body), until=await end_in(call, body))
    return shown_schedule(await call.app.schedules.aget(schedule))


@SCHEDULES.post(
    "/schedules/{schedule}/resume",
    "schedules.resume",
    least=Role.OPERATOR,
    tenants="all",
    done="{schedule} goes on.",
)
async def resume(call: WebCall, schedule: str, body: Change) -> ScheduleView:
    """End the pause of a schedule. It goes on with its next run."""
    await call.app.schedules.aresume(schedule, note=body.note)
    return shown_schedule(await call.app.schedules.aget(schedule))


@SCHEDULES.post(
    "/schedules/{schedule}/run",
    "schedules.run",
    least=Role.OPERATOR,
    tenants="all",
    done="{schedule} runs now.",
)
async def run(call: WebCall, schedule: str, body: Change) -> RunReply:
    """Run a schedule now, once more than planned, also while it is paused."""
    job = await call.app.schedules.arun(schedule, note=body.note)
    return RunReply(job=None if job is None else job.id)


@SCHEDULES.post(
    "/schedules/{schedule}/reset",
    "schedules.reset",
    least=Role.MANAGER,
    tenants="all",
    done="{schedule} is as declared.",
)
async def reset(call: WebCall, schedule: str, body: Change) -> ScheduleView:
    """Undo the edit of a declared schedule."""
    return shown_schedule(await call.app.schedules.areset(schedule, note=body.note))


@SCHEDULES.post(
    "/schedules/{schedule}/backfill",
    "schedules.backfill",
    least=Role.MANAGER,
    tenants="all",
    done="The slots of {schedule} are made up for.",
)
async def backfill(call: WebCall, schedule: str, body: BackfillBody) -> CountReply:
    """Take the slots between two instants that were missed, skipped or failed. At most 1,000."""
    taken = await call.app.schedules.abackfill(schedule, body.since, body.until, note=body.note)
    return CountReply(number=taken)


@SCHEDULES.post("/schedules/recompute", "schedules.recompute", least=Role.OPERATOR, tenants="all")
async def recompute(call: WebCall, body: RecomputeBody) -> CountReply:
    """Compute the next runs anew, of one schedule or of all, as after a change of the zone data."""
    return CountReply(number=await call.app.schedules.arecompute(body.schedule, note=body.note))


@SCHEDULES.delete(
    "/schedules/{schedule}", "schedules.remove", least=Role.MANAGER, tenants="all", done="Removed {schedule}."
)
async def remove(call: WebCall, schedule: str, body: Change) -> None:
    """Remove a schedule. Its slots and jobs stay; a worker that declares it declares it again."""
    await call.app.schedules.aremove(schedule, note=body.note)
