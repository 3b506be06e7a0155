"""Let a schedule go on from now: after it was made, changed, resumed, or moved by new zone data (S54, S106).

What lies before is settled: a pause, or a change of its times, is never made up for.
"""

from __future__ import annotations

from msgspec.structs import replace

from fairlane.model.instants import Instant
from fairlane.model.schedule.records import ScheduleRecord
from fairlane.model.schedule.slots import next_after
from fairlane.model.schedule.spec import ScheduleSpec


def next_slot(spec: ScheduleSpec, after: Instant) -> Instant | None:
    """Return the first slot of a schedule after an instant; None if there is none, or it has ended."""
    first = after if spec.starts is None else max(after, spec.starts - 1)
    found = next_after(spec.timing, first)
    return None if found is None or (spec.ends is not None and found > spec.ends) else found


def restarted(record: ScheduleRecord, now: Instant) -> ScheduleRecord:
    """Return a record that goes on from now, with nothing of the past to make up for."""
    record = replace(record, settled_to=now, problem="", failures=0, watched=())
    return replace(record, next_at=next_look(record, now))


def next_look(record: ScheduleRecord, now: Instant) -> Instant | None:
    """Return when a schedule must be looked at after now; None if it never must."""
    if record.retired_at is not None:
        return None
    if record.paused is not None:
        return record.paused.until
    spec, override = record.spec(now), record.override
    slot = None if spec is None else next_slot(spec, now)
    end = None if override is None else override.until
    looks = [one for one in (slot, end) if one is not None and one > now]
    return min(looks, default=None)
