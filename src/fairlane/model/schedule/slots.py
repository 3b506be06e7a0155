"""The instants of a timing, its slots, in order and without end (S106): whole milliseconds, as in a job's id.

A local time becomes an instant span by span: inside one, the clock of a zone is not changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from heapq import merge
from itertools import count, islice, takewhile
from typing import Final

from fairlane.model.instants import LAST_INSTANT, MILLISECOND, MINUTE, SECOND, Instant, Micros
from fairlane.model.schedule import cron as expressions
from fairlane.model.schedule.timing import Cron, Every, Missing, Repeated, Timing
from fairlane.model.schedule.windows import Hours, hours_of
from fairlane.model.schedule.zones import MOST_YEARS, ZoneSpan, find_zone, spans

_START: Final = datetime(1970, 1, 1)  # noqa: DTZ001 (local times are counted from it)
_MICRO: Final = timedelta(microseconds=1)
_NEVER: Final[Micros] = 2 * LAST_INSTANT
_WIDER: Final = 8


def next_after(timing: Timing, after: Instant) -> Instant | None:
    """Return the first slot after an instant; None if there is none within 50 years.

    ValueError says what is wrong with a timing that has problems, as a zone that this machine does not know.

    >>> from fairlane.model.instants import to_datetime
    >>> str(to_datetime(next_after(Cron("0 9 * * MON", timezone="America/New_York"), 0)))
    '1970-01-05 14:00:00+00:00'
    """
    return next(slots_after(timing, after), None)


def slots_between(timing: Timing, after: Instant, until: Instant, limit: int) -> list[Instant]:
    """Return the first slots after one instant, up to another that is included.

    >>> slots_between(Every(interval=60 * SECOND), 0, 180 * SECOND, 100)
    [60000000, 120000000, 180000000]
    """
    return list(islice(takewhile(lambda slot: slot <= until, slots_after(timing, after)), limit))


def slots_before(timing: Timing, after: Instant, until: Instant, count: int) -> list[Instant]:
    """Return the last slots after one instant, up to another that is included, the earliest first.

    >>> slots_before(Every(interval=60 * SECOND), 0, 1_000_000 * SECOND, 2)
    [999900000000, 999960000000]
    """
    width = MINUTE
    while count and after < until:
        since = max(after, until - width)
        slots = takewhile(lambda slot: slot <= until, slots_after(timing, since))
        found = deque(slots, maxlen=count)
        if len(found) == count or since == after:
            return list(found)
        width *= _WIDER
    return []


def slots_after(timing: Timing, after: Instant) -> Iterator[Instant]:
    """Return the slots after an instant in order, until none comes for 50 years."""
    match timing:
        case Cron():
            slots = _of_cron(timing, after)
        case Every():
            slots = _of_interval(timing, after)
        case _:
            slot = -(-timing.instant // MILLISECOND) * MILLISECOND
            slots = iter([slot] if slot > after else [])
    return takewhile(lambda slot: slot <= LAST_INSTANT, slots)


def policies(cron: Cron) -> tuple[Missing, Repeated]:
    """Return what happens to missing and repeated local times of an expression.

    >>> policies(Cron("30 2 * * *")), policies(Cron("*/5 * * * *")), policies(Cron("@daily", missing="skip"))
    (('first_valid', 'first'), ('skip', 'both'), ('skip', 'first'))
    """
    is_hourly = expressions.is_hourly(cron.expression)
    return (
        cron.missing or ("skip" if is_hourly else "first_valid"),
        cron.repeated or ("both" if is_hourly else "first"),
    )


class _LocalTimes:
    """The local times of an expression inside its window, counted in microseconds as instants are.

    Remembers what it found last: between two rare ones, each change of the clock asks again.
    """

    def __init__(self, cron: Cron) -> None:
        self._search = expressions.matcher(cron.expression, cron.days)
        self._hours = hours_of(cron)
        self._asked = self._found = _NEVER

    def first(self, local: Micros) -> Micros:
        """Return the first one, from a local time on."""
        if not self._asked <= local <= self._found:
            self._asked, self._found = local, self._look(local)
        return self._found

    def inside(self, low: Micros, high: Micros) -> Iterator[Micros]:
        """Return those from one local time up to another that is excluded."""
        while (found := self.first(low)) < high:
            yield found
            low = found + 1

    def _look(self, local: Micros) -> Micros:
        # cronsim looks for whole seconds after the one that it is given.
        self._search.dt = _START + timedelta(seconds=(local - 1) // SECOND)
        last_year = self._search.dt.year + MOST_YEARS
        for found in self._search:
            if found.year > last_year:
                break
            opening = self._hours.opening(found) if self._hours else found
            if opening == found:
                return (found - _START) // _MICRO
            self._search.dt = opening - timedelta(seconds=1)
        return _NEVER


def _of_cron(cron: Cron, after: Instant) -> Iterator[Instant]:
    times = _LocalTimes(cron)
    missing, repeated = policies(cron)
    last = after
    for span in spans(find_zone(cron.timezone), after):
        for slot in merge(_moved(times, span, missing), _met(times, span, repeated, after)):
            if slot > last:
                yield slot
                last = slot


def _met(times: _LocalTimes, span: ZoneSpan, repeated: Repeated, after: Instant) -> Iterator[Instant]:
    """Return the instants at which the clock of a span shows one of the local times."""
    low = max(span.start, after + 1) + span.offset
    high = span.end + span.offset
    if (
        repeated == "first"
    ):  # the clock was set back at the start: until then, it shows what it has shown before
        low = max(low, span.start + span.before)
    if repeated == "second":  # a clock that is set back at the end will show all of it again
        high = min(high, span.end + span.after)
    return (local - span.offset for local in times.inside(low, high))


def _moved(times: _LocalTimes, span: ZoneSpan, missing: Missing) -> Iterator[Instant]:
    """Return what the local times become that the change at the start of a span leaves out."""
    low, high = span.start + span.before, span.start + span.offset
    if missing == "skip" or high <= low:
        return iter(())
    if missing == "first_valid":
        return iter([span.start] if times.first(low) < high else [])
    return (local - span.before for local in times.inside(low, high))


def _of_interval(every: Every, after: Instant) -> Iterator[Instant]:
    first = after + every.interval - (after - every.anchor) % every.interval
    hours = hours_of(every)
    return _open(every, hours, first) if hours else count(first, every.interval)


def _open(every: Every, hours: Hours, slot: Instant) -> Iterator[Instant]:
    """Return the slots inside a window, from one on."""
    for span in spans(find_zone(every.timezone), slot):
        while slot < span.end:
            local = _START + timedelta(microseconds=slot + span.offset)
            opening = hours.opening(local)
            if opening == local:
                yield slot
                slot += every.interval
            else:
                # After a change of the clock, the window may open earlier than it seems now.
                opens_at = min((opening - _START) // _MICRO - span.offset, span.end)
                slot += -((slot - opens_at) // every.interval) * every.interval
