"""Wait for the store's hints that there may be work, while a lane has free slots and found none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlane.app.client import Client
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.runtime.loops import WakeUp
from fairlane.store.contract.registry import WaitRequest
from fairlane.worker.lane_state import LaneState

MAX_HINT_WAIT: Final[Micros] = 30 * SECOND
"""Lanes look for work this often even without a hint: a hint may be lost."""

HINT_DEBOUNCE: Final[Micros] = SECOND // 200
"""Hints that come this close together count as one."""


class HintListener:
    """Wakes the lanes of one worker. `work_wanted` is set when a lane begins to need hints."""

    def __init__(self, worker: str, client: Client, lanes: Sequence[LaneState]) -> None:
        self.work_wanted = WakeUp()
        self._worker = worker
        self._client = client
        self._lanes = lanes
        self._queues = tuple(dict.fromkeys(queue for lane in lanes for queue in lane.queues))

    async def listen(self) -> Micros:
        """Wait for one hint if a lane is idle; return the pause before the next pass."""
        if not self._is_any_idle():
            return MAX_HINT_WAIT
        request = WaitRequest(
            scope=Scope.all(), worker=self._worker, queues=self._queues, at_most=MAX_HINT_WAIT
        )
        await self._client.portal.call(self._wait(request))
        for lane in self._lanes:
            lane.look_for_work()
        return HINT_DEBOUNCE

    def _is_any_idle(self) -> bool:
        return any(lane.slots.free and not lane.may_have_work for lane in self._lanes)

    async def _wait(self, request: WaitRequest) -> None:
        await self._client.store.registry.wait(request)
