"""Renew all leases in one call, and find the attempts that were cancelled or lost (S30, S31, S37, S62).

Runs in the portal thread, which has an event loop and a store of its own, so that no handler can stall it.
What it finds goes to its listener, which sets the handler's stop flag at once and then tells the loop.
"""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol
from uuid import UUID

from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import HandedBack, decide_settlement
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.claims import Renewal, RenewRequest, SettleRequest, WorkerRequest
from fairlane.store.contract.jobs import GetRequest
from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts, StopCause

CANCEL_POLL_EVERY: Final[Micros] = SECOND
"""How often running jobs are checked for a cancel: S30 promises two seconds."""

GUARD_EVERY: Final[Micros] = SECOND // 4

BLOCKED_LOOP_GRACE: Final[Micros] = 10 * SECOND
"""Grace after the hard timeout. If a handler runs on and the loop did not turn for as long, it is blocked."""

STALLED_LOOP_GRACE: Final[Micros] = SECOND // 4
"""If the loop did not turn for this long, what it has not started goes back: others can run it (S68)."""

HAND_BACK_TIMEOUT: Final = 1.0
"""Seconds that handing back may take when the loop is blocked."""


class KeepAliveListener(Protocol):
    """Hears what the portal thread has found. Called in that thread."""

    def stop_attempt(self, attempt: LiveAttempt, cause: StopCause) -> None:
        """Stop a handler."""
        ...

    def handed_back(self, attempts: list[LiveAttempt]) -> None:
        """Called when unstarted attempts went back to the store."""
        ...

    def leases_renewed(self, at: Micros) -> None:
        """Called when every lease that may be kept was good at this moment."""
        ...

    def loop_blocked(self) -> None:
        """Called when a handler blocks the worker's event loop."""
        ...

    def memory_exceeded(self, used: int) -> None:
        """Called when the process takes more memory than `max_memory`."""
        ...

    def alive(self) -> None:
        """Called about once a second, as long as this thread runs."""
        ...


