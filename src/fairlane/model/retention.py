"""How long finished jobs are kept (S52). Knows ages, not clocks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlane.model.instants import DAY, Micros
from fairlane.model.lifecycle import State


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """Times to keep: by state, and by queue or tenant where they differ. Counted from settling.

    `results` bounds results inside the time of their job; `keys` is how long idempotency keys outlive the
    job's settling.
    """

    succeeded: Micros = 7 * DAY
    cancelled: Micros = 7 * DAY
    dead: Micros = 30 * DAY
    results: Micros = 7 * DAY
    keys: Micros = 7 * DAY
    queues: Mapping[str, Micros] = {}
    tenants: Mapping[str, Micros] = {}

    def keep(self, state: State, queue: str, tenant: str) -> Micros:
        """Choose the most specific time for a finished job: tenant, then queue, then state.

        >>> Retention(queues={"bulk": 5}).keep(State.SUCCEEDED, "bulk", "acme")
        5
        """
        by_state = {
            State.SUCCEEDED: self.succeeded,
            State.CANCELLED: self.cancelled,
            State.DEAD: self.dead,
        }
        return self.tenants.get(tenant, self.queues.get(queue, by_state[state]))
