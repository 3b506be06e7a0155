"""One lane of a worker: its slots, what waits for one, the settlements to send. Asks no store.

A job is in one of four places from its claim until the store has answered its settlement:

    waiting     claimed, not started: there was no slot for it, or it came a moment ago
    running     its handler runs and has a slot
    pending     its handler has ended; its settlement leaves with the next call
    in flight   its settlement is on its way

Only running handlers have slots. The others are what travels; `LookAhead` bounds it (S68).

Usually one call to the store is in flight. A lane of one queue may have as many as the store's
`concurrent_calls` (2 on PostgreSQL and Redis): the store works on one while the handlers of the other run. A
lane of several queues has one, because how the queues share it depends on what the last claim returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import Claim, Settlement
from fairlane.model.policy.declared import Lane
from fairlane.model.scheduling.lanes import LaneClock, QueueRequests
from fairlane.model.scheduling.look_ahead import (
    MAX_WAIT_AHEAD,
    MAX_WORK_A_CLAIM_HERE,
    MAX_WORK_AHEAD,
    LookAhead,
)
from fairlane.runtime.loops import WakeUp
from fairlane.store.contract.claims import ClaimReply, ClaimRequest
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.slots import Slots

UNTIL_WOKEN: Final[Micros] = 3_600 * SECOND
"""The pause of a lane with nothing to do: only its wake-up can bring it something."""

MAX_PENDING_TIME: Final[Micros] = SECOND // 100
"""How long a settlement may wait for a claim to travel with, while other jobs wait for a slot."""

_MAX_CLAIMS_WITHOUT: Final = 64
"""How many claims in a row look not ahead because careful jobs keep coming."""


class PendingSettlement(NamedTuple):
    """An attempt that is over, and how it is to be settled."""

    attempt: LiveAttempt
    settlement: Settlement


class FillSlots(NamedTuple):
    """Claim jobs for `slots` free slots and `ahead` more; what is pending is settled first, in one call.

    The last `headroom` of the slots are for tenants with nothing running (S48).
    """

    slots: int
    ahead: int = 0
    headroom: int = 0


class SettleOnly(NamedTuple):
    """Send the pending settlements and claim nothing."""


class HandBack(NamedTuple):
    """Hand back what waits for a slot: it has waited for too long (S68)."""


class Wait(NamedTuple):
    """Do nothing for so long, or until the lane is woken."""

    pause: Micros


LaneAction: TypeAlias = FillSlots | SettleOnly | HandBack | Wait


class LaneState:
    """A lane at work. A slot is taken while a handler runs (S47).

    Used by the worker's loop only, except `pass_on`.

    `may_have_work` is False from sending a claim until it returns full or partial, fails, or `look_for_work`
    is called. A due job is separate: `due_at` is when time alone makes the next job claimable.
    `calls_in_flight` counts calls to the store whose answers are not known yet.
    """

    def __init__(self, policy: Lane, concurrent_calls: int = 1) -> None:
        self.policy = policy
        self.queues = tuple(policy.shares())
        self.wake_up = WakeUp()
        self.on_vacant: Callable[[], None] = _nothing
        self.pending: list[PendingSettlement] = []
        max_a_claim = MAX_WORK_A_CLAIM_HERE if concurrent_calls == 1 else MAX_WORK_AHEAD
        self.look_ahead = LookAhead(policy.slots, max_a_claim)
        self.may_have_work = True
        self.max_calls = concurrent_calls if len(self.queues) == 1 else 1
        self.calls_in_flight = 0
        self.due_at: Micros | None = None
        self._queue_shares = LaneClock(policy)
        self.slots = Slots(policy.slots, policy.headroom_slots)
        self._headroom = policy.headroom_slots
        # Minimum shares are exact for any hundred starts, and are decided claim by claim.
        has_minimum = any(share.min_parts for share in policy.shares().values())
        self._max_ahead = 0 if has_minimum else policy.prefetch
        self._claimed_by_queue: Counter[str] = Counter()
        self._claimed = 0
        self._reserved = 0
        self._pending_since: Micros | None = None
        self._busy_since: Micros | None = None
        self._busy_starts = 0
        self._claims_without = 0
        self._next_claims_without = 1
        self._finds = 0

    # ── what to do next ───────────────────────────────────────────────────────

    def next_action(self, now: Micros, *, not_before: Micros = 0, is_draining: bool = False) -> LaneAction:
        """Decide what the lane does now. Changes nothing.

        `not_before` is set after an outage. A lane that `is_draining` claims nothing more.
        """
        oldest = self.slots.oldest
        if oldest is not None and (is_draining or now >= oldest.claimed_at + MAX_WAIT_AHEAD):
            return HandBack()
        if now < not_before:
            return Wait(self._bounded(not_before - now, now))
        if is_draining and self.calls_in_flight:
            # A job handed back now could come back through the call in flight: wait for it, then settle.
            return Wait(UNTIL_WOKEN)
        fill = FillSlots(0) if is_draining else self.claimable(now)
        is_due = self.due_at is not None and now >= self.due_at
        # A settlement is sent anyway: let it claim too.
        if fill.slots + fill.ahead > 0 and (self.may_have_work or self.pending or is_due):
            return fill
        if self.pending:
            send_in = self._send_in(now)
            return SettleOnly() if send_in <= 0 else Wait(self._bounded(send_in, now))
        if self.due_at is None or is_due:  # due, but no slot may be filled
            return Wait(self._bounded(UNTIL_WOKEN, now))
        return Wait(self._bounded(self.due_at - now, now))

    def claimable(self, now: Micros) -> FillSlots:
        """Return how many jobs one call may claim, for free slots and ahead.

        What waits, and what other calls in flight may bring, gets the free slots first. With two calls each
        asks for half of the slots at most, so that the store works on one while handlers of the other run.
        """
        free = self.slots.free - self.slots.waiting - self._reserved
        part = -(-self.policy.slots // self.max_calls)
        ahead = self._ahead(now)
        if ahead:
            # The last slots are not for everybody: what is claimed for them may have to wait, as if ahead.
            return FillSlots(max(0, min(free - self._headroom, part)), ahead)
        slots = max(0, min(free, part))
        return FillSlots(slots, 0, max(0, self._headroom - (free - slots)))

    def _ahead(self, now: Micros) -> int:
        """Return how many jobs to claim beyond the free slots (S68)."""
        wanted, limit = self.look_ahead.jobs, self._max_ahead
        if not wanted or limit == 0 or self._claims_without:
            return 0
        already = max(0, self.slots.waiting + self._reserved - self.slots.free)
        if self.slots.waiting and already > wanted:
            return 0  # enough for a round trip
        if self.slots.free <= self._headroom and self._free_soon(now) <= self._headroom:
            return 0  # the slots are held by long jobs, and the last ones are not for everybody (S48)
        most = self.look_ahead.max_jobs if limit is None else min(limit, self.look_ahead.max_jobs)
        return max(0, min(wanted, most - already))

    def _free_soon(self, now: Micros) -> int:
        """Return how many slots are free, or expected to be within a round trip."""
        ends_soon = self.look_ahead.ends_soon
        jobs = ((one.claim.job, now - one.started_at) for one in self.slots.running)
        return self.slots.free + sum(ends_soon(job.queue, job.task, age) for job, age in jobs)

    def _send_in(self, now: Micros) -> Micros:
        """Return how long the pending settlements may still wait for a claim to travel with."""
        if not self.slots.waiting or self._pending_since is None:
            return 0
        return self._pending_since + MAX_PENDING_TIME - now

    def _bounded(self, pause: Micros, now: Micros) -> Micros:
        """Return a pause that ends when what waits for a slot must go back."""
        oldest = self.slots.oldest
        return pause if oldest is None else max(0, min(pause, oldest.claimed_at + MAX_WAIT_AHEAD - now))

    # ── facts ─────────────────────────────────────────────────────────────────

    @property
    def claimed(self) -> int:
        """How many claims the lane holds, from their arrival until the store has answered their end."""
        return self._claimed

    def queue_requests(self, fill: FillSlots) -> QueueRequests:
        """Return what to ask of each queue."""
        reserved = Counter({self.queues[0]: self._reserved}) if self._reserved else Counter[str]()
        return self._queue_shares.queue_requests(fill.slots, self._claimed_by_queue + reserved, fill.ahead)

    # ── what happens to it ────────────────────────────────────────────────────

    def look_for_work(self) -> None:
        """Look for work again, now."""
        self.may_have_work = True
        self.wake_up.set()

    @contextmanager
    def call_in_flight(self, claiming: int) -> Generator[int]:
        """Reserve what a call may claim, while it is in flight; yield how many calls have found jobs so far.

        A call that claims resets `may_have_work` and `due_at`: its answer sets them again.
        """
        self.calls_in_flight += 1
        self._reserved += claiming
        if claiming:
            self.may_have_work, self.due_at = False, None
        try:
            yield self._finds
        finally:
            self.calls_in_flight -= 1
            self._reserved -= claiming

    def claim_answered(self, asked: ClaimRequest, reply: ClaimReply, finds: int) -> None:
        """Learn from the answer of a claim whether there is more. `finds` is what its `call_in_flight` gave.

        There may be if it was served in full, or stopped by a bound. One that came back short tells nothing
        if another call has found jobs since it was sent; nor, if only its headroom was left over, about the
        slots that it did not ask for.
        """
        came = len(reply.claims)
        free = self.slots.free - self.slots.waiting - self._reserved + asked.total - came
        if (
            came == asked.total
            or reply.is_partial
            or reply.is_ahead_cut
            or self._finds != finds
            or (came and came >= asked.total - asked.headroom and free > self._headroom)
        ):
            self.may_have_work = True
        self._finds += came > 0
        self._note_cut(asked, reply)

    def _note_cut(self, asked: ClaimRequest, reply: ClaimReply) -> None:
        """Let the next claims be for free slots only if a job may not be claimed ahead; ever more of them."""
        if reply.is_ahead_cut:
            self._claims_without = self._next_claims_without
            self._next_claims_without = min(_MAX_CLAIMS_WITHOUT, 2 * self._next_claims_without)
        elif asked.ahead and reply.claims:
            self._next_claims_without = 1
        elif self._claims_without:
            self._claims_without -= 1

    def start_order(self, attempts: list[LiveAttempt]) -> list[LiveAttempt]:
        """Return the attempts of one claim in the order in which they are to start."""
        if len(self.queues) == 1:
            return attempts
        order = self._queue_shares.start_order([one.claim.job.queue for one in attempts])
        return [attempts[at] for at in order]

    def take(self, claims: Sequence[Claim], now: Micros) -> None:
        """Count claims that have arrived."""
        with self.slots.lock:
            if self.slots.waiting and self._busy_starts > self.policy.slots:
                self._learn_pace(now)
                self._busy_since, self._busy_starts = now, 0
        starts = Counter(claim.job.queue for claim in claims)
        self._claimed_by_queue += starts
        self._claimed += len(claims)
        self._queue_shares.started(starts)

    def release(self, attempt: LiveAttempt) -> None:
        """Forget a claim: the store has answered its settlement, or it was lost."""
        self._claimed -= 1
        if not attempt.is_counted_out:
            self.vacate(attempt)
        if not attempt.is_counted_out:  # it had no slot
            self._count_out(attempt)

    # ── slots ─────────────────────────────────────────────────────────────────

    def enqueue(self, attempt: LiveAttempt) -> None:
        """Let an attempt wait for a slot."""
        with self.slots.lock:
            if not self.slots.waiting:
                self._busy_since, self._busy_starts = attempt.claimed_at, 0
            self.slots.enqueue(attempt)

    def next_to_start(self, now: Micros) -> LiveAttempt | None:
        """Take out the attempt that starts next, if one may; learn how fast jobs start.

        The caller holds the lock of the slots.
        """
        attempt = self.slots.next_to_start()
        if attempt is not None:
            self._busy_starts += 1
        elif not self.slots.waiting:
            self._learn_pace(now)
        return attempt

    def pass_on(
        self, ended: LiveAttempt, now: Micros, can_start: Callable[[LiveAttempt], bool]
    ) -> LiveAttempt | None:
        """Give the slot of a handler that has ended to what starts next, in the handler's thread.

        The caller holds the lock of the slots.
        """
        attempt = self.slots.pass_on(ended, now, can_start)
        if attempt is not None:
            self._busy_starts += 1
            if not self.slots.waiting:
                self._learn_pace(now)
        return attempt

    def take_waiting(self) -> list[LiveAttempt]:
        """Take out everything that waits for a slot."""
        with self.slots.lock:
            self._busy_since = None
            return self.slots.take_waiting()

    def vacate(self, attempt: LiveAttempt) -> None:
        """Free the slot of an attempt, if it has one: its handler has ended, or counts as ended.

        A plain handler's thread may have passed it on already.
        """
        with self.slots.lock:
            self.slots.vacate(attempt)
        if attempt.started_at and not attempt.is_counted_out:
            self._count_out(attempt)
            if self.slots.waiting:
                self.on_vacant()

    def _learn_pace(self, now: Micros) -> None:
        """Learn how fast jobs were started while others waited."""
        if self._busy_since is not None:
            self.look_ahead.starts_took(self._busy_starts, now - self._busy_since)
            self._busy_since = None

    def _count_out(self, attempt: LiveAttempt) -> None:
        attempt.is_counted_out = True
        self._claimed_by_queue[attempt.claim.job.queue] -= 1

    # ── settlements ───────────────────────────────────────────────────────────

    def settle(self, done: PendingSettlement, now: Micros) -> None:
        """Queue a settlement for the next call; the attempt no longer needs its slot."""
        if not self.pending:
            self._pending_since = now
        self.pending.append(done)
        self.vacate(done.attempt)
        if not self.slots.waiting or len(self.pending) == 1:
            self.wake_up.set()  # else the call that brings more jobs takes it along

    def take_pending(self) -> list[PendingSettlement]:
        """Take the settlements that are to be sent now."""
        taken, self.pending, self._pending_since = self.pending, [], None
        return taken

    def put_back(self, unsent: list[PendingSettlement]) -> None:
        """Queue settlements again that the store did not take, before the others."""
        self.pending[:0] = unsent


def _nothing() -> None:
    """Do nothing: nobody fills the slots of a lane that no dispatcher has."""
