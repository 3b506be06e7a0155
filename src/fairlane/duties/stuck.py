"""Take back jobs that run far longer than they may although their worker reports (S31)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.pass_result import Pause, counted
from fairlane.duties.rest import OutageRest
from fairlane.model.instants import SECOND, Micros
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.claims import StuckClaim, StuckRequest
from fairlane.store.contract.request import Request

EVERY: Final[Micros] = 30 * SECOND

_log: Final = getLogger("fairlane.duties")


class TakeStuck:
    """Takes stuck claims back. Rests as reclaiming does: after an outage, workers settle what has ended.

    Claims of before a jump of the store's clock are left alone: how long they have run is not known.
    """

    def __init__(self, clock: Clock, settings: WorkerSettings, retention: Retention) -> None:
        self._retention = retention
        self._rest = OutageRest(clock, settings.renew_every)

    async def __call__(self, store: Store) -> Micros:
        """Take one pass unless it rests; return the pause before the next, zero if there was more."""
        rest = self._rest.left(await store.registry.status(Request(scope=Scope.all())))
        if rest > 0:
            return min(rest, EVERY)
        request = StuckRequest(
            scope=Scope.all(),
            started_after=self._rest.jumped_at,
            attempts_kept=self._retention.attempts,
        )
        reply = await store.claims.take_stuck(request)
        for stuck in reply.stuck:
            _log_stuck(stuck)
        return Pause(0 if reply.is_partial else EVERY, counted(len(reply.stuck), "taken back"))


def _log_stuck(stuck: StuckClaim) -> None:
    text = "job %s of task %s exceeded its timeout threshold on %s, which still reports, and is now %s"
    about = {"tenant": stuck.tenant, "job": str(stuck.id), "queue": stuck.queue, "task": stuck.task}
    extra = {"event": "job_stuck", "state": stuck.state.value, "worker": stuck.worker, **about}
    _log.critical(text, stuck.id, stuck.task, stuck.worker, stuck.state.value, extra=extra)
