"""When a job may run and how long it stays welcome (S2, S21). Compares what it is given; reads no clock."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from fairlane.app import checks
from fairlane.app.checks import LONGEST_WAIT, Sheet
from fairlane.app.options import Options
from fairlane.model.instants import Instant, Micros


class Timing(msgspec.Struct, frozen=True):
    """Absolute and relative times of one job, as a store takes them."""

    run_at: Instant | None
    delay: Micros
    expires_at: Instant | None
    expires_in: Micros | None


def timing_of(sheet: Sheet, options: Options) -> Timing:
    """Read the four times of an enqueue: at most one of each pair, and the start before the expiry.

    An absolute and a relative time can only be compared by the store's clock, so they are not compared here.
    """
    timing = Timing(
        run_at=_instant(sheet, options, "run_at"),
        delay=_duration(sheet, options, "delay", 0) or 0,
        expires_at=_instant(sheet, options, "expires_at"),
        expires_in=_duration(sheet, options, "expires_in", 1),
    )
    _exclusive(sheet, options, "run_at", "delay")
    _exclusive(sheet, options, "expires_at", "expires_in")
    if not sheet.problems:
        _in_order(sheet, timing)
    return timing


def _instant(sheet: Sheet, options: Options, field: str) -> Instant | None:
    value: Any = getattr(options, field)
    return None if value is UNSET else checks.instant(sheet, field, value)


def _duration(sheet: Sheet, options: Options, field: str, least: Micros) -> Micros | None:
    value: Any = getattr(options, field)
    return None if value is UNSET else checks.duration(sheet, field, value, least, LONGEST_WAIT)


def _exclusive(sheet: Sheet, options: Options, one: str, other: str) -> None:
    if getattr(options, one) is not UNSET and getattr(options, other) is not UNSET:
        sheet.add(one, f"is given together with {other}", "give one of the two", "conflict")


def _in_order(sheet: Sheet, timing: Timing) -> None:
    hint = "let it expire after it may start"
    if timing.run_at is not None and timing.expires_at is not None and timing.run_at >= timing.expires_at:
        sheet.add("expires_at", "is not after run_at", hint, "conflict")
    if timing.delay and timing.expires_in is not None and timing.delay >= timing.expires_in:
        sheet.add("expires_in", "is not longer than delay", hint, "conflict")
