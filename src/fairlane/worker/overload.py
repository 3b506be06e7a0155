"""Notice a lane with more work than it can do, and log it once. Runs no job and costs none anything.

A check compares numbers that the lane has anyway. The store is asked only when a lane has been full for a
minute, and then once a minute until the overload is logged or over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlane.app.client import Client
from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.model.scheduling.overload import LOOKED_AT, Overload, overload
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock, ClockOffset
from fairlane.store.contract.jobs import PeekRequest
from fairlane.worker import report
from fairlane.worker.lane_state import LaneState

CHECK_EVERY: Final[Micros] = 10 * SECOND
MIN_DURATION: Final[Micros] = MINUTE
"""How long a lane must be full before the store is asked, and have room before the overload is over."""


class OverloadMonitor:
    """Checks the lanes of one worker, in the worker's loop."""

    def __init__(
        self, worker: str, lanes: Sequence[LaneState], client: Client, clock: Clock, clock_offset: ClockOffset
    ) -> None:
        self._worker = worker
        self._client = client
        self._clock = clock
        self._clock_offset = clock_offset
        self._loads = [_LaneLoad(lane, clock.elapsed()) for lane in lanes]

    async def check(self) -> Micros:
        """Log lanes that became overloaded or have caught up; return the pause before the next check."""
        for load in self._loads:
            now = self._clock.elapsed()
            if not load.is_unchanged_for(MIN_DURATION, now):
                continue
            if not load.is_full and load.is_told:
                load.is_told = False
                report.caught_up(self._worker, load.lane.policy)
            elif load.is_full and not load.is_told:
                load.since = now  # ask the store again after a minute
                found = await self._client.portal.call(self._worst(load.lane.queues))
                if found is not None:
                    load.is_told = True
                    report.overloaded(self._worker, load.lane.policy, *found)
        return CHECK_EVERY

    async def _worst(self, queues: Iterable[str]) -> tuple[str, Overload] | None:
        """Return the queue whose next jobs have waited longest; None if none has waited too long."""
        worst: tuple[str, Overload] | None = None
        for queue in queues:
            request = PeekRequest(scope=Scope.all(), queue=queue, limit=LOOKED_AT)
            next_jobs = await self._client.store.jobs.peek(request)
            found = overload(next_jobs, self._clock_offset.to_store(self._clock.elapsed()))
            if found is not None and (worst is None or found > worst[1]):
                worst = queue, found
        return worst


class _LaneLoad:
    """Whether a lane was full at the last check, since when, and whether its overload was logged."""

    def __init__(self, lane: LaneState, now: Micros) -> None:
        self.lane = lane
        self.is_full = False
        self.since = now
        self.is_told = False

    def is_unchanged_for(self, duration: Micros, now: Micros) -> bool:
        """Look at the lane; return whether it has been full, or has had room, for this long."""
        is_full = self.lane.slots.free <= self.lane.policy.headroom_slots
        if is_full != self.is_full:
            self.is_full, self.since = is_full, now
        return now - self.since >= duration
