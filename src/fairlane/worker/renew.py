"""Keep the leases of all that is held, in one call, and hear what became of them (S30, S31, S37, S62).

Lives in a thread with a loop and a store of its own, so that no handler can stall it. What it hears it tells
the worker's loop, and the handlers' own flags at once.
"""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol
from uuid import UUID

from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.judge import HandedBack, judge
from fairlane.model.lifecycle import State
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.claims import Renewal, RenewRequest, SettleRequest, WorkerRequest
from fairlane.store.contract.jobs import GetRequest
from fairlane.worker.attempt import Attempt, Cause
from fairlane.worker.holdings import Holdings

LOOK_FOR_CANCELS: Final[Micros] = SECOND
"""How often running jobs are looked up for a cancel: twice as often as S30 asks, so that two seconds hold."""

GUARD: Final[Micros] = SECOND // 4

STANDSTILL: Final[Micros] = 10 * SECOND
"""So long after its hard limit a handler is still there: the loop that should have ended it stands still."""


LAST_TRY: Final = 1.0
"""Seconds that handing back may take then."""


class Alarm(Protocol):
    """What the renewing thread tells its worker; called in that thread."""

    def alarm(self, attempt: Attempt, cause: Cause) -> None:
        """Stop a handler."""
        ...

    def stands_still(self) -> None:
        """The worker's loop does not turn any more."""
        ...


class Renew:
    """The passes of the renewing thread."""

    def __init__(
        self,
        *,
        worker: str,
        lease: Micros,
        renew_every: Micros,
        holdings: Holdings,
        clock: Clock,
        store: Callable[[], Store],
        alarm: Alarm,
    ) -> None:
        self._worker = worker
        self._lease = lease
        self._every = renew_every
        self._holdings = holdings
        self._clock = clock
        self._store = store
        self._alarm = alarm

    async def leases(self) -> Micros:
        """Renew all that is held and may be kept; stop what is lost or cancelled."""
        now = self._clock.elapsed()
        kept = {attempt.claim.job.id: attempt for attempt in self._holdings.held() if may_renew(attempt, now)}
        if not kept:
            return self._every
        notes = {id: attempt.rein.take_progress() for id, attempt in kept.items()}
        renewals = tuple(Renewal(id, attempt.claim.fence, notes[id]) for id, attempt in kept.items())
        request = RenewRequest(scope=Scope.all(), worker=self._worker, lease=self._lease, renewals=renewals)
        try:
            reply = await self._store().claims.renew(request)
        except StoreError:
            for id, untold in notes.items():
                if untold is not None:
                    kept[id].rein.put_back(untold)
            raise
        for id in reply.stale:
            if not await self._has_committed(kept[id]):
                self._alarm.alarm(kept.pop(id), Cause.STALE)
        for attempt in kept.values():
            attempt.leased_at = now
        self._cancel(reply.cancel_asked, kept)
        return self._every

    async def _has_committed(self, attempt: Attempt) -> bool:
        """Whether a claim is gone because its handler's own transaction has settled the job (S63)."""
        if not attempt.rein.has_succeeded:
            return False
        id = attempt.claim.job.id
        found = await self._store().jobs.get(GetRequest(scope=Scope.all(), ids=(id,)))
        job = found.get(id)
        return job is not None and job.state is State.SUCCEEDED

    async def cancels(self) -> Micros:
        """Look for cancels of what runs."""
        running = {
            attempt.claim.job.id: attempt for attempt in self._holdings.held() if attempt.cause is None
        }
        if running:
            request = WorkerRequest(scope=Scope.all(), worker=self._worker)
            self._cancel(await self._store().claims.asked_to_cancel(request), running)
        return LOOK_FOR_CANCELS

    async def guard(self) -> Micros:
        """Stop what could not be renewed in time, and notice a loop that stands still."""
        now = self._clock.elapsed()
        for attempt in self._holdings.running():
            if may_be_lost(attempt, now, self._lease):
                self._alarm.alarm(attempt, Cause.LOST)
            if attempt.hard_at is not None and now > attempt.hard_at + STANDSTILL:
                await self._hand_back()
                self._alarm.stands_still()
        return GUARD

    async def _hand_back(self) -> None:
        """Give back, before the process ends, what a loop that stands still has not begun (S32)."""
        waiting = [one for one in self._holdings.held() if not (one.has_begun or one.is_over)]
        settlements = tuple(judge(attempt.claim, HandedBack(), draw=0) for attempt in waiting)
        request = SettleRequest(scope=Scope.all(), worker=self._worker, settlements=settlements)
        with suppress(StoreError, TimeoutError):
            async with timeout(LAST_TRY):
                await self._store().claims.settle(request)

    def _cancel(self, asked: tuple[UUID, ...], running: dict[UUID, Attempt]) -> None:
        for id in asked:
            if id in running:
                self._alarm.alarm(running[id], Cause.CANCEL)


def may_renew(attempt: Attempt, now: Micros) -> bool:
    """Whether a lease is still worth keeping: until ten seconds after its hard limit (S31).

    What is over keeps its lease until its settlement is accepted.
    """
    return attempt.is_over or attempt.hard_at is None or now <= attempt.hard_at + STANDSTILL


def may_be_lost(attempt: Attempt, now: Micros, lease: Micros) -> bool:
    """Whether another may soon have the job: for lease - 1 s nobody knew its lease to be good (S37)."""
    return now - attempt.leased_at > max(lease - SECOND, lease // 2)
