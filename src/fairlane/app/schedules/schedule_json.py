"""A schedule and its slots as JSON for programs; what looks secret is redacted (S6)."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import msgspec

from fairlane.app.redaction import REDACTED
from fairlane.app.schedules.views import ScheduleView, SlotView


def shown_schedule(view: ScheduleView) -> ScheduleView:
    """Return a schedule as it may be shown: people write secrets into notes."""
    return replace(
        view,
        note=_text(view.note),
        problem=_text(view.problem),
        metadata=REDACTED.value(dict(view.metadata)),
        tags=tuple(_text(tag) for tag in view.tags),
        paused=None if view.paused is None else replace(view.paused, reason=_text(view.paused.reason)),
        edit=None if view.edit is None else replace(view.edit, note=_text(view.edit.note)),
    )


def shown_slot(slot: SlotView) -> SlotView:
    """Return a slot as it may be shown."""
    exceptions = {tenant: _text(why) for tenant, why in slot.exceptions.items()}
    return replace(slot, because=_text(slot.because), exceptions=exceptions)


def schedule_json(view: ScheduleView) -> dict[str, Any]:
    """Return a schedule, for programs."""
    encoded: dict[str, Any] = msgspec.to_builtins(asdict(shown_schedule(view)))
    return encoded


def slot_json(slot: SlotView) -> dict[str, Any]:
    """Return a slot, for programs."""
    encoded: dict[str, Any] = msgspec.to_builtins(asdict(shown_slot(slot)))
    return encoded


def _text(text: str) -> str:
    return REDACTED.text(text) or ""
