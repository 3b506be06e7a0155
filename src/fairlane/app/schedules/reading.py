"""Read what is said of a schedule into the model's values. Collects every problem and goes on.

A value may be Python's, or the text that a file, a form or a command line has for it. A time without a zone
is one of the schedule's zone (S106). Asks no store and reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, Final, TypeVar, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fairlane.app.config.units import DURATIONS, seconds_of
from fairlane.app.enqueue.checks import LONGEST_WAIT, ProblemList, duration, kind_of
from fairlane.app.schedules.options import CatchUp, DayMatch, MissingTime, Overlap, RepeatedTime
from fairlane.model.checking import is_text, is_whole
from fairlane.model.errors import Problem
from fairlane.model.instants import LAST_INSTANT, SECOND, Instant, Micros, to_instant
from fairlane.model.schedule.problems import problems as timing_problems
from fairlane.model.schedule.timing import At, Cron, Every, Timing

W = TypeVar("W", bound=str)

_MILLI: Final[Micros] = 1_000
_ONE: Final = "give exactly one of cron, every and at"
MOST_CAUGHT_UP: Final = 1_000
"""Most missed slots that one pass makes up for."""


def timing_of(problems: ProblemList, given: Mapping[str, Any]) -> Timing | None:
    """Return when a schedule runs; None if a problem keeps it from being known."""
    before = len(problems.found)
    kinds = [name for name in ("cron", "every", "at") if given.get(name) is not None]
    if len(kinds) != 1:
        field = kinds[1] if kinds else "cron"
        message = f"is given together with {kinds[0]}" if kinds else "is missing, and so are every and at"
        problems.add(field, message, _ONE, "required")
    zone = text(problems, "timezone", given.get("timezone", "UTC"))
    window: dict[str, Any] = {
        "timezone": zone,
        "between": between(problems, given.get("between")),
        "weekdays": weekdays(problems, given.get("weekdays")),
        "holidays": holidays(problems, given.get("holidays")),
    }
    if kinds != ["cron"]:
        _refuse(problems, given, ("days", "missing", "repeated"), "only a cron expression has it")
    if kinds == ["at"]:
        _refuse(problems, given, ("between", "weekdays", "holidays"), "one instant has no window")
        found: Timing | None = At(moment(problems, "at", given["at"], zone) or 0, zone)
    elif kinds == ["every"]:
        anchor = moment(problems, "starts", given.get("starts"), zone) or 0
        interval = span(problems, "every", given["every"], SECOND)
        found = Every(interval=interval // _MILLI * _MILLI, anchor=anchor, **window)
    elif kinds == ["cron"]:
        words: dict[str, Any] = {
            "days": word(problems, "days", given.get("days", "or"), get_args(DayMatch)),
            "missing": _word_or_none(problems, "missing", given.get("missing"), get_args(MissingTime)),
            "repeated": _word_or_none(problems, "repeated", given.get("repeated"), get_args(RepeatedTime)),
        }
        found = Cron(expression=text(problems, "cron", given["cron"]), **window, **words)
    else:
        found = None
    return found if len(problems.found) == before else None


def when_problems(given: Mapping[str, Any]) -> Sequence[Problem]:
    """Return everything that is wrong with when a schedule runs."""
    problems = ProblemList(0)
    timing = timing_of(problems, given)
    if timing is not None:
        problems.take(timing_problems(timing))
    return problems.found


def _refuse(problems: ProblemList, given: Mapping[str, Any], names: Iterable[str], why: str) -> None:
    for name in names:
        if given.get(name):
            problems.add(name, f"is given, but {why}", "leave it out", "conflict")


# ── single values ────────────────────────────────────────────────────────────


def text(problems: ProblemList, field: str, value: object) -> str:
    """Return a text."""
    if is_text(value):
        return value.strip()
    problems.add(field, f"is of type {kind_of(value)}", "give a text", "type")
    return ""


def word(problems: ProblemList, field: str, value: Any, known: tuple[W, ...]) -> W:
    """Return one of these words."""
    if value in known:
        return cast("W", value)
    shown = repr(value[:40]) if is_text(value) else f"of type {kind_of(value)}"
    problems.add(field, f"is {shown}", f"use {' or '.join(known)}", "type")
    return known[0]


def _word_or_none(problems: ProblemList, field: str, value: Any, known: tuple[W, ...]) -> W | None:
    return None if value is None else word(problems, field, value, known)


def span(problems: ProblemList, field: str, value: object, least: Micros = 0) -> Micros:
    """Return a duration: seconds, a timedelta, or a text such as "15m"."""
    if not is_text(value):
        return duration(problems, field, value, least, LONGEST_WAIT)
    try:
        return duration(problems, field, seconds_of(value.strip()), least, LONGEST_WAIT)
    except ValueError:
        problems.add(field, f"is {value[:40]!r}", f"give {DURATIONS}", "type")
        return least


def moment(problems: ProblemList, field: str, value: object, zone: str) -> Instant | None:
    """Return an instant to the millisecond: a datetime, or one as text; without a zone the schedule's."""
    if value is None:
        return None
    if is_text(value):
        return _moment_of(problems, field, value, zone)
    if not isinstance(value, datetime):
        problems.add(field, f"is of type {kind_of(value)}", "give a datetime", "type")
        return None
    if value.tzinfo is None:
        try:
            value = value.replace(tzinfo=ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None  # the zone is a problem of its own
    try:
        found = to_instant(value)
    except OverflowError:
        found = -1
    if not 0 <= found <= LAST_INSTANT:
        problems.add(field, f"is in the year {value.year}", "use a moment from 1970 to 2255", "range")
        return None
    return found // _MILLI * _MILLI


def _moment_of(problems: ProblemList, field: str, text: str, zone: str) -> Instant | None:
    try:
        return moment(problems, field, datetime.fromisoformat(text.strip()), zone)
    except ValueError:
        hint = "write it as 2026-11-25T18:00, or with an offset as 2026-11-25T18:00Z"
        problems.add(field, f"is {text[:40]!r}", hint, "type")
        return None


def between(problems: ProblemList, value: object) -> tuple[str, str] | None:
    """Return two times of day: a pair of times or texts, or a text such as "09:30-16:00"."""
    if not value:
        return None
    parts = [part.strip() for part in value.split("-")] if is_text(value) else value
    if not isinstance(parts, list | tuple) or len(cast("list[object]", parts)) != 2:  # noqa: PLR2004 (a pair)
        problems.add("between", "is no pair of times", 'give two, as in ("09:30", "16:00")', "type")
        return None
    first, last = cast("tuple[object, object]", parts)
    return _time(problems, first), _time(problems, last)


def _time(problems: ProblemList, value: object) -> str:
    if is_text(value):
        return value.strip()
    if isinstance(value, time):
        if value.tzinfo is not None:
            problems.add("between", "has a time zone", "give times of the schedule's own zone", "type")
        return f"{value:%H:%M}" if not value.second else f"{value:%H:%M:%S}"
    problems.add("between", f"has a value of type {kind_of(value)}", 'give times, as "09:30"', "type")
    return "00:00"


def weekdays(problems: ProblemList, value: object) -> tuple[str, ...]:
    """Return names of weekdays, as given: a list of texts, or one text with commas."""
    return tuple(name.upper() for name in texts(problems, "weekdays", value))


def holidays(problems: ProblemList, value: Any) -> tuple[str, ...]:
    """Return dates as texts: given as dates or texts, or as one text with commas."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        listed = cast("Iterable[object]", value)
        value = [
            one.isoformat() if isinstance(one, date) and not isinstance(one, datetime) else one
            for one in listed
        ]
    return texts(problems, "holidays", value)


def texts(problems: ProblemList, field: str, value: Any) -> tuple[str, ...]:
    """Return several texts: a list, or one text with commas between them."""
    if value is None:
        return ()
    kind = kind_of(value)
    if is_text(value):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    listed = list(cast("Iterable[object]", value)) if isinstance(value, Iterable) else [None]
    if isinstance(value, bytes | Mapping) or not all(is_text(one) for one in listed):
        problems.add(field, f"is of type {kind}, or not of texts", "give a list of texts", "type")
        return ()
    return tuple(str(one) for one in listed)


def catch_up(problems: ProblemList, value: object) -> CatchUp:
    """Return what becomes of missed slots: a word, or the most that are made up for."""
    if is_text(value) and value in {"skip", "latest"}:
        return cast("CatchUp", value)
    if is_text(value) and value.strip().isdecimal():
        value = int(value)
    if is_whole(value) and 1 <= value <= MOST_CAUGHT_UP:
        return value
    shown = repr(value[:40]) if is_text(value) else str(value) if is_whole(value) else kind_of(value)
    problems.add("catch_up", f"is {shown}", f"use skip, latest, or a number, 1 to {MOST_CAUGHT_UP}", "type")
    return "latest"


def overlap(problems: ProblemList, value: object) -> Overlap:
    """Return what happens while the job of an earlier slot is not done."""
    known: tuple[Overlap, ...] = get_args(Overlap)
    return word(problems, "overlap", value, known)


def labels(problems: ProblemList, value: object) -> dict[str, str] | None:
    """Return labels of tenants: a table of texts, or one text such as "plan=pro, region=eu"."""
    if value is None or value == "":
        return None
    if is_text(value):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(sign for _, sign, _ in pairs):
            problems.add("for_tenants", f"is {value[:40]!r}", "write labels as plan=pro, region=eu", "type")
        return {key.strip(): label.strip() for key, _, label in pairs}
    if not isinstance(value, Mapping):
        problems.add("for_tenants", f"is of type {kind_of(value)}", "give a table of labels", "type")
        return None
    return dict(cast("Mapping[str, str]", value))


def count(problems: ProblemList, field: str, value: object, least: int, most: int) -> int | None:
    """Return a whole number, also as text; None if none is given."""
    if value is None:
        return None
    if is_text(value) and value.strip().isdecimal():
        value = int(value)
    if is_whole(value) and least <= value <= most:
        return value
    shown = str(value)[:20] if is_whole(value) else f"of type {kind_of(value)}"
    problems.add(field, f"is {shown}", f"use a whole number, {least} to {most}", "range")
    return None
