"""Render limits, rates, pauses and overrides. Knows no command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairlane import Limits, Rate, State
from fairlane.app.admin.views import Held, Overridden
from fairlane.cli.render.output import Cell
from fairlane.cli.render.times import timestamp_and_age
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, iso, to_instant


def counts_json(counts: Mapping[State, int]) -> dict[str, int]:
    """Return counts by state name."""
    return {state.value: number for state, number in counts.items()}


def hold_state(paused: Held | None, closed: Held | None) -> str:
    """Return `paused`, `closed`, both, or nothing."""
    return ", ".join(state for state, hold in (("paused", paused), ("closed", closed)) if hold is not None)


def rate_text(rate: Rate | None) -> str | None:
    """Format a rate.

    >>> rate_text(Rate(50, "minute", 5)), rate_text(Rate(10, "second"))
    ('50/minute, burst 5', '10/second')
    """
    if rate is None:
        return None
    return f"{rate.limit}/{rate.per}" + (f", burst {rate.burst}" if rate.burst > 1 else "")


def limits_text(limits: Limits) -> str:
    """Format limits in words.

    >>> limits_text(Limits(waiting=500, running=4)), limits_text(Limits())
    ('500 waiting (warn), 4 running', 'no limit')
    """
    parts: list[str] = []
    if limits.waiting is not None:
        parts.append(f"{limits.waiting} waiting ({limits.on_full})")
    if limits.running is not None:
        parts.append(f"{limits.running} running")
    if limits.rate is not None:
        parts.append(f"{rate_text(limits.rate)}")
    return ", ".join(parts) or "no limit"


def hold_fields(
    paused: Held | None, closed: Held | None, override: Overridden | None, now: Instant
) -> dict[str, Cell]:
    """Return who paused, closed or overrode something, for people."""
    fields: dict[str, Cell] = {}
    for state, hold in (("paused", paused), ("closed", closed)):
        if hold is not None:
            ends = "" if hold.until is None else f", until {timestamp_and_age(to_instant(hold.until), now)}"
            fields[state] = f"by {hold.who} {ago(to_instant(hold.since), now)}: {hold.reason}{ends}"
    if override is not None:
        ends = (
            "" if override.until is None else f", until {timestamp_and_age(to_instant(override.until), now)}"
        )
        why = f": {override.note}" if override.note else ""
        names = ", ".join(override.values)
        fields["set"] = f"{names}, by {override.who} {ago(to_instant(override.since), now)}{why}{ends}"
    return fields


def hold_json(paused: Held | None, closed: Held | None, override: Overridden | None) -> dict[str, Any]:
    """Return who paused, closed or overrode something, for programs."""
    holds: dict[str, Any] = {
        state: None
        if hold is None
        else {"who": hold.who, "reason": hold.reason, "since": iso(hold.since), "until": iso(hold.until)}
        for state, hold in (("paused", paused), ("closed", closed))
    }
    if override is not None:
        holds["override"] = {
            "values": msgspec.to_builtins(dict(override.values)),
            "who": override.who,
            "note": override.note,
            "since": iso(override.since),
            "until": iso(override.until),
        }
    return holds
