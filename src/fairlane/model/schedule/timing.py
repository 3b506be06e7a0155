"""The three ways to say when a schedule runs (S106): a cron expression, an interval, one instant.

Texts, as people write them: `problems` says what is wrong with one. Knows no instant of its own.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlane.model.instants import Instant, Micros

Missing: TypeAlias = Literal["first_valid", "shift", "skip"]
"""What a local time becomes that a change of the clock leaves out, as 02:30 where 02:00 is followed by 03:00:
the first instant after the change (03:00), as much later as the clock was moved (03:30), or nothing."""

Repeated: TypeAlias = Literal["first", "second", "both"]
"""Which one counts of a local time that comes twice, as 01:30 where 02:00 is followed by 01:00."""


class Window(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A zone, and when in it a schedule runs at all: times of day, weekdays, and days on which it does not.

    `between` is two times of day, both included, as ("09:30", "16:00"); one that ends before it begins goes
    past midnight. `weekdays` are names, as "MON"; without any, all. `holidays` are dates, as "2026-12-25".
    Each is about the local time of a run.
    """

    timezone: str = "UTC"
    between: tuple[str, str] | None = None
    weekdays: tuple[str, ...] = ()
    holidays: tuple[str, ...] = ()


class Cron(Window, frozen=True, tag_field="kind", tag="cron"):
    """The local times of a cron expression of five fields, or a name for one, as @hourly.

    `days` says what holds if day of month and day of week are both restricted: one of them must match, as
    everywhere else, or both. Without `missing` and `repeated`, an expression of certain hours runs once for
    each local time ("first_valid" and "first"), and one of every hour follows the clock, so that its runs
    stay as far apart as ever ("skip" and "both").
    """

    expression: str
    days: Literal["or", "and"] = "or"
    missing: Missing | None = None
    repeated: Repeated | None = None


class Every(Window, frozen=True, tag_field="kind", tag="every"):
    """Every so often: at the anchor, and each whole number of intervals before and after it.

    A restart does not shift it, nor does a change of the clock. The usual anchor, the start of 1970 in UTC,
    makes an interval of an hour run on the hour.
    """

    interval: Micros
    anchor: Instant = 0


class At(msgspec.Struct, frozen=True, tag_field="kind", tag="at"):
    """Once. The zone is the one in which people see it."""

    instant: Instant
    timezone: str = "UTC"


Timing: TypeAlias = Cron | Every | At
