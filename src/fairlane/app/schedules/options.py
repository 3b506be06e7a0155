"""The words of a schedule: the same in code, file, API and command line. Checks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, Final, Literal, TypeAlias, TypedDict

from msgspec import UnsetType

from fairlane.app.job import Json
from fairlane.model.instants import Duration

CatchUp: TypeAlias = Literal["skip", "latest"] | int
Overlap: TypeAlias = Literal["allow", "skip", "queue_one"]
MissingTime: TypeAlias = Literal["first_valid", "shift", "skip"]
RepeatedTime: TypeAlias = Literal["first", "second", "both"]
DayMatch: TypeAlias = Literal["or", "and"]


class TimingOptions(TypedDict, total=False):
    """When a schedule fires. Texts are as a file writes them: "15m", "09:30", "2026-12-24"."""

    every: Duration | str
    at: datetime | str
    timezone: str
    between: Sequence[time | str] | str
    weekdays: Sequence[str] | str
    holidays: Iterable[date | str] | str
    days: DayMatch
    missing: MissingTime
    repeated: RepeatedTime


class ScheduleOptions(TimingOptions, total=False):
    """Everything that is said of a schedule besides its name, its task and its cron expression."""

    starts: datetime | str
    ends: datetime | str
    catch_up: CatchUp
    look_back: Duration | str
    overlap: Overlap
    unique_for: Duration | str
    pause_after: int
    tenant: str
    for_tenants: Mapping[str, str]
    spread: Duration | str
    arguments: Mapping[str, Any]
    queue: str
    priority: int
    max_attempts: int
    timeout: Duration | UnsetType | None
    expires_in: Duration | str
    tags: Iterable[str]
    metadata: Mapping[str, Json]
    note: str


class DeclarationOptions(ScheduleOptions, total=False):
    """The options of `@app.schedule`."""

    name: str


class PreviewOptions(ScheduleOptions, total=False):
    """The options of a preview."""

    cron: str | None
    task: str


WORDS: Final = ("task", "cron", *ScheduleOptions.__annotations__)
"""Every option of a schedule but its name, in the order of the documentation."""
