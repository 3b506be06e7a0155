"""Notice a worker that makes no progress while jobs wait (S31). One pass, in the portal thread.

Long jobs are no stall: a handler counts as stuck only past its hard timeout, or while it blocks the event
loop without having a timeout.
"""

from __future__ import annotations

import asyncio
from asyncio import timeout
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.retry.decision import HandedBack, decide_settlement
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.contract.jobs import PeekRequest
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.parts import WorkerParts

CHECK_EVERY: Final[Micros] = SECOND

_BLOCKED_AFTER: Final[Micros] = SECOND
"""The loop checks its handlers ten times a second; if it has not for this long, something blocks it."""

_HAND_BACK_TIMEOUT: Final = 2.0


class StallWatchdog:
    """Watches one worker. `on_stalled` hears of a stall once, with its duration.

    With `end_process`, which an embedded worker has not, everything that can go back does, and it is called.
    """

    def __init__(
        self,
        *,
        worker: str,
        parts: WorkerParts,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        store: Callable[[], Store],
        stalled_after: Micros,
        on_stalled: Callable[[float], None],
        attempts_kept: int,
    ) -> None:
        self._attempts_kept = attempts_kept
        self._worker = worker
        self._parts = parts
        self._loop = loop
        self._clock = clock
        self._store = store
        self._stalled_after = stalled_after
        self._on_stalled = on_stalled
        self._stuck_since: Micros | None = None
        self._settled = 0
        self._has_reported = False
        self.end_process: Callable[[], None] | None = None

    async def check(self) -> Micros:
        """Report a stall that has lasted for long enough; return the pause before the next check."""
        now, settled = self._clock.elapsed(), self._parts.settler.settled_count
        if not self._is_stuck(now) or settled != self._settled:
            self._stuck_since, self._settled, self._has_reported = None, settled, False
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= self._stalled_after and not self._has_reported:
            if await self._jobs_wait():
                self._has_reported = True
                await self._report((now - self._stuck_since) / SECOND)
            else:
                self._stuck_since = now
        return CHECK_EVERY

    async def _report(self, seconds: float) -> None:
        """Write the stacks first: handing back takes a moment, and ending the process ends all."""
        self._on_stalled(seconds)
        if self.end_process is not None:
            await self.hand_back()
            self.end_process()

    def _is_stuck(self, now: Micros) -> bool:
        """Whether no slot can make progress: the loop is blocked for good, or all handlers should be over."""
        running = self._parts.attempts.running()
        if not running:
            return False
        if now - self._parts.timeouts.checked_at > _BLOCKED_AFTER:
            # A handler within its timeout may block the loop: bad manners, and S31 sees to their end.
            return all(one.hard_at is None or now > one.hard_at for one in self._blocking(running))
        slots = sum(lane.policy.slots for lane in self._parts.lanes)
        return len(running) >= slots and all(one.hard_at is not None and now > one.hard_at for one in running)

    def _blocking(self, running: Iterable[LiveAttempt]) -> list[LiveAttempt]:
        """Return the handlers that may block the loop: the one whose task it runs, if that is known."""
        task = asyncio.current_task(self._loop)
        found = [one for one in running if one.task is not None and one.task is task]
        return found or [one for one in running if one.task is not None]

    async def _jobs_wait(self) -> bool:
        if any(lane.slots.waiting for lane in self._parts.lanes):
            return True
        for queue in {queue for lane in self._parts.lanes for queue in lane.queues}:
            if await self._store().jobs.peek(PeekRequest(scope=Scope.all(), queue=queue, limit=1)):
                return True
        return False

    async def hand_back(self) -> None:
        """Hand back what a stall holds up, just before its process ends: nothing of it may run on.

        Not what blocks the loop or is past its timeout: its lease lapses, and it runs alone next time (S39).
        Nor what may run only once.
        """
        now = self._clock.elapsed()
        running = self._parts.attempts.running()
        guilty = {id(one) for one in self._blocking(running)}
        innocent = [
            one
            for one in self._parts.attempts.claimed()
            if not one.is_over
            and id(one) not in guilty
            and not (one.hard_at is not None and now > one.hard_at)
            and not (one.has_begun and (one.declared.at_most_once or one.control.has_succeeded))
        ]
        settlements = tuple(
            decide_settlement(
                one.claim,
                HandedBack(is_unstarted=not one.has_begun),
                draw=0,
                metadata=one.control.metadata,
                spent=one.control.spent,
            )
            for one in innocent
        )
        request = SettleRequest(
            scope=Scope.all(),
            worker=self._worker,
            settlements=settlements,
            attempts_kept=self._attempts_kept,
        )
        with suppress(StoreError, TimeoutError):
            async with timeout(_HAND_BACK_TIMEOUT):
                await self._store().claims.settle(request)
