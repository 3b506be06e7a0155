"""Hand the claims of a round trip to the executor, and hand back what must not run here. Runs no handler."""

from __future__ import annotations

from fairlane.app.client import Client
from fairlane.model.errors import StoreError
from fairlane.model.instants import Micros
from fairlane.model.job import Claim
from fairlane.model.retry.decision import HandedBack, Unknown
from fairlane.runtime.clock import Clock, ClockOffset
from fairlane.runtime.loops import WakeUp
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts, StopCause
from fairlane.worker.attempts.unknown_tasks import UNKNOWN_TASK, TaskAvailability, UnknownTasks, is_unknown
from fairlane.worker.execute import Executor
from fairlane.worker.lane_state import LaneState
from fairlane.worker.renew import may_be_lost
from fairlane.worker.shutdown import Shutdown
from fairlane.worker.timeouts import Timeouts


class Dispatcher:
    """Starts claimed jobs, and stops them for the keep-alive. Used by the worker's loop, except `hold`."""

    def __init__(
        self,
        *,
        client: Client,
        lease: Micros,
        clock: Clock,
        clock_offset: ClockOffset,
        attempts: LiveAttempts,
        executor: Executor,
        timeouts: Timeouts,
        shutdown: Shutdown,
        timeouts_wake_up: WakeUp,
    ) -> None:
        self._client = client
        self._lease = lease
        self._clock = clock
        self._clock_offset = clock_offset
        self._attempts = attempts
        self._executor = executor
        self._timeouts = timeouts
        self._shutdown = shutdown
        self._timeouts_wake_up = timeouts_wake_up
        self._unknown_tasks = UnknownTasks(lambda: client.store, clock)

    def hold(self, claims: tuple[Claim, ...], lane: LaneState, asked_at: Micros) -> list[LiveAttempt]:
        """Hold claims from the moment they are here. Called in the portal thread: the loop may be blocked."""
        return [self._executor.hold(claim, lane, asked_at) for claim in claims]

    async def start(self, attempts: list[LiveAttempt], asked_at: Micros) -> None:
        """Start attempts; hand back those that were lost or stopped on the way, or are not known here."""
        if attempts and self._timeouts.is_idle:
            self._timeouts_wake_up.set()  # `Timeouts.check` sleeps for a minute while nothing runs
        unknown: list[LiveAttempt] = []
        now = self._clock.elapsed()
        for attempt in attempts:
            try:
                is_known = self._start_one(attempt, now)
            except BaseException as error:  # noqa: BLE001 (ends this attempt and no other)
                self._executor.fail(attempt, error)
                continue
            if not is_known:
                attempt.is_over = True
                unknown.append(attempt)
        if unknown:
            await self._hand_back_unknown(unknown, asked_at)

    def _start_one(self, attempt: LiveAttempt, now: Micros) -> bool:
        """Start an attempt or hand it back. Return False and start nothing if its task is unknown here."""
        older = self._attempts.take(attempt)
        if older is not None:
            self._timeouts.stop(older, StopCause.STALE)
        if attempt.hold_error is not None:
            raise attempt.hold_error
        if self._shutdown.is_draining or attempt.cause is not None or may_be_lost(attempt, now, self._lease):
            self._executor.settle(attempt, HandedBack())
        elif is_unknown(attempt.claim.job, attempt.declared):
            return False
        else:
            self._executor.start(attempt)
        return True

    def stop(self, attempt: LiveAttempt, cause: StopCause) -> None:
        """Stop a handler because of what the keep-alive has found."""
        try:
            if cause is StopCause.STALE:
                self._attempts.orphan(attempt)
            self._timeouts.stop(attempt, cause)
        except BaseException as error:  # noqa: BLE001 (a callback: the event loop would only log it)
            self._shutdown.fail(error)

    async def _hand_back_unknown(self, attempts: list[LiveAttempt], asked_at: Micros) -> None:
        """Hand back jobs whose task or version is not known here, with how long nobody has known it."""
        jobs = [attempt.claim.job for attempt in attempts]
        try:
            asking = self._unknown_tasks.availability(jobs, self._clock_offset.to_store(asked_at))
            found = await self._client.portal.call(asking)
        except StoreError:
            found = [TaskAvailability()] * len(jobs)
        except Exception as error:  # noqa: BLE001 (settles these attempts, and the lane goes on)
            for attempt in attempts:
                self._executor.fail(attempt, error)
            return
        for attempt, seen in zip(attempts, found, strict=True):
            newest = None if attempt.declared is UNKNOWN_TASK else attempt.declared.version
            is_first = self._unknown_tasks.is_first_of_kind(attempt.claim.job)
            report.unknown_task(attempt, newest, is_first_of_kind=is_first)
            self._executor.settle(attempt, Unknown(seen.unseen_for, newest, seen.is_live))
