"""Schedules and their slots as users see them. Asks no store and reads no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.app.admin.views import Held, held_view, to_optional_datetime
from fairlane.app.config.units import duration_text
from fairlane.app.schedules.options import CatchUp, DayMatch, MissingTime, Overlap, RepeatedTime
from fairlane.model.instants import SECOND, Instant, Micros, to_datetime
from fairlane.model.schedule.records import ScheduleRow, SlotCause, SlotRow, SlotState
from fairlane.model.schedule.slots import policies
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import At, Cron, Every, Timing, Window
from fairlane.model.schedule.words import describe
from fairlane.model.schedule.zones import find_zone
from fairlane.model.scheduling.priority import at_edge

Origin: TypeAlias = Literal["declared", "edited", "added"]


@dataclass(frozen=True, slots=True)
class ScheduleEdit:
    """What an operator has made of a schedule: who, why, since when, until when, and which words differ."""

    who: str
    note: str
    since: datetime
    until: datetime | None
    words: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule at one instant, as it is in force.

    `when` says it in words, `expression` as it was written; one of `cron`, `every` and `at` is given.
    `next_at` is its next slot, None if there is none or it is paused. `tenant` is None if `for_tenants` is
    given: then each slot makes a job for every declared tenant with these labels. Durations are in seconds.
    `declared` is whether code or file have it, `edit` what an operator has made of it. `problem` says why its
    slots fail; `failures` counts dead jobs in a row. `retired_at` is when its code dropped it, or its only
    run was made.
    """

    name: str
    task: str
    when: str
    expression: str
    cron: str | None
    every: float | None
    at: datetime | None
    timezone: str
    between: Sequence[str] | None
    weekdays: Sequence[str]
    holidays: Sequence[str]
    days: DayMatch | None
    missing: MissingTime | None
    repeated: RepeatedTime | None
    next_at: datetime | None
    last_slot: datetime | None
    tenant: str | None
    for_tenants: Mapping[str, str] | None
    spread: float
    starts: datetime | None
    ends: datetime | None
    catch_up: CatchUp
    look_back: float
    overlap: Overlap
    unique_for: float
    pause_after: int | None
    queue: str
    priority: int
    max_attempts: int
    timeout: float | None
    expires_in: float | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    note: str
    paused: Held | None
    declared: bool
    edit: ScheduleEdit | None
    retired_at: datetime | None
    failures: int
    problem: str

    @property
    def is_active(self) -> bool:
        """Whether it makes jobs."""
        return self.paused is None and self.retired_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """One slot of a schedule: what became of it, why, and the job that it made.

    `missed` slots before it, the first of them at `missed_since`, were not taken in time and are not recorded
    one by one. A slot for many tenants counts its jobs in `enqueued`, `skipped` and `failed`; `exceptions`
    are the first tenants without one, and why.
    """

    schedule: str
    at: datetime
    tenant: str | None
    cause: SlotCause
    state: SlotState
    because: str
    job: UUID | None
    taken_at: datetime
    ended_at: datetime | None
    missed: int
    missed_since: datetime | None
    enqueued: int
    skipped: int
    failed: int
    exceptions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePreview:
    """What a schedule would do: in words, and its next runs."""

    when: str
    expression: str
    timezone: str
    runs: Sequence[datetime]


def schedule_view(row: ScheduleRow, spec: ScheduleSpec, now: Instant, *, lower_first: bool) -> ScheduleView:
    """Return the view of a schedule whose `spec` is in force."""
    record, job = row.record, spec.job
    paused = record.paused is not None or record.retired_at is not None
    return ScheduleView(
        name=record.name,
        task=spec.task,
        when=describe(spec.timing),
        expression=expression_of(spec.timing),
        **_times(spec.timing),
        next_at=None if paused else to_optional_datetime(record.next_at),
        last_slot=to_optional_datetime(record.last_slot),
        tenant=spec.tenant,
        for_tenants=spec.for_tenants,
        spread=spec.spread / SECOND,
        starts=to_optional_datetime(spec.starts),
        ends=to_optional_datetime(spec.ends),
        catch_up=spec.catch_up,
        look_back=spec.look_back / SECOND,
        overlap=spec.overlap,
        unique_for=spec.unique_for / SECOND,
        pause_after=spec.pause_after,
        queue=job.queue,
        priority=at_edge(job.priority, lower_first=lower_first),
        max_attempts=job.max_attempts,
        timeout=_seconds(job.timeout),
        expires_in=_seconds(job.expires_in),
        tags=job.tags,
        metadata=msgspec.json.decode(job.metadata, type=dict[str, Any]),
        note=spec.note,
        paused=held_view(record.paused),
        declared=record.declared is not None,
        edit=_edit(row, now),
        retired_at=to_optional_datetime(record.retired_at),
        failures=record.failures,
        problem=record.problem,
    )


