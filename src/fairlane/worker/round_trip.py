"""Round trips with the store: settle what is over, claim what can start soon, start what came (S35, S66).

The lane decides what to do (`LaneState.next_action`); this module does it. The store is called in the portal
thread: a handler that blocks the worker's loop can delay the start of a claimed job, but not its renewal. A
settlement that the store did not take stays pending and is sent again until it is taken or stale.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from fairlane.app.client import Client
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.scheduling.look_ahead import MAX_WAIT_AHEAD
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock, ClockOffset
from fairlane.runtime.outage import StoreOutage
from fairlane.store.contract.claims import ClaimReply, ClaimRequest, QueueRequest, SettleReply, SettleRequest
from fairlane.store.contract.registry import StoreStatus
from fairlane.store.contract.request import Request
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.breaker_outcomes import tell_outcomes
from fairlane.worker.dispatch import Dispatcher
from fairlane.worker.hints import HintListener
from fairlane.worker.lane_state import (
    UNTIL_WOKEN,
    FillSlots,
    HandBack,
    LaneState,
    PendingSettlement,
    SettleOnly,
    Wait,
)
from fairlane.worker.settle import Settler, settle_all
from fairlane.worker.shutdown import Shutdown

_MIN_PAUSE: Final[Micros] = SECOND // 200
"""A job that is due now is asked for again no sooner than this."""


class _Answer(NamedTuple):
    """What the store answered and when, and the attempts now held, whose leases are renewed from here on."""

    settled: SettleReply
    claimed: ClaimReply | None
    held: list[LiveAttempt]
    at: Micros


class RoundTrip:
    """The round trips of one lane, one after the other. A lane may have several of these (`max_calls`)."""

    def __init__(
        self,
        lane: LaneState,
        *,
        worker: str,
        lease: Micros,
        client: Client,
        clock: Clock,
        clock_offset: ClockOffset,
        dispatcher: Dispatcher,
        settler: Settler,
        shutdown: Shutdown,
        hints: HintListener,
        outage: StoreOutage,
    ) -> None:
        self._lane = lane
        self._worker = worker
        self._lease = lease
        self._client = client
        self._clock = clock
        self._clock_offset = clock_offset
        self._dispatcher = dispatcher
        self._settler = settler
        self._shutdown = shutdown
        self._hints = hints
        self._outage = outage
        self._not_before: Micros = 0
        self._attempts_kept = client.settings.retention.attempts

    async def __call__(self) -> Micros | None:
        """Do what the lane wants next; return the pause before the next pass, None if the lane has ended."""
        lane, now = self._lane, self._clock.elapsed()
        if self._shutdown.end_if_done(lane):
            return None
        action = lane.next_action(now, not_before=self._not_before, is_draining=self._shutdown.is_draining)
        if self._shutdown.is_paused and isinstance(action, FillSlots):
            pause = MAX_WAIT_AHEAD if lane.slots.waiting else UNTIL_WOKEN
            action = SettleOnly() if lane.pending else Wait(pause)
        if isinstance(action, Wait):
            return action.pause
        if isinstance(action, HandBack):
            self._dispatcher.hand_back_waiting(lane)
            return 0
        claim = self._claim_request(action) if isinstance(action, FillSlots) else None
        batch = self._settler.drop_superseded(lane.take_pending())
        mark = self._outage.mark()
        try:
            with lane.call_in_flight(0 if claim is None else claim.total) as finds:
                await self._exchange(batch, claim, finds)
        except StoreError as error:
            # A settlement that was applied after all is stale the next time, which does no harm.
            lane.put_back(batch)
            lane.may_have_work = True
            pause = self._outage.failed(error)
            self._not_before = self._clock.elapsed() + pause
            return pause
        self._outage.answered(mark)
        return 0

    def _claim_request(self, fill: FillSlots) -> ClaimRequest:
        requests = self._lane.queue_requests(fill)
        return ClaimRequest(
            scope=Scope.all(),
            worker=self._worker,
            lease=self._lease,
            queue_requests=tuple(QueueRequest(queue, limit) for queue, limit in requests),
            total=fill.slots + fill.ahead,
            headroom=fill.headroom,
            ahead=fill.ahead,
            names_breakers=bool(self._client.breaker_memory.declared),
        )

    async def _exchange(self, batch: list[PendingSettlement], claim: ClaimRequest | None, finds: int) -> None:
        """Call the store, hand its answers to the settler, and its claims to the dispatcher."""
        asked_at = self._clock.elapsed()
        self_settled = [done for done in batch if done.attempt.control.has_succeeded]
        if self_settled:
            # The handler's own transaction may still hold these jobs: the others must not wait for it.
            self._settler.answered(self_settled, await self._client.portal.call(self._confirm(self_settled)))
            # In place: after a StoreError the caller sends again what is left.
            batch[:] = [done for done in batch if not done.attempt.control.has_succeeded]
        answer = await self._client.portal.call(self._call_store(batch, claim, asked_at))
        if batch:
            self._settler.answered(self._answered_for(batch, answer.settled), answer.settled)
        if claim is not None and answer.claimed is None:
            self._lane.may_have_work = True  # settlements were sent one by one, and no claim went along
        elif claim is not None and answer.claimed is not None:
            self._lane.claim_answered(claim, answer.claimed, finds)
            await self._start(claim, answer.claimed, answer, asked_at)
            await self._note_next_due(answer.claimed.next_due_at)

    # ── in the portal thread ──────────────────────────────────────────────────

    async def _call_store(
        self, batch: list[PendingSettlement], claim: ClaimRequest | None, asked_at: Micros
    ) -> _Answer:
        """Settle and claim; hold what was claimed from this moment on."""
        claims = self._client.store.claims
        settled, claimed = SettleReply(), None
        await tell_outcomes(self._client, batch)
        if batch:
            settled = await settle_all(
                batch,
                lambda whole: claims.settle(self._settle_request(whole, claim)),
                lambda one: claims.settle(self._settle_request(one)),
            )
            claimed = settled.claimed
        elif claim is not None:
            claimed = await claims.claim(claim)
        if claimed is not None and claimed.open_breakers is not None:
            self._client.breaker_memory.hear(claimed.open_breakers)  # before any of these jobs can start
        held = [] if claimed is None else self._dispatcher.hold(claimed.claims, self._lane, asked_at)
        if claimed is not None and claimed.permits:
            for attempt in held:
                attempt.has_permit = attempt.claim.job.id in claimed.permits
        return _Answer(settled, claimed, held, self._clock.elapsed())

    async def _confirm(self, self_settled: list[PendingSettlement]) -> SettleReply:
        """Settle attempts that succeeded in their handler's own transaction, unless it is still open."""
        return await self._client.store.claims.settle(self._settle_request(self_settled, waits=False))

    def _settle_request(
        self, batch: list[PendingSettlement], claim: ClaimRequest | None = None, *, waits: bool = True
    ) -> SettleRequest:
        settlements = tuple(done.settlement for done in batch)
        return SettleRequest(
            scope=Scope.all(),
            worker=self._worker,
            settlements=settlements,
            claim=claim,
            waits=waits,
            attempts_kept=self._attempts_kept,
        )

    async def _read_store_clock(self) -> StoreStatus:
        return await self._client.store.registry.status(Request(scope=Scope.all()))

    # ── back in the worker's loop ─────────────────────────────────────────────

    def _answered_for(self, batch: list[PendingSettlement], reply: SettleReply) -> list[PendingSettlement]:
        """Return the settlements that the reply names; the others are pending again."""
        if len(reply.settled) + len(reply.stale) == len(batch):
            return batch
        named = {one.id for one in reply.settled}.union(reply.stale)
        self._lane.put_back([done for done in batch if done.settlement.id not in named])
        return [done for done in batch if done.settlement.id in named]

    async def _start(self, asked: ClaimRequest, reply: ClaimReply, answer: _Answer, asked_at: Micros) -> None:
        lane, claims = self._lane, reply.claims
        lane.look_ahead.round_trip_took(answer.at - asked_at)
        if claims:
            claimed_at = claims[0].lease_until - asked.lease  # in the store's time
            self._clock_offset.update(claimed_at, asked_at)
        held = lane.start_order(answer.held)
        lane.take(claims, answer.at)
        await self._dispatcher.start(held, asked_at)
        if not lane.may_have_work:
            self._hints.work_wanted.set()

    async def _note_next_due(self, next_due_at: Instant | None) -> None:
        """Note when time alone makes the next job claimable."""
        self._lane.due_at = None
        if next_due_at is None:
            return
        now = self._clock.elapsed()
        if self._clock_offset.to_local(next_due_at) <= now:
            # Already due by our estimate: a moment passed, or the store's clock was changed. Measure again.
            with suppress(StoreError):
                status = await self._client.portal.call(self._read_store_clock())
                self._clock_offset.update(status.now, now)
        self._lane.due_at = max(now + _MIN_PAUSE, self._clock_offset.to_local(next_due_at))
