"""All duties of a process: each is one pass, repeated while the process leads. Loops and sleeps nowhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from typing import Final

from fairlane.app.settings import Settings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.clean import clean
from fairlane.duties.diagnose import Diagnose
from fairlane.duties.duty_watch import Duty, DutyWatch, LedTime, duty_name
from fairlane.duties.expire import expire
from fairlane.duties.follow import follow
from fairlane.duties.journals.seal_audit import SealAudit
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.duties.leader_election import NAME, LeaderElection
from fairlane.duties.promote import promote
from fairlane.duties.prune import Prune
from fairlane.duties.reclaim import Reclaim
from fairlane.duties.schedules.fire import Fire
from fairlane.duties.stuck import TakeStuck
from fairlane.model.duty_report import DutyReports
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import Pass, repeat, run_all
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.store.contract import Store
from fairlane.store.contract.registry import DutiesRequest, LeaveRequest

log: Final = getLogger("fairlane.duties")


class Duties:
    """Does the duties while this process holds the leader lease, until cancelled.

    `worker` may differ from the worker's part of the settings: a command line changes it.
    """

    def __init__(
        self,
        name: str,
        store: Callable[[], Store],
        clock: Clock,
        settings: Settings,
        worker: WorkerSettings,
        outage: StoreOutage,
    ) -> None:
        self._name = name
        self._store = store
        self._time = LedTime(clock)
        self._watches: tuple[DutyWatch, ...] = ()
        self._election = LeaderElection(name, worker.lease, worker.renew_every, self._reports)
        self._outage = outage
        self._duties = all_duties(clock, worker, settings)
        self._is_keyed = settings.audit.key is not None

    async def run(self) -> None:
        """Lead if nobody else does, and do every duty as often as it asks for."""
        if not self._is_keyed:
            text = "audit.key is not set: the seals of the audit are checksums, which find no forger"
            log.info(text, extra={"event": "audit_without_key"})
        self._watches = tuple(
            DutyWatch(duty_name(duty), duty, self._name, self._time) for duty in self._duties
        )
        passes = [repeat(self._while_leading(one), self._election.new_wake_up()) for one in self._watches]
        election = retry_on_outage(self._with_store(self._elect), self._outage, ends_outage=True)
        await run_all(repeat(election), *passes)

    async def leave(self) -> None:
        """Give up the lead, so that another process can take it at once."""
        with suppress(StoreError):  # another process leads when the lease has expired
            await self._store().registry.leave(LeaveRequest(scope=Scope.all(), worker=self._name))

    async def _elect(self, store: Store) -> Micros:
        """Ask for the lead or keep it; whoever takes it goes on from what the leader before has reported."""
        was_leader, pause = self._election.is_leader, await self._election(store)
        if not self._election.is_leader:
            for watch in self._watches:
                watch.rest()
            return pause
        self._time.set(self._election.now)
        if not was_leader:
            before = await store.registry.duties(DutiesRequest(scope=Scope.all(), name=NAME))
            for watch in self._watches:
                watch.take_over(before.reports)
        return pause

    def _reports(self) -> DutyReports:
        return DutyReports(self._time.now(), tuple(one.report for one in self._watches if one.report))

    def _while_leading(self, watch: DutyWatch) -> Pass:
        retrying = retry_on_outage(self._with_store(watch), self._outage)

        async def one_pass() -> Micros | None:
            if not self._election.is_leader:
                return self._election.every
            try:
                return await retrying()
            except Exception:
                # An error in one duty must end neither the others nor, in a worker, its jobs.
                again, extra = watch.failed(), {"event": "duty_failed", "duty": watch.name}
                log.exception("duty %s failed; again in %d s", watch.name, again // SECOND, extra=extra)
                return again

        return one_pass

    def _with_store(self, duty: Duty) -> Pass:
        async def one_pass() -> Micros:
            return await duty(self._store())

        return one_pass


def all_duties(clock: Clock, worker: WorkerSettings, settings: Settings) -> tuple[Duty, ...]:
    """Return every duty, none of which has made a pass."""
    return (
        Reclaim(clock, worker, settings.retention),
        TakeStuck(clock, worker, settings.retention),
        promote,
        expire,
        clean,
        Prune(settings.retention, settings.archive),
        TellEvents(settings),
        SealAudit(settings.audit),
        follow,
        Fire(clock, must_be_declared=settings.tenancy == "declared"),
        Diagnose(clock, settings),
    )
