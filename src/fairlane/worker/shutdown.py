"""Decide when a worker stops claiming, when each of its lanes has ended, and when the worker itself has.

Stops no handler: `timeouts` does that from `stop_at` on. Knows no signals: `command` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import WakeUp
from fairlane.store.contract.registry import WorkerState
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempts
from fairlane.worker.lane_state import LaneState

FORCE_CANCEL_GRACE: Final[Micros] = 5 * SECOND
"""How long a handler that was cancelled by force may take before it is abandoned."""

FAST_GRACE: Final[Micros] = SECOND // 2
"""The same in a fast shutdown."""

FINAL_SETTLE_TIMEOUT: Final[Micros] = SECOND
"""How long a worker still tries to settle what it has stopped."""


class Shutdown:
    """The end of one worker. Changed in the worker's loop only.

    While it `is_paused`, nothing is claimed. Once it `is_draining`, nothing is claimed or started;
    `on_claims_ended` is called when no claim is under way any more either. `wants_replacement` says that
    another worker should take its place. From `stop_at` on, handlers that still run are stopped; each
    gets `grace` before it is abandoned. `finished` is set when all lanes have ended, when the time for
    that is over, or when an `error` in the worker's own code makes it impossible to go on.
    """

    def __init__(
        self,
        worker: str,
        lanes: Sequence[LaneState],
        attempts: LiveAttempts,
        clock: Clock,
        timeouts_wake_up: WakeUp,
        *,
        is_burst: bool,
    ) -> None:
        self.is_draining = False
        self.is_paused = False
        self.wants_replacement = False
        self.on_claims_ended: Callable[[], None] = _nothing
        self.on_replacement_wanted: Callable[[], None] = _nothing
        self.is_burst = is_burst
        self.stop_at: Micros | None = None
        self.grace = FORCE_CANCEL_GRACE
        self.finished = asyncio.Event()
        self.error: BaseException | None = None
        self._worker = worker
        self._lanes = lanes
        self._open = set(lanes)
        self._claiming = set(lanes)
        self._attempts = attempts
        self._clock = clock
        self._timeouts_wake_up = timeouts_wake_up
        self._leave_at: Micros | None = None
        self.on_drain: Callable[[], None] = _nothing

    def begin(self, run_for: Micros, *, is_fast: bool = False) -> None:
        """Claim nothing more; let handlers run for `run_for`, then stop them and be gone soon after.

        May be called again to be faster.
        """
        deadline = self._clock.elapsed() + run_for
        self.is_draining = True
        self.stop_at = deadline if self.stop_at is None else min(deadline, self.stop_at)
        self.grace = FAST_GRACE if is_fast else FORCE_CANCEL_GRACE
        self._leave_at = deadline + FINAL_SETTLE_TIMEOUT + (0 if is_fast else FORCE_CANCEL_GRACE)
        self._timeouts_wake_up.set()
        self.on_drain()
        self.wake_lanes()

    def replace(self, run_for: Micros) -> None:
        """Drain, and ask for another worker in this one's place; without effect while it drains."""
        if not self.is_draining:
            self.wants_replacement = True
            self.begin(run_for)
            self.on_replacement_wanted()

    def state_with(self, running: int) -> WorkerState:
        """Return the state that a worker with this many running handlers reports."""
        if self.is_draining:
            return "draining"
        return "paused" if self.is_paused else "busy" if running else "idle"

    def fail(self, error: BaseException) -> None:
        """End the worker at once: its own code cannot go on. The first error is kept."""
        self.error = self.error or error
        self.finished.set()

    def check_deadline(self) -> None:
        """End the worker if it had long enough to settle what it stopped."""
        if self._leave_at is not None and self._clock.elapsed() >= self._leave_at:
            self.finished.set()

    async def wait(self) -> None:
        """Wait for the worker's end; raise if its own code has failed."""
        await self.finished.wait()
        if self.error is not None:
            message = f"the worker's own code raised {type(self.error).__name__}"
            raise RuntimeError(message) from self.error

    # ── lanes ─────────────────────────────────────────────────────────────────

    def wake_lanes(self) -> None:
        """Let every lane look for work, or for its end."""
        for lane in self._lanes:
            lane.look_for_work()

    def end_if_done(self, lane: LaneState) -> bool:
        """End a lane if it holds nothing and nothing may come; return whether it has ended.

        The first call that finds a burst done begins the drain; the last lane's end ends the worker.
        """
        if self.is_burst and not self.is_draining and self._is_idle():
            # Lanes end a burst together: the last job of one may have enqueued work for another.
            self.is_draining = True
            self.wake_lanes()
        if not self.is_draining or lane.calls_in_flight:
            return False
        self._claims_ended(lane)
        if lane.claimed and not self._has_lost_claims(lane):
            return False
        self._open.discard(lane)
        if not self._open:
            self.finished.set()
        return True

    def _claims_ended(self, lane: LaneState) -> None:
        """Note that a draining lane has no claim under way; say so when that is true of all."""
        if lane in self._claiming:
            self._claiming.discard(lane)
            if not self._claiming:
                self.on_claims_ended()

    def _has_lost_claims(self, lane: LaneState) -> bool:
        """Log, and return, whether claims are held of which nothing runs, waits or is pending: a defect."""
        if lane.pending or lane.slots.waiting or any(one.lane is lane for one in self._attempts.running()):
            return False
        report.slots_lost(self._worker, lane.policy.name, lane.claimed)
        return True

    def _is_idle(self) -> bool:
        return not self._attempts and not any(
            lane.may_have_work or lane.calls_in_flight or lane.pending for lane in self._lanes
        )


def _nothing() -> None:
    """Do nothing: nobody listens."""
