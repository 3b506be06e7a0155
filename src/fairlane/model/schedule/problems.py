"""Find all that is wrong with a timing, each with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fairlane.model.checking import is_listed, is_text, is_whole, shown
from fairlane.model.errors import Problem
from fairlane.model.instants import LAST_INSTANT, MILLISECOND, SECOND, Instant
from fairlane.model.schedule.cron import read_expression
from fairlane.model.schedule.slots import next_after
from fairlane.model.schedule.timing import At, Cron, Every, Timing, Window
from fairlane.model.schedule.windows import MOST_HOLIDAYS, read_date, read_time, read_weekday
from fairlane.model.schedule.zones import MOST_YEARS, find_zone

_CHOICES: Final = {
    "days": ("or", "and"),
    "missing": ("first_valid", "shift", "skip", None),
    "repeated": ("first", "second", "both", None),
}


def problems(timing: Timing, now: Instant | None = None) -> list[Problem]:
    """Return all that is wrong with a timing, in order of its fields; with `now`, also that it has passed.

    The values may be of any type, as a caller has given them.

    >>> for problem in problems(Cron("0 25 * * *", timezone="Europe/Berlyn", between=("9:30", "16:00"))):
    ...     print(problem.text)
    cron: hour '25' is not allowed; use 0-23, * for all, lists as 1,5, ranges as 1-5, steps as */5
    timezone: 'Europe/Berlyn' is not a time zone; use Europe/Berlin or Europe/Jersey or Europe/Dublin
    between: '9:30' is not a time of day; write it as 09:30, up to 23:59:59
    """
    found = [*_of_kind(timing), *(_of_window(timing) if isinstance(timing, Window) else ())]
    return found or [*_of_future(timing, now)]


def _of_kind(timing: Timing) -> Iterator[Problem]:
    match timing:
        case Cron():
            if is_text(timing.expression):
                yield from read_expression(timing.expression)[1]
            else:
                yield _wrong(
                    "cron", f"{shown(timing.expression)} is not text", "write it as 30 9 * * MON-FRI"
                )
            for field, allowed in _CHOICES.items():
                value = getattr(timing, field)
                if value not in allowed:
                    hint = f"use {' or '.join(filter(None, allowed))}"
                    yield _wrong(field, f"{shown(value)} is unknown", hint)
        case Every(interval=interval, anchor=anchor):
            if not is_whole(interval) or not SECOND <= interval <= LAST_INSTANT:
                yield _wrong(
                    "every", "is not an interval of a second or more", "give a duration, as 15m or 1s"
                )
            elif interval % MILLISECOND:
                yield _wrong("every", "is not a whole number of milliseconds", "round it")
            yield from (bad := list(_instant("anchor", anchor)))
            if not bad and anchor % MILLISECOND:
                yield _wrong("anchor", "is not a whole number of milliseconds", "round it")
        case _:
            yield from _instant("at", timing.instant)
            yield from _unread("timezone", (timing.timezone,), find_zone)


def _instant(field: str, instant: object) -> Iterator[Problem]:
    if not is_whole(instant) or not 0 <= instant <= LAST_INSTANT:
        yield _wrong(field, f"{shown(instant)} is not an instant", "give one from 1970 on, with its zone")


def _of_window(window: Window) -> Iterator[Problem]:
    yield from _unread("timezone", (window.timezone,), find_zone)
    if window.between is not None:
        if is_listed(window.between) and len(window.between) == len(("first", "last")):
            yield from _unread("between", window.between, read_time)
        else:
            yield _wrong("between", f"{shown(window.between)} are not two times", "write 09:30 and 16:00")
    for field, read in (("weekdays", read_weekday), ("holidays", read_date)):
        values = getattr(window, field)
        if not is_listed(values):
            yield _wrong(field, f"{shown(values)} is not a list", "give a list")
        elif len(values) > MOST_HOLIDAYS:
            yield _wrong(field, f"has {len(values)} entries", f"give {MOST_HOLIDAYS} at the most")
        else:
            yield from _unread(field, values, read)


def _unread(field: str, values: Sequence[object], read: Callable[[str], object]) -> Iterator[Problem]:
    """Return the problems of the values that cannot be read."""
    for value in values:
        if not is_text(value):
            yield _wrong(field, f"{shown(value)} is not text", "write it in quotes")
            continue
        try:
            read(value)
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            yield _wrong(field, message, hint)


def _of_future(timing: Timing, now: Instant | None) -> Iterator[Problem]:
    if isinstance(timing, At):
        if now is not None and timing.instant <= now:
            yield _wrong("at", "has passed", "give an instant to come")
    elif next_after(timing, now or 0) is None:
        field = "cron" if isinstance(timing, Cron) else "every"
        yield _wrong(field, f"has no run in {MOST_YEARS} years", "check its days, hours and holidays")


def _wrong(field: str, message: str, hint: str) -> Problem:
    return Problem(0, field, message, hint)