class LeaseRenewer:
    """Three repeated checks of the live attempts: renew, poll for cancels, guard."""

    def __init__(
        self,
        *,
        worker: str,
        lease: Micros,
        renew_every: Micros,
        attempts: LiveAttempts,
        clock: Clock,
        store: Callable[[], Store],
        listener: KeepAliveListener,
        loop_turned_at: Callable[[], Micros],
        attempts_kept: int,
    ) -> None:
        self._attempts_kept = attempts_kept
        self._worker = worker
        self._lease = lease
        self._every = renew_every
        self._attempts = attempts
        self._clock = clock
        self._store = store
        self._listener = listener
        self._loop_turned_at = loop_turned_at

    async def renew(self) -> Micros:
        """Renew every lease, send what handlers wrote along, and stop what is lost or cancelled."""
        now = self._clock.elapsed()
        kept = {one.claim.job.id: one for one in self._attempts.claimed()}
        if not kept:
            self._listener.leases_renewed(now)
            return self._every
        renewals = tuple(_renewal(attempt) for attempt in kept.values())
        request = RenewRequest(scope=Scope.all(), worker=self._worker, lease=self._lease, renewals=renewals)
        try:
            reply = await self._store().claims.renew(request)
        except StoreError:
            for unsent in renewals:
                _put_back(kept[unsent.id], unsent)
            raise
        for id in reply.stale:
            if not await self._has_committed(kept[id]):
                self._listener.stop_attempt(kept.pop(id), StopCause.STALE)
        for attempt in kept.values():  # also those that committed: the guard must not stop them
            attempt.leased_at = now
        self._listener.leases_renewed(now)
        self._cancel(reply.cancel_asked, kept)
        return self._every

    async def _has_committed(self, attempt: LiveAttempt) -> bool:
        """Whether a claim is gone because its handler's own transaction has settled the job (S63)."""
        if not attempt.control.has_succeeded:
            return False
        id = attempt.claim.job.id
        found = await self._store().jobs.get(GetRequest(scope=Scope.all(), ids=(id,)))
        job = found.get(id)
        return job is not None and job.state is State.SUCCEEDED

    async def poll_cancels(self) -> Micros:
        """Stop running jobs that were cancelled."""
        running = {one.claim.job.id: one for one in self._attempts.claimed() if one.cause is None}
        if running:
            request = WorkerRequest(scope=Scope.all(), worker=self._worker)
            self._cancel(await self._store().claims.cancel_asked(request), running)
        return CANCEL_POLL_EVERY

    async def guard(self) -> Micros:
        """Stop handlers whose lease could not be renewed in time, and notice a blocked event loop."""
        now, running = self._clock.elapsed(), self._attempts.running()
        for attempt in running:
            if may_be_lost(attempt, now, self._lease):
                self._listener.stop_attempt(attempt, StopCause.LOST)
        await self._hand_back_unstarted(now)
        # A handler alone proves nothing: one that was asked to stop has time beyond its hard timeout.
        has_turned = now - self._loop_turned_at() <= BLOCKED_LOOP_GRACE
        if not has_turned and any(is_overdue(attempt, now) for attempt in running):
            await self._hand_back()
            self._listener.loop_blocked()
        return GUARD_EVERY

    async def _hand_back_unstarted(self, now: Micros) -> None:
        """Hand back what waits for a slot while a handler blocks the loop, which cannot do so (S68)."""
        stalled_at = now - STALLED_LOOP_GRACE
        if self._loop_turned_at() >= stalled_at:
            return
        attempts = self._attempts
        old = (one for one in attempts.unstarted() if one.claimed_at < stalled_at)
        taken = [one for one in old if attempts.take_unstarted(one)]
        if not taken:
            return
        try:
            await self._settle_unstarted(taken)
        except (StoreError, TimeoutError):
            for attempt in taken:
                attempts.put_back_unstarted(attempt)
        else:
            self._listener.handed_back(taken)

    async def _hand_back(self) -> None:
        """Hand back what a blocked loop has not started (S32): `command` ends the process next.

        In an embedded worker, which only logs, this is repeated; the store answers that it is stale.
        """
        waiting = [one for one in self._attempts.claimed() if not (one.has_begun or one.is_over)]
        with suppress(StoreError, TimeoutError):
            await self._settle_unstarted(waiting)

    async def _settle_unstarted(self, attempts: list[LiveAttempt]) -> None:
        unstarted = HandedBack(is_unstarted=True)
        settlements = tuple(decide_settlement(attempt.claim, unstarted, draw=0) for attempt in attempts)
        request = SettleRequest(
            scope=Scope.all(),
            worker=self._worker,
            settlements=settlements,
            attempts_kept=self._attempts_kept,
        )
        async with timeout(HAND_BACK_TIMEOUT):
            await self._store().claims.settle(request)

    def _cancel(self, asked: tuple[UUID, ...], running: dict[UUID, LiveAttempt]) -> None:
        for id in asked:
            if id in running:
                self._listener.stop_attempt(running[id], StopCause.CANCEL)


def _renewal(attempt: LiveAttempt) -> Renewal:
    control = attempt.control
    return Renewal(
        attempt.claim.job.id,
        attempt.claim.fence,
        control.take_progress(),
        control.take_metadata(),
        control.take_spend(),
    )


def _put_back(attempt: LiveAttempt, unsent: Renewal) -> None:
    """Keep what a renewal would have stored for the next one."""
    if unsent.progress is not None:
        attempt.control.put_back(unsent.progress)
    if unsent.metadata is not None:
        attempt.control.put_back_metadata(unsent.metadata)
    if unsent.spent:
        attempt.control.put_back_spend()


def is_overdue(attempt: LiveAttempt, now: Micros) -> bool:
    """Whether a handler still runs ten seconds after its hard timeout (S31).

    Its lease is renewed all the same, because its worker lives: the store takes back what is stuck.
    """
    return not attempt.is_over and attempt.hard_at is not None and now > attempt.hard_at + BLOCKED_LOOP_GRACE


def may_be_lost(attempt: LiveAttempt, now: Micros, lease: Micros) -> bool:
    """Whether a lease was not renewed until 1 s before its end; half-way, for leases under 2 s (S37)."""
    return now - attempt.leased_at > max(lease - SECOND, lease // 2)
