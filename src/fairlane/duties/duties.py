"""All duties of a process: each is one pass, repeated while the process leads. Loops and sleeps nowhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from logging import getLogger
from typing import Final, TypeAlias

from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.clean import clean
from fairlane.duties.expire import expire
from fairlane.duties.leader_election import LeaderElection
from fairlane.duties.promote import promote
from fairlane.duties.prune import prune
from fairlane.duties.reclaim import Reclaim
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import Pass, repeat, run_all
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.store.contract import Store
from fairlane.store.contract.registry import LeaveRequest

Duty: TypeAlias = Callable[[Store], Awaitable[Micros]]

RETRY_AFTER_ERROR: Final[Micros] = 30 * SECOND

log: Final = getLogger("fairlane.duties")


class Duties:
    """Does the duties while this process holds the leader lease, until cancelled."""

    def __init__(
        self,
        name: str,
        store: Callable[[], Store],
        clock: Clock,
        retention: Retention,
        settings: WorkerSettings,
        outage: StoreOutage,
    ) -> None:
        self._name = name
        self._store = store
        self._election = LeaderElection(name, settings.lease, settings.renew_every)
        self._outage = outage
        self._duties: tuple[Duty, ...] = (
            Reclaim(clock, settings),
            promote,
            expire,
            clean,
            partial(prune, retention=retention),
        )

    async def run(self) -> None:
        """Lead if nobody else does, and do every duty as often as it asks for."""
        passes = (repeat(self._while_leading(duty), self._election.new_wake_up()) for duty in self._duties)
        election = retry_on_outage(self._with_store(self._election), self._outage, ends_outage=True)
        await run_all(repeat(election), *passes)

    async def leave(self) -> None:
        """Give up the lead, so that another process can take it at once."""
        with suppress(StoreError):  # another process leads when the lease has expired
            await self._store().registry.leave(LeaveRequest(scope=Scope.all(), worker=self._name))

    def _while_leading(self, duty: Duty) -> Pass:
        retrying = retry_on_outage(self._with_store(duty), self._outage)

        async def one_pass() -> Micros | None:
            if not self._election.is_leader:
                return self._election.every
            try:
                return await retrying()
            except Exception:
                # An error in one duty must end neither the others nor, in a worker, its jobs.
                log.exception("a duty failed and will be tried again", extra={"event": "duty_failed"})
                return RETRY_AFTER_ERROR

        return one_pass

    def _with_store(self, duty: Duty) -> Pass:
        async def one_pass() -> Micros:
            return await duty(self._store())

        return one_pass
