"""All duties of a process: each one pass, repeated while the process leads. Loops and sleeps nowhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from logging import getLogger
from typing import Final, TypeAlias

from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.clean import clean
from fairlane.duties.expire import expire
from fairlane.duties.lead import Lead
from fairlane.duties.promote import promote
from fairlane.duties.prune import prune
from fairlane.duties.reclaim import Reclaim
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.retention import Retention
from fairlane.model.scope import Scope
from fairlane.runtime.absence import Absence, enduring
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import Pass, all_of, repeat
from fairlane.store.contract import Store
from fairlane.store.contract.registry import LeaveRequest

Duty: TypeAlias = Callable[[Store], Awaitable[Micros]]

AFTER_A_FAULT: Final[Micros] = 30 * SECOND

log: Final = getLogger("fairlane.duties")


class Duties:
    """Does the duties under one lead lease, until cancelled."""

    def __init__(
        self,
        name: str,
        store: Callable[[], Store],
        clock: Clock,
        retention: Retention,
        settings: WorkerSettings,
        absence: Absence,
    ) -> None:
        self._name = name
        self._store = store
        self._lead = Lead(name, settings.lease, settings.renew_every)
        self._absence = absence
        self._duties: tuple[Duty, ...] = (
            Reclaim(clock, settings),
            promote,
            expire,
            clean,
            partial(prune, retention=retention),
        )

    async def run(self) -> None:
        """Lead where nobody else does, and do every duty as often as it asks for."""
        passes = (repeat(self._led(duty), self._lead.bell()) for duty in self._duties)
        lead = enduring(self._asking(self._lead), self._absence, is_witness=True)
        await all_of(repeat(lead), *passes)

    async def leave(self) -> None:
        """Let others lead at once."""
        with suppress(StoreError):  # else they lead when the lease is over
            await self._store().registry.leave(LeaveRequest(scope=Scope.all(), worker=self._name))

    def _led(self, duty: Duty) -> Pass:
        led = enduring(self._asking(duty), self._absence)

        async def one_pass() -> Micros | None:
            if not self._lead.is_mine:
                return self._lead.every
            try:
                return await led()
            except Exception:
                # A fault in one duty ends neither the others nor, in a worker, the jobs beside them.
                log.exception("a duty failed, and is tried again", extra={"event": "duty_failed"})
                return AFTER_A_FAULT

        return one_pass

    def _asking(self, duty: Duty) -> Pass:
        async def one_pass() -> Micros:
            return await duty(self._store())

        return one_pass
