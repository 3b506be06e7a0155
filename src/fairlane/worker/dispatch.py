"""Let claims wait for a slot, start them, and hand back what must not run here. Runs no handler itself.

Slots are filled in callbacks of the loop, one for all handlers that ended since the last one. They run in a
context of their own: a job must not inherit the context variables of the handler whose end made room for it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import copy_context
from functools import partial

from fairlane.app.client import Client
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.errors import StoreError
from fairlane.model.instants import Micros
from fairlane.model.job import Claim
from fairlane.model.retry.decision import HandedBack, Unknown
from fairlane.runtime.clock import Clock, ClockOffset
from fairlane.runtime.loops import WakeUp, call_soon
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts, StopCause
from fairlane.worker.attempts.unknown_tasks import (
    UNKNOWN_TASK,
    TaskAvailability,
    UnknownTasks,
    is_unknown,
    unknown_failure,
)
from fairlane.worker.breaker_outcomes import is_held_now
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
        lanes: Sequence[LaneState],
        worker: str,
        client: Client,
        settings: WorkerSettings,
        clock: Clock,
        clock_offset: ClockOffset,
        attempts: LiveAttempts,
        executor: Executor,
        timeouts: Timeouts,
        shutdown: Shutdown,
        timeouts_wake_up: WakeUp,
    ) -> None:
        self._client = client
        self._worker = worker
        self._settings = settings
        self._lease = settings.lease
        self._starts = 0
        self._clock = clock
        self._clock_offset = clock_offset
        self._attempts = attempts
        self._executor = executor
        self._timeouts = timeouts
        self._shutdown = shutdown
        self._timeouts_wake_up = timeouts_wake_up
        self._unknown_tasks = UnknownTasks(lambda: client.store, clock)
        self._context = copy_context()
        self._scheduled: set[LaneState] = set()
        self._starting = threading.RLock()  # one for all lanes: `max_jobs` counts the starts of all
        executor.next_in_thread = self.next_in_thread
        self._suspects = executor.children.suspect_line(self._start_suspect)
        self._has_warned = False
        shutdown.on_drain = self._hand_back_suspects
        for lane in lanes:
            lane.slots.lock = self._starting
            lane.on_vacant = partial(self._fill_soon, lane)

    def hold(self, claims: tuple[Claim, ...], lane: LaneState, asked_at: Micros) -> list[LiveAttempt]:
        """Hold claims from the moment they are here. Called in the portal thread: the loop may be blocked."""
        now = self._clock.elapsed()
        return [self._executor.hold(claim, lane, asked_at, now) for claim in claims]

    # ── claims that arrive ────────────────────────────────────────────────────

    async def start(self, attempts: list[LiveAttempt], asked_at: Micros) -> None:
        """Let attempts of one lane wait for a slot, and fill its free ones.

        Hands back those that were lost or stopped on the way, or are not known here.
        """
        if attempts and self._timeouts.is_idle:
            self._timeouts_wake_up.set()  # `Timeouts.check` sleeps for a minute while nothing runs
        unknown: list[LiveAttempt] = []
        for attempt in attempts:
            try:
                is_known = self._arrive(attempt)
            except BaseException as error:  # noqa: BLE001 (ends this attempt and no other)
                self._attempts.take_unstarted(attempt)
                self._executor.fail(attempt, error)
                continue
            if not is_known and self._attempts.take_unstarted(attempt):
                attempt.is_over = True
                unknown.append(attempt)
        if attempts:
            self._fill(attempts[0].lane)
        if unknown:
            await self._hand_back_unknown(unknown, asked_at)

    def _arrive(self, attempt: LiveAttempt) -> bool:
        """Let an attempt wait for a slot. Return False if its task is unknown here."""
        older = self._attempts.take(attempt)
        if older is not None:
            self._timeouts.stop(older, StopCause.STALE)
        if attempt.hold_error is not None:
            raise attempt.hold_error
        if is_unknown(attempt.claim.job, attempt.declared) and not self._must_go_back(attempt):
            return False
        if attempt.claim.job.is_suspect and self._may_line_up():
            self._suspects.enqueue(attempt)
        else:
            attempt.lane.enqueue(attempt)
        return True

    # ── slots that are free ───────────────────────────────────────────────────

    def _fill_soon(self, lane: LaneState) -> None:
        """Fill free slots in the loop's next iteration: until then more may become free."""
        if lane not in self._scheduled:
            self._scheduled.add(lane)
            call_soon(self._fill, lane, context=self._context)

    def _fill(self, lane: LaneState) -> None:
        """Start what waits, as far as there are slots for it (S48, S68)."""
        self._scheduled.discard(lane)
        now = self._clock.elapsed()
        with self._starting:
            while (attempt := lane.next_to_start(now)) is not None:
                if not self._attempts.take_unstarted(attempt):
                    continue  # the keep-alive has handed it back
                if self._must_go_back(attempt, now):
                    self._executor.settle(attempt, HandedBack(is_unstarted=True))
                    continue
                lane.slots.occupy(attempt, now)
                self._count_start()
                try:
                    self._executor.start(attempt)
                except BaseException as error:  # noqa: BLE001 (ends this attempt and no other)
                    self._executor.fail(attempt, error)
        if not lane.slots.waiting or not lane.calls_in_flight:
            lane.wake_up.set()

    def next_in_thread(self, ended: LiveAttempt) -> LiveAttempt | None:
        """Let the thread of a plain handler that has ended go on with the next job of its lane.

        Return None if the next one is not for a thread, or is the loop's to decide: it may have to go back,
        or be the last one. Called in that thread.
        """
        now, max_jobs = self._clock.elapsed(), self._settings.max_jobs

        def can_start(attempt: LiveAttempt) -> bool:
            return (
                self._executor.runs_in_thread(attempt)
                and not self._must_go_back(attempt, now)
                and (max_jobs is None or self._starts + 1 < max_jobs)
                and self._attempts.take_unstarted(attempt)
            )

        # Do not wait for the loop: it fills this slot, too, when it learns of the end.
        if not ended.lane.slots.waiting or not self._starting.acquire(blocking=False):
            return None
        try:
            following = ended.lane.pass_on(ended, now, can_start)
            self._starts += following is not None
        finally:
            self._starting.release()
        return following

    # ── suspects, who run alone ───────────────────────────────────────────────

    def _may_line_up(self) -> bool:
        """Whether suspects can run in a child (S39); warn once if not: they run beside others then."""
        can_run = self._executor.children.can_run
        if not can_run and not self._has_warned:
            self._has_warned = True
            report.suspects_in_place(self._worker)
        return can_run

    def _start_suspect(self, attempt: LiveAttempt) -> bool:
        """Take a suspect that is next in the line; False if it went back instead. It takes no slot."""
        if not self._attempts.take_unstarted(attempt):
            return False  # the keep-alive has handed it back
        now = self._clock.elapsed()
        if self._must_go_back(attempt, now):
            self._executor.settle(attempt, HandedBack(is_unstarted=True))
            return False
        attempt.started_at = now
        with self._starting:
            self._count_start()
        self._timeouts_wake_up.set()
        return True

    def _hand_back_suspects(self) -> None:
        for attempt in self._suspects.take_waiting():
            if self._attempts.take_unstarted(attempt):
                self._executor.settle(attempt, HandedBack(is_unstarted=True))

    def _count_start(self) -> None:
        """Begin the drain with the last job that the worker may start."""
        self._starts += 1
        max_jobs = self._settings.max_jobs
        if max_jobs is not None and self._starts >= max_jobs and not self._shutdown.is_draining:
            report.max_jobs_reached(self._worker, self._starts)
            self._shutdown.replace(self._settings.shutdown_deadline)

    def _must_go_back(self, attempt: LiveAttempt, now: Micros | None = None) -> bool:
        """Whether an attempt may not start: it was stopped or lost, its breaker opened, the worker drains."""
        now = self._clock.elapsed() if now is None else now
        return (
            self._shutdown.is_draining
            or attempt.cause is not None
            or may_be_lost(attempt, now, self._lease)
            or is_held_now(self._client, attempt)
        )

    # ── what goes back ────────────────────────────────────────────────────────

    def hand_back_waiting(self, lane: LaneState) -> None:
        """Hand back what waits for a slot: the worker drains, or a job before it turned out long (S68)."""
        now = self._clock.elapsed()
        for attempt in lane.take_waiting():
            if self._attempts.take_unstarted(attempt):
                self._executor.settle(attempt, HandedBack(is_unstarted=True))
        for running in lane.slots.running:  # so long already: the next claims look less far ahead
            job, took = running.claim.job, now - running.started_at
            if took > lane.look_ahead.expected(job.queue, job.task):
                lane.look_ahead.handler_took(job.queue, job.task, took)

    def forget(self, attempts: list[LiveAttempt]) -> None:
        """Forget attempts that the keep-alive has handed back."""
        for attempt in attempts:
            attempt.is_over = True
            with self._starting:
                attempt.lane.slots.leave(attempt)
            self._attempts.release(attempt)
            attempt.lane.look_for_work()

    async def _hand_back_unknown(self, attempts: list[LiveAttempt], asked_at: Micros) -> None:
        """Hand back jobs whose task or version is not known here, with how long nobody has known it.

        With `unknown_task = "fail"`, jobs of unknown tasks are dead at once; those of newer versions never.
        """
        if self._settings.unknown_task == "fail":
            for attempt in (one for one in attempts if one.declared is UNKNOWN_TASK):
                self._executor.settle(attempt, unknown_failure(attempt.claim.job))
            attempts = [one for one in attempts if one.declared is not UNKNOWN_TASK]
        if not attempts:
            return
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

    # ── what the keep-alive has found ─────────────────────────────────────────

    def stop(self, attempt: LiveAttempt, cause: StopCause) -> None:
        """Stop a handler because of what the keep-alive has found."""
        try:
            if cause is StopCause.STALE:
                self._attempts.orphan(attempt)
            self._timeouts.stop(attempt, cause)
        except BaseException as error:  # noqa: BLE001 (a callback: the event loop would only log it)
            self._shutdown.fail(error)
