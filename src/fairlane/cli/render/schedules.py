"""Render schedules and their slots. Knows no command."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from fairlane import SchedulePreview, ScheduleView, SlotView
from fairlane.app.config.units import duration_text
from fairlane.app.redaction import REDACTED
from fairlane.app.schedules.schedule_json import schedule_json, slot_json
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.policies import hold_fields
from fairlane.cli.render.times import timestamp, timestamp_and_age
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, to_instant


def schedules_view(now: Instant) -> TableView[ScheduleView]:
    """Return the table of schedules, with times relative to `now`."""
    return TableView(
        {
            "SCHEDULE": lambda one: one.name,
            "": _state,
            "WHEN": lambda one: one.when,
            "NEXT": lambda one: None if one.next_at is None else ago(to_instant(one.next_at), now),
            "LAST": lambda one: None if one.last_slot is None else ago(to_instant(one.last_slot), now),
            "TASK": lambda one: one.task,
            "FOR": _whose,
            "NOTE": lambda one: REDACTED.text(one.problem or one.note),
        },
        schedule_json,
    )


def slots_view(now: Instant) -> TableView[SlotView]:
    """Return the table of slots, with times relative to `now`."""
    return TableView(
        {
            "SLOT": lambda one: timestamp(to_instant(one.at)),
            "STATE": lambda one: one.state,
            "CAUSE": lambda one: one.cause,
            "TAKEN": lambda one: ago(to_instant(one.taken_at), now),
            "JOB": lambda one: (
                _counts(one) if one.tenant is None else None if one.job is None else str(one.job)
            ),
            "BECAUSE": lambda one: REDACTED.text(_because(one)),
        },
        slot_json,
    )


def schedule_fields(one: ScheduleView, runs: Sequence[datetime], now: Instant) -> dict[str, Cell]:
    """Return everything about a schedule, for people."""
    fields: dict[str, Cell] = {
        "schedule": one.name,
        "state": _state(one) or "active",
        "problem": REDACTED.text(one.problem),
        "when": one.when,
        "expression": one.expression,
        "time zone": one.timezone,
        "next": "\n".join(run_text(run, one.timezone) for run in runs),
        "last": None if one.last_slot is None else timestamp_and_age(to_instant(one.last_slot), now),
        "starts": _moment(one.starts),
        "ends": _moment(one.ends),
        "task": one.task,
        "for": _whose(one),
        "spread": _span(one.spread),
        "catch up": f"{one.catch_up}, at most {duration_text(one.look_back)} old",
        "overlap": one.overlap,
        "unique for": _span(one.unique_for),
        "pause after": None if one.pause_after is None else f"{one.pause_after} dead jobs in a row",
        "missing times": one.missing,
        "repeated times": one.repeated,
        "queue": one.queue,
        "priority": one.priority,
        "max attempts": one.max_attempts,
        "timeout": "none" if one.timeout is None else duration_text(one.timeout),
        "expires in": _span(one.expires_in or 0),
        "tags": ", ".join(REDACTED.text(tag) or "" for tag in one.tags),
        "metadata": msgspec.json.encode(REDACTED.value(dict(one.metadata))).decode()
        if one.metadata
        else None,
        "note": REDACTED.text(one.note),
        "failures": one.failures or None,
        **hold_fields(one.paused, None, None, now),
    }
    if one.edit is not None:
        what = ", ".join(one.edit.words) if one.declared else "added"
        ends = "" if one.edit.until is None else f", until {timestamp(to_instant(one.edit.until))}"
        why = f": {REDACTED.text(one.edit.note)}" if one.edit.note else ""
        fields["set"] = f"{what}, by {one.edit.who} {ago(to_instant(one.edit.since), now)}{why}{ends}"
    return fields


def preview_text(one: SchedulePreview) -> str:
    """Return what a schedule would do, for people."""
    runs = [f"  {run_text(run, one.timezone)}" for run in one.runs] or ["  never again"]
    return "\n".join([f"{one.when}.", *runs])


def preview_json(one: SchedulePreview) -> dict[str, Any]:
    """Return what a schedule would do, for programs."""
    encoded: dict[str, Any] = msgspec.to_builtins(one)
    return encoded


def run_text(run: datetime, zone: str) -> str:
    """Return an instant in UTC, and in the zone of its schedule if that is another.

    >>> from datetime import UTC
    >>> run_text(datetime(2026, 11, 19, 14, 30, tzinfo=UTC), "America/New_York")
    '2026-11-19 14:30:00 UTC, Thu 09:30:00 America/New_York'
    """
    text = timestamp(to_instant(run))
    return text if zone == "UTC" else f"{text}, {run.astimezone(ZoneInfo(zone)):%a %H:%M:%S} {zone}"


def _state(one: ScheduleView) -> str:
    if one.retired_at is not None:
        return "retired"
    words = ["paused"] if one.paused is not None else []
    words += ["failing"] if one.problem else []
    words += ["edited"] if one.edit is not None and one.declared else []
    return ", ".join(words)


def _whose(one: ScheduleView) -> str:
    if one.for_tenants is None:
        return str(one.tenant)
    labels = ", ".join(f"{key}={label}" for key, label in one.for_tenants.items())
    return f"tenants with {labels}" if labels else "all declared tenants"


def _counts(slot: SlotView) -> str:
    return f"{slot.enqueued} jobs, {slot.skipped} skipped, {slot.failed} failed"


def _because(slot: SlotView) -> str:
    before = f"{slot.missed} before it missed" if slot.missed else ""
    return "; ".join(filter(None, (slot.because, before)))


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(to_instant(moment))


def _span(seconds: float) -> str | None:
    return duration_text(seconds) if seconds else None
