"""One lane of a worker: its slots, the attempts in them, the settlements to send. Asks no store.

Usually one call to the store is in flight. A lane of one queue without headroom may have as many as the
store's `concurrent_calls` (2 on PostgreSQL and Redis), each for its part of the slots: the store works on one
while the handlers of the other run. A lane of several queues has one, because how the queues share the slots
depends on what the last claim returned. So has a lane with headroom: what counts as headroom depends on all
its free slots at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import Claim, Settlement
from fairlane.model.policy.declared import Lane
from fairlane.model.scheduling.lanes import LaneClock, QueueRequests
from fairlane.runtime.loops import WakeUp
from fairlane.worker.attempts.live_attempts import LiveAttempt

UNTIL_WOKEN: Final[Micros] = 3_600 * SECOND
"""The pause of a lane with nothing to do: only its wake-up can bring it something."""


class PendingSettlement(NamedTuple):
    """An attempt that is over, and how it is to be settled."""

    attempt: LiveAttempt
    settlement: Settlement


class FillSlots(NamedTuple):
    """Claim up to this many jobs; what is pending is settled first, in the same call."""

    slots: int


class SettleOnly(NamedTuple):
    """Send the pending settlements and claim nothing."""


class Wait(NamedTuple):
    """Do nothing for so long, or until the lane is woken."""

    pause: Micros


LaneAction: TypeAlias = FillSlots | SettleOnly | Wait


class LaneState:
    """A lane at work. A slot is taken from the claim until the store has answered the settlement (S47).

    `may_have_work` is False from sending a claim until it returns full or partial, fails, or `look_for_work`
    is called. A due job is separate: `due_at` is when time alone makes the next job claimable.
    `calls_in_flight` counts calls to the store whose answers are not known yet. Used by the worker's loop
    only.
    """

    def __init__(self, policy: Lane, concurrent_calls: int = 1) -> None:
        self.policy = policy
        self.queues = tuple(policy.shares())
        self.wake_up = WakeUp()
        self.pending: list[PendingSettlement] = []
        self.may_have_work = True
        self.max_calls = concurrent_calls if len(self.queues) == 1 and not policy.headroom_slots else 1
        self.calls_in_flight = 0
        self.due_at: Micros | None = None
        self._queue_shares = LaneClock(policy)
        self._taken_by_queue: Counter[str] = Counter()
        self._taken = 0
        self._reserved = 0

    # ── what to do next ───────────────────────────────────────────────────────

    def next_action(self, now: Micros, *, not_before: Micros = 0, is_draining: bool = False) -> LaneAction:
        """Decide what the lane does now. Changes nothing.

        `not_before` is set after an outage. A lane that `is_draining` claims nothing more.
        """
        if now < not_before:
            return Wait(not_before - now)
        if is_draining and self.calls_in_flight:
            # A job handed back now could come back through the call in flight: wait for it, then settle.
            return Wait(UNTIL_WOKEN)
        slots = 0 if is_draining else self.claimable_slots
        is_due = self.due_at is not None and now >= self.due_at
        # A settlement is sent anyway: let it claim too.
        if slots > 0 and (self.may_have_work or self.pending or is_due):
            return FillSlots(slots)
        if self.pending:
            return SettleOnly()
        if self.due_at is None or is_due:  # due, but no slot may be filled
            return Wait(UNTIL_WOKEN)
        return Wait(self.due_at - now)

    @property
    def free_slots(self) -> int:
        """How many slots hold no attempt."""
        return self.policy.slots - self._taken

    @property
    def claimable_slots(self) -> int:
        """How many slots one call may fill, once it has settled what is pending.

        Slots that another call in flight may fill do not count.
        """
        free = self.free_slots - self._reserved + len(self.pending)
        return min(free, -(-self.policy.slots // self.max_calls))

    def queue_requests(self) -> QueueRequests:
        """Return what to ask of each queue, as if all pending settlements and calls in flight were done."""
        done = Counter(one.attempt.claim.job.queue for one in self.pending)
        reserved = Counter({self.queues[0]: self._reserved})
        return self._queue_shares.queue_requests(self.claimable_slots, self._taken_by_queue + reserved - done)

    # ── what happens to it ────────────────────────────────────────────────────

    def look_for_work(self) -> None:
        """Look for work again, now."""
        self.may_have_work = True
        self.wake_up.set()

    @contextmanager
    def call_in_flight(self, settling: int, claiming: int) -> Generator[None]:
        """Reserve the slots that a call may fill beyond those it frees, while it is in flight.

        A call that claims resets `may_have_work` and `due_at`: its answer sets them again.
        """
        reserved = max(0, claiming - settling)
        self.calls_in_flight += 1
        self._reserved += reserved
        if claiming:
            self.may_have_work, self.due_at = False, None
        try:
            yield
        finally:
            self.calls_in_flight -= 1
            self._reserved -= reserved

    def take(self, claims: Sequence[Claim]) -> None:
        """Give each of these claims a slot."""
        starts = Counter(claim.job.queue for claim in claims)
        self._taken_by_queue += starts
        self._taken += len(claims)
        self._queue_shares.started(starts)

    def release(self, attempt: LiveAttempt) -> None:
        """Free the slot of an attempt."""
        self._taken_by_queue[attempt.claim.job.queue] -= 1
        self._taken -= 1
