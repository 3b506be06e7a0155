"""Agree with other processes on who does the duties (S61). Correctness never depends on the answer."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import Final

from fairlane.model.duty_report import DutyReports
from fairlane.model.instants import Instant, Micros
from fairlane.model.scope import Scope
from fairlane.runtime.loops import WakeUp
from fairlane.store.contract import Store
from fairlane.store.contract.registry import LeadRequest

NAME: Final = "duties"
_log: Final = getLogger("fairlane.duties")


class LeaderElection:
    """Whether this process leads, as the store last said.

    The leader lease equals the job lease, so a killed leader is replaced when its jobs become reclaimable.
    """

    def __init__(
        self,
        name: str,
        lease: Micros,
        every: Micros,
        reports: Callable[[], DutyReports | None] = lambda: None,
    ) -> None:
        self.is_leader = False
        self.every = every
        self.now: Instant = 0
        """What time the store said it was, when this process asked last; while it leads."""
        self._reports = reports
        self._name = name
        self._lease = lease
        self._wake_ups: list[WakeUp] = []

    def new_wake_up(self) -> WakeUp:
        """Return a wake-up that is set when this process begins to lead."""
        self._wake_ups.append(WakeUp())
        return self._wake_ups[-1]

    async def __call__(self, store: Store) -> Micros:
        """Take the lead if it is free, or keep it."""
        # Before it knows that it leads, a process has nothing to report: what another has reported stays.
        reports = self._reports() if self.is_leader else None
        request = LeadRequest(
            scope=Scope.all(), name=NAME, worker=self._name, lease=self._lease, reports=reports
        )
        reply = await store.registry.lead(request)
        was_leader, self.is_leader = self.is_leader, reply.worker == self._name
        self.now = reply.until - self._lease
        if self.is_leader and not was_leader:
            _log.info("%s does the duties", self._name, extra={"event": "lead_taken", "worker": self._name})
            for wake_up in self._wake_ups:
                wake_up.set()
        return self.every
