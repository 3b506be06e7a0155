"""Agree with other processes on who does the duties (S61). Correctness never depends on the answer."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.model.instants import Micros
from fairlane.model.scope import Scope
from fairlane.runtime.loops import Bell
from fairlane.store.contract import Store
from fairlane.store.contract.registry import LeadRequest

NAME: Final = "duties"
_log: Final = getLogger("fairlane.duties")


class Lead:
    """Whether this process leads, as last heard. The bell rings when it begins to.

    The lead lasts as long as the leases of jobs: if the leader is killed, whose jobs wait for another, then
    that is there when the leases of the jobs are over.
    """

    def __init__(self, name: str, lease: Micros, every: Micros) -> None:
        self.is_mine = False
        self.every = every
        self._name = name
        self._lease = lease
        self._bells: list[Bell] = []

    def bell(self) -> Bell:
        """Give a bell that rings when this process begins to lead."""
        self._bells.append(Bell())
        return self._bells[-1]

    async def __call__(self, store: Store) -> Micros:
        """Ask for the lead, or keep it."""
        request = LeadRequest(scope=Scope.all(), name=NAME, worker=self._name, lease=self._lease)
        reply = await store.registry.lead(request)
        was_mine, self.is_mine = self.is_mine, reply.worker == self._name
        if self.is_mine and not was_mine:
            _log.info("%s does the duties", self._name, extra={"event": "lead_taken", "worker": self._name})
            for bell in self._bells:
                bell.ring()
        return self.every