def slot_view(row: SlotRow) -> SlotView:
    """Return the view of a slot."""
    fan_out = row.fan_out
    return SlotView(
        schedule=row.schedule,
        at=to_datetime(row.at),
        tenant=row.tenant,
        cause=row.cause,
        state=row.state,
        because=row.because,
        job=row.job,
        taken_at=to_datetime(row.taken_at),
        ended_at=to_optional_datetime(row.ended_at),
        missed=row.missed,
        missed_since=to_optional_datetime(row.missed_since),
        enqueued=0 if fan_out is None else fan_out.enqueued,
        skipped=0 if fan_out is None else fan_out.skipped,
        failed=0 if fan_out is None else fan_out.failed,
        exceptions={} if fan_out is None else dict(fan_out.exceptions),
    )


def expression_of(timing: Timing) -> str:
    """Return when a schedule runs as it is written.

    >>> expression_of(Cron(expression="0 9 * * MON")), expression_of(Every(interval=900_000_000))
    ('0 9 * * MON', 'every 15m')
    >>> expression_of(At(0)), expression_of(At(0, "America/Chicago"))
    ('at 1970-01-01T00:00:00', 'at 1969-12-31T18:00:00')
    """
    match timing:
        case Cron():
            return timing.expression
        case Every():
            return f"every {duration_text(timing.interval / SECOND)}"
        case At():
            local = to_datetime(timing.instant).astimezone(find_zone(timing.timezone))
            return f"at {local:%Y-%m-%dT%H:%M:%S}"


def _times(timing: Timing) -> dict[str, Any]:
    """Return the words that say when a schedule runs, each of them."""
    window = timing if isinstance(timing, Window) else None
    cron = timing if isinstance(timing, Cron) else None
    missing, repeated = (None, None) if cron is None else policies(cron)
    return {
        "cron": None if cron is None else cron.expression,
        "every": timing.interval / SECOND if isinstance(timing, Every) else None,
        "at": to_datetime(timing.instant) if isinstance(timing, At) else None,
        "timezone": timing.timezone,
        "between": None if window is None else window.between,
        "weekdays": () if window is None else window.weekdays,
        "holidays": () if window is None else window.holidays,
        "days": None if cron is None else cron.days,
        "missing": missing,
        "repeated": repeated,
    }


def options_of(spec: ScheduleSpec, *, lower_first: bool) -> dict[str, Any]:
    """Return everything that is said of a schedule, as its words, but for the arguments of its task."""
    timing, job = spec.timing, spec.job
    words: dict[str, Any] = {"task": spec.task, "timezone": timing.timezone}
    match timing:
        case Cron():
            words |= {"cron": timing.expression, "days": timing.days}
            words |= {"missing": timing.missing, "repeated": timing.repeated}
        case Every():
            words["every"] = timing.interval / SECOND
        case At():
            words["at"] = to_datetime(timing.instant)
    if isinstance(timing, Window):
        words |= {
            "between": timing.between,
            "weekdays": timing.weekdays or None,
            "holidays": timing.holidays or None,
        }
    words |= {
        "starts": to_optional_datetime(spec.starts),
        "ends": to_optional_datetime(spec.ends),
        "catch_up": spec.catch_up,
        "look_back": spec.look_back / SECOND,
        "overlap": spec.overlap,
        "unique_for": spec.unique_for / SECOND,
        "pause_after": spec.pause_after,
        "tenant": spec.tenant,
        "for_tenants": spec.for_tenants,
        "spread": spec.spread / SECOND,
        "queue": job.queue,
        "priority": at_edge(job.priority, lower_first=lower_first),
        "max_attempts": job.max_attempts,
        "timeout": _seconds(job.timeout),
        "expires_in": _seconds(job.expires_in),
        "tags": job.tags or None,
        "metadata": msgspec.json.decode(job.metadata) or None,
        "note": spec.note,
    }
    return {word: value for word, value in words.items() if value is not None or word == "timeout"}


def _edit(row: ScheduleRow, now: Instant) -> ScheduleEdit | None:
    record = row.record
    override = record.override
    if override is None or (override.until is not None and override.until <= now):
        return None
    words: list[str] = []
    if record.declared is not None:
        was, is_now = (options_of(one, lower_first=False) for one in (record.declared, override.spec))
        words = [word for word in {**was, **is_now} if was.get(word) != is_now.get(word)]
        if record.declared.job.payload != override.spec.job.payload:
            words.append("arguments")
    since, until = to_datetime(override.set_at), to_optional_datetime(override.until)
    return ScheduleEdit(override.who, override.note, since, until, tuple(words))


def _seconds(duration: Micros | None) -> float | None:
    return None if duration is None else duration / SECOND
