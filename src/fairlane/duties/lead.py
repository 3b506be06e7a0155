"""Agree with other processes on who does the duties (S61). Correctness never depends on the answer."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.runtime.loops import Bell
from fairlane.store.contract import Store
from fairlane.store.contract.registry import LeadRequest

NAME: Final = "duties"
LEASE: Final[Micros] = 12 * SECOND
EVERY: Final[Micros] = 4 * SECOND

_log: Final = getLogger("fairlane.duties")


class Lead:
    """Whether this process leads, as last heard. The bell rings when it begins to."""

    def __init__(self, name: str) -> None:
        self.is_mine = False
        self._name = name
        self._bells: list[Bell] = []

    def bell(self) -> Bell:
        """Give a bell that rings when this process begins to lead."""
        self._bells.append(Bell())
        return self._bells[-1]

    async def __call__(self, store: Store) -> Micros:
        """Ask for the lead, or keep it."""
        request = LeadRequest(scope=Scope.all(), name=NAME, worker=self._name, lease=LEASE)
        reply = await store.registry.lead(request)
        was_mine, self.is_mine = self.is_mine, reply.worker == self._name
        if self.is_mine and not was_mine:
            _log.info("%s does the duties", self._name, extra={"event": "lead_taken", "worker": self._name})
            for bell in self._bells:
                bell.ring()
        return EVERY
