"""Notice that a lane has more to do than it can, and say so once. Runs no job and costs none anything.

A look compares numbers that the lane has anyway. The store is asked only when a lane has been full for a
minute, and then once a minute until it is told or over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlane.app.client import Client
from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.model.overload import LOOKED_AT, Overload, overload
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract.jobs import PeekRequest
from fairlane.worker import report
from fairlane.worker.floor import Floor
from fairlane.worker.lane import Desk

LOOK_EVERY: Final[Micros] = 10 * SECOND
LASTS: Final[Micros] = MINUTE
"""So long a lane is full before it is asked for, and has room again before that is over."""


class OverloadWatch:
    """Looks at the lanes of one worker, in the worker's loop."""

    def __init__(self, floor: Floor, client: Client, clock: Clock) -> None:
        self._floor = floor
        self._client = client
        self._clock = clock
        self._lanes = [_Lane(desk, clock.elapsed()) for desk in floor.desks]

    async def look(self) -> Micros:
        """Tell of lanes that became overloaded, or have caught up; say when to look again."""
        for lane in self._lanes:
            now = self._clock.elapsed()
            if not lane.is_same_for(LASTS, now):
                continue
            if not lane.is_full and lane.is_told:
                lane.is_told = False
                report.caught_up(self._floor.id, lane.desk.lane)
            elif lane.is_full and not lane.is_told:
                lane.since = now  # look at the store again after a minute
                found = await self._client.portal.aside(self._worst(lane.desk.queues))
                if found is not None:
                    lane.is_told = True
                    report.overloaded(self._floor.id, lane.desk.lane, *found)
        return LOOK_EVERY

    async def _worst(self, queues: Iterable[str]) -> tuple[str, Overload] | None:
        """Ask the store which queue's next jobs have waited longest; None if none has waited too long."""
        worst: tuple[str, Overload] | None = None
        for queue in queues:
            request = PeekRequest(scope=Scope.all(), queue=queue, most=LOOKED_AT)
            next_jobs = await self._client.store.jobs.peek(request)
            found = overload(next_jobs, self._floor.times.store(self._clock.elapsed()))
            if found is not None and (worst is None or found > worst[1]):
                worst = queue, found
        return worst


class _Lane:
    """A lane as it was seen: whether it was full, since when, and whether that was told."""

    def __init__(self, desk: Desk, now: Micros) -> None:
        self.desk = desk
        self.is_full = False
        self.since = now
        self.is_told = False

    def is_same_for(self, lasts: Micros, now: Micros) -> bool:
        """Look at the lane; say whether it has been full, or has had room, for so long."""
        is_full = self.desk.free <= self.desk.lane.headroom_slots
        if is_full != self.is_full:
            self.is_full, self.since = is_full, now
        return now - self.since >= lasts
