"""What the next change of a clock means for a schedule: when it runs that day, and when it does otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from fairlane.model.instants import DAY, Instant, Micros, to_datetime, to_instant
from fairlane.model.schedule.slots import slots_between
from fairlane.model.schedule.timing import At, Cron, Timing
from fairlane.model.schedule.zones import find_zone, spans

_WITHIN: Final[Micros] = 366 * DAY
_MOST: Final = 1_000
_WEEK: Final = timedelta(days=7)


class ClockChange(msgspec.Struct, frozen=True):
    """A change of a zone's clock: when, by how much, and the runs of that day and of the same day before.

    `normally` and `that_day` are local times, as "02:30:00"; `first_at` is the first run of that day.
    """

    at: datetime
    timezone: str
    shift: Micros
    normally: Sequence[str]
    that_day: Sequence[str]
    first_at: datetime | None

    @property
    def is_forward(self) -> bool:
        """Whether local times are left out; otherwise they come twice."""
        return self.shift > 0

    @property
    def is_same(self) -> bool:
        """Whether the local times of its runs are what they always are."""
        return self.normally == self.that_day


def next_change(zone: str, now: Instant) -> tuple[Instant, Micros] | None:
    """Return when the clock of a zone is changed next, within a year, and by how much.

    >>> at, shift = next_change("Europe/Berlin", 1_772_366_400_000_000)
    >>> to_datetime(at).isoformat(), shift // 3_600_000_000
    ('2026-03-29T01:00:00+00:00', 1)
    >>> next_change("UTC", 0) is None
    True
    """
    for span in spans(find_zone(zone), now):
        if span.end > now + _WITHIN:
            return None
        if span.after != span.offset:
            return span.end, span.after - span.offset
    return None


def clock_change(timing: Timing, now: Instant) -> ClockChange | None:
    """Return what the next change of its clock means for a schedule; None if there is none that could.

    Intervals without a window follow no clock, nor does a single run.
    """
    if isinstance(timing, At) or not (isinstance(timing, Cron) or timing.between or timing.weekdays):
        return None
    found = next_change(timing.timezone, now)
    if found is None:
        return None
    at, shift = found
    zone = ZoneInfo(timing.timezone)
    day = datetime.combine(to_datetime(at - 1).astimezone(zone).date(), time(), zone)
    runs = _runs(timing, day)
    return ClockChange(
        at=to_datetime(at),
        timezone=timing.timezone,
        shift=shift,
        normally=_local(_runs(timing, day - _WEEK), zone),
        that_day=_local(runs, zone),
        first_at=to_datetime(runs[0]) if runs else None,
    )


def _runs(timing: Timing, day: datetime) -> list[Instant]:
    """Return the slots of a local day."""
    end = day + timedelta(days=1)  # in local time, so 23 or 25 hours later on that day
    return slots_between(timing, to_instant(day) - 1, to_instant(end) - 1, _MOST)


def _local(runs: Sequence[Instant], zone: ZoneInfo) -> tuple[str, ...]:
    return tuple(f"{to_datetime(run).astimezone(zone):%H:%M:%S}" for run in runs)
