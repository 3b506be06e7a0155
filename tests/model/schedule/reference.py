"""What a cron schedule does, minute by minute: slow, and written without cronsim and without our spans.

It looks at every minute of UTC and asks the zone what a clock on the wall shows then. Whether that was shown
before, or what was left out, is seen from the minutes around it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Literal
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Rule:
    """A cron expression of numbers, stars, lists, ranges and steps, and what happens when clocks change."""

    expression: str
    missing: Literal["first_valid", "shift", "skip"]
    repeated: Literal["first", "second", "both"]
    between: tuple[str, str] | None = None

    @cached_property
    def _fields(self) -> list[frozenset[int]]:
        bounds = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
        parts = self.expression.split()
        return [
            frozenset(value for item in part.split(",") for value in _values(item, *bound))
            for part, bound in zip(parts, bounds, strict=True)
        ]

    def matches(self, local: datetime) -> bool:
        """Whether a local time is named."""
        minutes, hours, days, months, weekdays = self._fields
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        if self.between and not self.between[0] <= f"{local:%H:%M}" <= self.between[1]:
            return False
        _, _, day_part, _, weekday_part = self.expression.split()
        is_day = local.day in days
        is_weekday = local.isoweekday() in weekdays or (local.isoweekday() == 7 and 0 in weekdays)
        if day_part.startswith("*") or weekday_part.startswith("*"):
            return is_day and is_weekday
        return is_day or is_weekday


def _values(item: str, low: int, high: int) -> Iterator[int]:
    span, _, step = item.partition("/")
    first, _, last = span.partition("-")
    start = low if first == "*" else int(first)
    stop = high if first == "*" or (step and not last) else int(last or first)
    yield from range(start, stop + 1, int(step or 1))


def slots(rules: Sequence[Rule], zone: ZoneInfo, start: datetime, end: datetime) -> list[list[datetime]]:
    """Return the instants of each rule, from one minute of UTC up to another that is excluded."""
    found: dict[Rule, set[datetime]] = {rule: set() for rule in rules}
    named = _by_times(rules)
    before = (start - MINUTE).astimezone(zone).replace(tzinfo=None)
    moment = start
    while moment < end:
        shown = moment.astimezone(zone)
        local = shown.replace(tzinfo=None)
        # Shown a second time, an hour or so ago or to come?
        twin = shown.replace(fold=1 - shown.fold)
        is_repeated = twin.utcoffset() != shown.utcoffset() and (
            twin.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local
        )
        other = ("second" if shown.fold == 0 else "first") if is_repeated else ""
        for rule in named(local):
            if rule.repeated != other:
                found[rule].add(moment)
        for lost in _left_out(before, local):
            for rule in named(lost):
                if rule.missing != "skip":
                    later = lost - before - MINUTE if rule.missing == "shift" else timedelta(0)
                    found[rule].add(moment + later)
        before = local
        moment += MINUTE
    return [sorted(one for one in found[rule] if one < end) for rule in rules]


def _by_times(rules: Sequence[Rule]) -> Callable[[datetime], list[Rule]]:
    """Return a function from a local time to the rules that name it: most rules share their times."""
    alike: dict[tuple[str, object], list[Rule]] = {}
    for rule in rules:
        alike.setdefault((rule.expression, rule.between), []).append(rule)
    return lambda local: [rule for group in alike.values() if group[0].matches(local) for rule in group]


def _left_out(before: datetime, local: datetime) -> Iterator[datetime]:
    """Return the minutes that a clock does not show between one minute of UTC and the next."""
    lost = before + MINUTE
    while lost < local:
        yield lost
        lost += MINUTE


def changes(zone: ZoneInfo, first: date, last: date) -> list[datetime]:
    """Return when a zone's clock was set between two days: the first minute of UTC after each change."""
    found = []
    hour = timedelta(hours=1)
    moment = datetime(first.year, first.month, first.day, tzinfo=UTC)
    end = datetime(last.year, last.month, last.day, tzinfo=UTC)
    offset = moment.astimezone(zone).utcoffset()
    while moment < end:
        after = (moment + hour).astimezone(zone).utcoffset()
        if after != offset:
            minute = moment
            while minute.astimezone(zone).utcoffset() == offset:
                minute += MINUTE
            found.append(minute)
            offset = after
        moment += hour
    return found
