"""Compute the next runs of schedules again with zone data that are newer than those that were used."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import Final

from msgspec.structs import replace

from fairlane.model.instants import HOUR, Instant, Micros, iso
from fairlane.model.schedule.records import ScheduleRow
from fairlane.model.schedule.restart import next_look
from fairlane.model.schedule.zones import forget_zones
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.runtime.zone_data import UNKNOWN
from fairlane.store.contract import Store
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.schedules import (
    MAX_SCHEDULE_CHANGES,
    ScheduleChange,
    SchedulesListRequest,
    SchedulesWriteRequest,
)

LOOK_EVERY: Final[Micros] = HOUR

_log: Final = getLogger("fairlane.duties")


class NewZoneData:
    """Looks at the version now and then, and at the schedules only if it is new to this process."""

    def __init__(self, clock: Clock, read_version: Callable[[], str]) -> None:
        self.version = ""
        self._clock = clock
        self._read_version = read_version
        self._looked_at: Micros | None = None

    async def __call__(self, store: Store) -> int:
        """Move schedules whose next run was computed with older data; return how many."""
        now = self._clock.elapsed()
        if self._looked_at is not None and now - self._looked_at < LOOK_EVERY:
            return 0
        version, self._looked_at = self._read_version(), now
        if version == self.version:
            return 0
        forget_zones()
        moved = 0 if version == UNKNOWN else await _move_all(store, version)
        self.version = version
        return moved


async def _move_all(store: Store, version: str) -> int:
    moved, after = 0, ""
    while True:
        request = SchedulesListRequest(scope=Scope.all(), after=after, limit=MAX_PAGE_SIZE)
        reply = await store.schedules.list(request)
        changes = [_moved(row, version, reply.now) for row in reply.rows]
        wanted = tuple(one for one in changes if one is not None)
        for start in range(0, len(wanted), MAX_SCHEDULE_CHANGES):
            part = wanted[start : start + MAX_SCHEDULE_CHANGES]
            write = SchedulesWriteRequest(scope=Scope.all(), changes=part)
            moved += sum((await store.schedules.write(write)).is_made)
        if len(reply.rows) < MAX_PAGE_SIZE:
            return moved
        after = reply.rows[-1].record.name


def _moved(row: ScheduleRow, version: str, now: Instant) -> ScheduleChange | None:
    """Return the change of a schedule that newer data moves. One that is due is left: it is computed anew."""
    record = row.record
    is_newer = record.zones in {"", UNKNOWN} or version > record.zones
    if not is_newer or record.next_at is None or record.next_at <= now:
        return None
    try:
        next_at = next_look(record, now)
    except ValueError:  # a zone that this machine does not know
        return None
    if next_at != record.next_at:
        text = "the zone data %s are new: schedule %s is due at %s, not at %s"
        about = (version, record.name, iso(next_at), iso(record.next_at))
        _log.warning(text, *about, extra={"event": "schedule_moved", "schedule": record.name})
    record = replace(record, zones=version, next_at=next_at)
    return ScheduleChange(name=record.name, revision=row.revision, record=record)
