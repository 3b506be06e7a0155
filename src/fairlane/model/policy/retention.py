"""How long finished jobs are stored (S52). Knows ages, not clocks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlane.model.instants import DAY, Micros
from fairlane.model.lifecycle.states import State


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long to store finished jobs: by state, or by queue or tenant. Counted from the settlement.

    `results` may be shorter than the time of their job; `keys` is how long idempotency keys are stored after
    the settlement.
    """

    succeeded: Micros = 7 * DAY
    cancelled: Micros = 7 * DAY
    dead: Micros = 30 * DAY
    results: Micros = 7 * DAY
    keys: Micros = 7 * DAY
    queues: Mapping[str, Micros] = {}
    tenants: Mapping[str, Micros] = {}

    def keep(self, state: State, queue: str, tenant: str) -> Micros:
        """Return the most specific time for a finished job: by tenant, then queue, then state.

        >>> Retention(queues={"bulk": 5}).keep(State.SUCCEEDED, "bulk", "acme")
        5
        """
        by_state = {
            State.SUCCEEDED: self.succeeded,
            State.CANCELLED: self.cancelled,
            State.DEAD: self.dead,
        }
        return self.tenants.get(tenant, self.queues.get(queue, by_state[state]))
