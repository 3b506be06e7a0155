"""What happens to schedules, as entries of the events (S76). Copies no payload."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from fairlane.model.instants import iso
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.kinds import EventKind
from fairlane.model.schedule.records import ScheduleRecord, SlotRow

FAIRLANE: Final = "fairlane"
"""Who pauses a schedule whose jobs die one after the other."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode


def news_of_schedule(
    before: ScheduleRecord | None, after: ScheduleRecord | None, slots: Iterable[SlotRow]
) -> tuple[NewEntry, ...]:
    """Return what a change has made happen: it fails, Fairlane has paused it, slots were missed."""
    if after is None:
        return ()
    found: list[NewEntry] = []
    slots = tuple(slots)
    failed = [slot for slot in slots if slot.state == "failed"]
    if failed:
        found.append(_failed(failed[-1], after.problem or failed[-1].because, len(failed)))
    elif after.problem and (before is None or not before.problem):
        found.append(_event(EventKind.SCHEDULE_FAILED, after.tenant, after.name, because=after.problem))
    missed = [slot for slot in slots if slot.missed or slot.state == "missed"]
    if missed:
        count = sum(slot.missed + (slot.state == "missed") for slot in missed)
        about = {
            "missed": count,
            "since": iso(missed[0].missed_since or missed[0].at),
            "to": iso(missed[-1].at),
        }
        found.append(_event(EventKind.SCHEDULE_MISSED, after.tenant, after.name, count, **about))
    hold = after.paused
    if hold is not None and hold.who == FAIRLANE and (before is None or before.paused != hold):
        found.append(_event(EventKind.SCHEDULE_PAUSED, after.tenant, after.name, because=hold.reason))
    return tuple(found)


def news_of_slot(slot: SlotRow) -> tuple[NewEntry, ...]:
    """Return what the end of a slot has made happen: it has no job, or tenants of its fan-out have none."""
    if slot.state == "failed":
        return (_failed(slot, slot.because, 1),)
    if slot.state != "pending" and slot.fan_out is not None and slot.fan_out.failed:
        because = slot.fan_out.exceptions[0][1] if slot.fan_out.exceptions else ""
        return (_failed(slot, because, slot.fan_out.failed),)
    return ()


def _failed(slot: SlotRow, because: str, count: int) -> NewEntry:
    about = {"because": because, "slot": iso(slot.at)}
    return _event(EventKind.SCHEDULE_FAILED, slot.tenant, slot.schedule, count, **about)


def _event(kind: EventKind, tenant: str | None, schedule: str, count: int = 1, **about: Any) -> NewEntry:
    body = _encode({"schedule": schedule, **about})
    return NewEntry(kind=kind.value, tenant=tenant, subject=schedule, count=count, body=body)
