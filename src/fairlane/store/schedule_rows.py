"""Encode schedules and slots as bytes, decode them, and decide about a change. Reads and writes no store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.schedule.kept import is_at, next_row, slot_row
from fairlane.model.schedule.news import news_of_schedule, news_of_slot
from fairlane.model.schedule.records import ScheduleRow, SlotRow
from fairlane.store.contract.schedules import ScheduleChange, SlotEnd

pack_schedule: Final = msgspec.msgpack.Encoder().encode
read_schedule: Final = msgspec.msgpack.Decoder(ScheduleRow).decode
read_slot: Final = msgspec.msgpack.Decoder(SlotRow).decode


class ChangedSchedule(msgspec.Struct, frozen=True):
    """A change that is made: the schedule as it was and is, None if it is not there; slots, events."""

    before: ScheduleRow | None
    after: ScheduleRow | None
    slots: tuple[SlotRow, ...]
    events: tuple[NewEntry, ...]


def changed_schedule(
    change: ScheduleChange, row: ScheduleRow | None, kept: Mapping[Instant, SlotRow], now: Instant
) -> ChangedSchedule | None:
    """Return what a change makes of a schedule; None if it is another by now, or a slot is not due yet."""
    if change.revision != (0 if row is None else row.revision) or any(one.at > now for one in change.slots):
        return None
    after = None if change.record is None else next_row(row, change.record, now)
    rows = (slot_row(change.name, kept.get(slot.at), slot, now) for slot in change.slots)
    slots = tuple(slot for slot in rows if slot is not None)
    before = None if row is None else row.record
    return ChangedSchedule(row, after, slots, news_of_schedule(before, change.record, slots))


def ended_slot(
    end: SlotEnd, kept: SlotRow | None, now: Instant
) -> tuple[SlotRow, tuple[NewEntry, ...]] | None:
    """Return a slot as it is now, and events; None if it has ended, or gone on without the caller."""
    if kept is None or not is_at(kept, end.cursor):
        return None
    row = msgspec.structs.replace(
        kept,
        state=end.state,
        because=end.because,
        fan_out=kept.fan_out if end.fan_out is None else end.fan_out,
        ended_at=None if end.state == "pending" else now,
    )
    return row, news_of_slot(row)
