"""The life of one attempt, to be read from top to bottom.

    1  `hold`                     the claim is here; its lease is renewed from now on     portal thread
    -  `Dispatcher`               it waits for a slot, if none is free                    worker's loop
    2  `start`                    its arguments are decoded                               worker's loop
    3  `_launch`, `_run_in_task`  its handler runs, as a task of the loop or in a thread
       `Children.run`             or in a child process, which also does 2 and 4
    4  `ended`                    what it returned or raised becomes a result; slot free  worker's loop
    5  `settle`                   the result becomes a settlement, which waits in a lane  worker's loop
    6  `RoundTrip`                the lane's next round trip sends it to the store        portal thread
    7  `Settler.answered`         the store has answered: the attempt is forgotten        worker's loop

Whatever is raised on the way settles that attempt as failed and concerns no other (`fail`); if even that
cannot be done, the worker ends. A lost claim or slot is a defect; `Shutdown` reports it.
"""

from __future__ import annotations

import random
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from typing import Any

import msgspec

from fairlane.app.ambient import Ambient, set_ambient
from fairlane.app.fairlane import Fairlane
from fairlane.app.resources import OpenResources
from fairlane.app.task.budgets import budget_of
from fairlane.app.task.context import Context, ambient_of
from fairlane.app.task.declaration import Declaration, with_task_settings
from fairlane.app.task.job_metadata import room_of
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.failure import ErrorClass, Failure, describe
from fairlane.model.instants import Instant, Micros, to_datetime
from fairlane.model.job import Claim
from fairlane.model.payload.encoding import Undecodable
from fairlane.model.retry.backoff import RetryPolicy
from fairlane.model.retry.decision import AttemptResult, Failed, HandedBack, PermanentFailure
from fairlane.model.scope import SYSTEM
from fairlane.runtime.clock import Clock, ClockOffset
from fairlane.runtime.loops import start_task
from fairlane.worker import report
from fairlane.worker.attempts.abandoned import AbandonedHandlers
from fairlane.worker.attempts.arguments import read_arguments
from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts, StopCause
from fairlane.worker.attempts.results import budget_spent, result_of, undecodable
from fairlane.worker.attempts.run_handler import HandlerThreads, PlainHandlers, in_tenant_context
from fairlane.worker.attempts.settlement import settlement_of
from fairlane.worker.attempts.soft_timeout import with_soft_timeout
from fairlane.worker.attempts.succeed_in import succeed_in
from fairlane.worker.attempts.unknown_tasks import UNKNOWN_TASK
from fairlane.worker.breaker_outcomes import breaker_of, note_outcome
from fairlane.worker.children.children import Children
from fairlane.worker.lane_state import LaneState, PendingSettlement
from fairlane.worker.renew import may_be_lost
from fairlane.worker.shutdown import Shutdown


class Executor:
    """Takes attempts from their claim to their settlement. Used by the worker's loop, except `hold`."""

    def __init__(
        self,
        *,
        worker: str,
        app: Fairlane,
        settings: WorkerSettings,
        clock: Clock,
        clock_offset: ClockOffset,
        attempts: LiveAttempts,
        shutdown: Shutdown,
        slots: int,
        resources: OpenResources,
    ) -> None:
        self._resources = resources
        self._worker = worker
        self._client = app.client
        self._settings = settings
        self._clock = clock
        self._clock_offset = clock_offset
        self._attempts = attempts
        self._shutdown = shutdown
        self._context_of_worker = copy_context()
        self.next_in_thread: Callable[[LiveAttempt], LiveAttempt | None] = lambda _: None
        self._threads = HandlerThreads(
            PlainHandlers(
                following=self._following,
                prepare=self._prepare_in_thread,
                ended=self.ended,
                unprepared=self._unprepared,
                elapsed=clock.elapsed,
            )
        )
        self.children = Children(
            app, worker, settings, slots=slots, clock=clock, ends=self, store_now=self._store_now
        )
        self._declarations: dict[str, Declaration] = {}
        self.abandoned = AbandonedHandlers()

    # ── 1. the claim is held ──────────────────────────────────────────────────

    def hold(self, claim: Claim, lane: LaneState, asked_at: Micros, now: Micros) -> LiveAttempt:
        """Hold a claim from the moment it is here. Called in the portal thread: the loop may be blocked."""
        attempt = LiveAttempt(claim, UNKNOWN_TASK, lane, asked_at)
        attempt.claimed_at = now
        try:
            attempt.declared = self._declaration(claim.job.task) or UNKNOWN_TASK
        except BaseException as error:  # noqa: BLE001 (fails this attempt when the loop takes it)
            attempt.hold_error = error
        self._attempts.hold(attempt)
        return attempt

    def _declaration(self, task: str) -> Declaration | None:
        """Return what is declared for a task, with the configuration laid over it; None if unknown here."""
        found = self._declarations.get(task)
        if found is None:
            declared = self._client.registry.find(task)
            if declared is not None:
                found = self._declarations[task] = with_task_settings(declared, self._client.settings.tasks)
        return found

    # ── 2. its arguments are decoded ──────────────────────────────────────────

    def start(self, attempt: LiveAttempt) -> None:
        """Decode the arguments and run the handler. Arguments that cannot be read make the job dead."""
        if attempt.claim.is_over_budget:
            self.settle(attempt, budget_spent(attempt.claim.job))
        elif self.children.are_for(attempt):
            self.children.run(attempt)  # which decodes them itself
        else:
            self._start_here(attempt)

    def _start_here(self, attempt: LiveAttempt) -> None:
        try:
            arguments = read_arguments(attempt.claim.job, attempt.declared)
        except Undecodable as error:
            self.settle(attempt, undecodable(error))
        else:
            self._launch(attempt, arguments)

    def runs_in_thread(self, attempt: LiveAttempt) -> bool:
        """Whether a thread can start this attempt without the loop. Called in any thread."""
        job, declared = attempt.claim.job, attempt.declared
        is_plain = declared is not UNKNOWN_TASK and not declared.handler.is_async
        is_here = not (self.children.are_for(attempt) or job.is_suspect or attempt.claim.is_over_budget)
        return is_plain and is_here and self._client.tenant_context is None

    def _following(self, ended: LiveAttempt) -> LiveAttempt | None:
        return self.next_in_thread(ended)

    def _prepare_in_thread(self, attempt: LiveAttempt) -> Callable[[], Any]:
        """Return the call of a plain handler that its thread goes on with."""
        arguments = read_arguments(attempt.claim.job, attempt.declared)
        variables = self._context_of_worker.copy()
        call = partial(variables.run, self._call(attempt, arguments, variables)[0])
        attempt.begin(self._clock.elapsed())
        return call

    def _unprepared(self, attempt: LiveAttempt, error: BaseException) -> None:
        """Settle an attempt that its thread could not start."""
        if isinstance(error, Undecodable):
            self.settle(attempt, undecodable(error))
        else:
            self.fail(attempt, error)

    # ── 3. its handler runs ───────────────────────────────────────────────────

    def _launch(self, attempt: LiveAttempt, arguments: dict[str, Any]) -> None:
        """Call the handler in its tenant's context: `async def` in a task, plain `def` in a thread.

        A plain handler gets a task as well if there is a `tenant_context` hook, which may be async.
        The end comes through `ended`, never before this has returned.
        """
        variables = copy_context()
        call, context = self._call(attempt, arguments, variables)
        if attempt.declared.handler.is_async or self._client.tenant_context is not None:
            attempt.task = start_task(self._run_in_task(attempt, context, call), variables)
        else:
            attempt.begin(self._clock.elapsed())
            self._threads.run(attempt, partial(variables.run, call))

    def _call(
        self, attempt: LiveAttempt, arguments: dict[str, Any], variables: Variables
    ) -> tuple[Callable[[], Any], Context | None]:
        """Return the handler with its arguments, and its context if it or a hook takes one."""
        job, declared, handler = attempt.claim.job, attempt.declared, attempt.declared.handler
        hook = self._client.tenant_context
        # The task may have been an ordinary one when the job was enqueued: it spans tenants only if the job
        # itself is in `system` (S8).
        spans_tenants = declared.system and job.tenant == SYSTEM
        context: Context | None = None
        journals = self._client.journals
        if handler.takes_context or hook is not None:
            context = self._context(attempt)
            variables.run(set_ambient, ambient_of(context, is_system=spans_tenants, journals=journals))
        else:  # the job is rendered when somebody asks for it: most handlers never do
            show = partial(self._client.show, job)
            variables.run(set_ambient, Ambient(job.tenant, show, spans_tenants, journals))
        given = (context,) if handler.takes_context else ()
        return partial(handler.func, *given, **arguments), context

    async def _run_in_task(
        self, attempt: LiveAttempt, context: Context | None, call: Callable[[], Any]
    ) -> None:
        """Run the handler, as the body of the attempt's task."""
        try:
            attempt.begin(self._clock.elapsed())
            hook = self._client.tenant_context
            if hook is None or context is None:
                value = await self._call_handler(attempt, call)
            else:
                call_handler = partial(self._call_handler, attempt)
                is_async = attempt.declared.handler.is_async
                value = await in_tenant_context(hook(context), call_handler, call, is_async=is_async)
        except BaseException as error:  # noqa: BLE001 (S28: whatever a handler raises ends its attempt only)
            self._task_ended(attempt, None, error)
        else:
            self._task_ended(attempt, value, None)

    def _call_handler(self, attempt: LiveAttempt, call: Callable[[], Any]) -> Awaitable[Any]:
        if not attempt.declared.handler.is_async:
            return self._threads.call(attempt, call)
        work = call()
        return work if attempt.soft_at is None else with_soft_timeout(work, attempt)

    def _context(self, attempt: LiveAttempt) -> Context:
        job = attempt.claim.job
        return Context(
            tenant=job.tenant,
            attempt=job.attempt,
            version=job.version,
            worker=self._worker,
            resources=self._resources,
            show=partial(self._client.show, job),
            fence=attempt.claim.fence,
            control=attempt.control,
            succeed=partial(succeed_in, self._client, self._worker, attempt),
            deadline=None if job.timeout is None else to_datetime(self._clock.wall() + job.timeout),
            metadata_room=room_of(job, self._client.settings.payload.max_size),
            budget=budget_of(attempt.declared, self._client.settings),
        )

    # ── 4. it has ended ───────────────────────────────────────────────────────

    def _task_ended(self, attempt: LiveAttempt, value: Any, error: BaseException | None) -> None:
        self._threads.exit_if_forked(error)
        attempt.task = None  # breaks the cycle task → context → attempt → task
        self.ended(attempt, value, error)

    def ended(self, attempt: LiveAttempt, value: Any, error: BaseException | None) -> None:
        """Turn what a handler returned or raised into a result; settle it unless its claim was lost."""
        if attempt.is_over:
            return  # abandoned before: what it did since changes nothing
        try:
            guard = breaker_of(self._client, attempt.declared)
            self._conclude(attempt, result_of(attempt, value, error, self._store_now, guard))
        except BaseException as broken:  # noqa: BLE001 (the loop and tasks, which call this, would drop it)
            self.fail(attempt, broken)

    def _conclude(self, attempt: LiveAttempt, result: AttemptResult | None) -> None:
        """Settle a result; forget the attempt if there is none, because its claim was lost."""
        job = attempt.claim.job
        if attempt.has_begun:
            took = (attempt.ended_at or self._clock.elapsed()) - attempt.began_at
            attempt.lane.look_ahead.handler_took(job.queue, job.task, took)
        if result is None and attempt.control.spent:
            result = HandedBack()  # the store answers that it is stale, and counts what was spent (S113)
        if result is None:
            attempt.is_over = True
            self._attempts.release(attempt)
            attempt.lane.wake_up.set()
        else:
            self.settle(attempt, result)

    def _store_now(self) -> Instant:
        return self._clock_offset.to_store(self._clock.elapsed())

    # ── 4, if its handler had a process ───────────────────────────────────────

    def child_ended(self, attempt: LiveAttempt, result: AttemptResult | None) -> None:
        """Take the result that a child has made of what its handler returned or raised."""
        if not attempt.is_over:
            try:
                self._conclude(attempt, None if attempt.cause is StopCause.STALE else result)
            except BaseException as raised:  # noqa: BLE001 (the loop, which calls this, would drop it)
                self.fail(attempt, raised)

    def child_died(self, attempt: LiveAttempt, how: str) -> None:
        """Fail an attempt whose process died: a crash of its own (S40), unless it was being stopped."""
        if attempt.cause is None and may_be_lost(attempt, self._clock.elapsed(), self._settings.lease):
            attempt.cause = StopCause.LOST  # the guardian was faster than we
        if attempt.cause is not None:
            self.ended(attempt, None, CancelledError())
        else:
            report.child_died(attempt, how)
            if attempt.declared.isolation != "process":
                self.children.quarantine.add(attempt.claim.job.task)
            message = f"the process of the handler ended: {how}"
            self.child_ended(attempt, Failed(Failure(ErrorClass.CRASH, "fairlane.ProcessDied", message)))

    def child_refused(self, attempt: LiveAttempt, failure: Failure) -> None:
        """Fail an attempt for which there is no child; run it here if it is only in quarantine."""
        if attempt.declared.isolation == "process" or attempt.claim.job.is_suspect:
            self.child_ended(attempt, Failed(failure))
            return
        try:
            self._start_here(attempt)
        except BaseException as error:  # noqa: BLE001 (ends this attempt and no other)
            self.fail(attempt, error)

    def child_not_needed(self, attempt: LiveAttempt) -> None:
        """End an attempt that was stopped before it had a child."""
        if attempt.cause is StopCause.SHUTDOWN:
            self.child_ended(attempt, HandedBack(is_unstarted=True))
        else:
            self.ended(attempt, None, CancelledError())

    # ── 5. its settlement is decided and queued ───────────────────────────────

    def settle(self, attempt: LiveAttempt, result: AttemptResult) -> None:
        """Decide what a result means for the job, and queue the settlement for the lane's next round trip."""
        attempt.is_over = True
        note_outcome(attempt, result)
        policies: tuple[RetryPolicy | None, ...] = ()
        if isinstance(result, (Failed, PermanentFailure)):  # a union would be made anew each time
            cut = self._client.settings.errors.cut(result.failure)
            result = msgspec.structs.replace(result, failure=cut)
        if isinstance(result, Failed):
            queue = self._client.settings.queue(attempt.claim.job.queue)
            policies = (attempt.declared.retry, queue.retry)
            if result.classifier_error is not None:
                report.classifier_failed(attempt, result.classifier_error)
            if result.delay_error is not None:
                report.retry_delay_failed(attempt, result.delay_error)
        tail = attempt.control.tail
        settlement = settlement_of(
            attempt,
            result,
            *policies,
            draw=random.random(),  # noqa: S311 (spreads retries, guards nothing)
            max_crashes=self._settings.max_crashes,
            log=None if tail is None else tail.text(),
        )
        attempt.lane.settle(PendingSettlement(attempt, settlement), self._clock.elapsed())

    # ── when a step raises ────────────────────────────────────────────────────

    def fail(self, attempt: LiveAttempt, error: BaseException) -> None:
        """Fail an attempt because our code, or a hook, raised; not its handler.

        Its retry policies decide. If they raised, the default backoff does. If that raises too, the worker
        ends.
        """
        try:
            report.attempt_broken(attempt, error)
            result = Failed(describe(error, ErrorClass.RETRYABLE))
            try:
                self.settle(attempt, result)
            except BaseException:  # noqa: BLE001 (a policy or the log raised: settle without them)
                settlement = settlement_of(attempt, result, draw=random.random())  # noqa: S311 (as above)
                attempt.lane.settle(PendingSettlement(attempt, settlement), self._clock.elapsed())
        except BaseException as worse:  # noqa: BLE001 (nothing is left but to end)
            self._shutdown.fail(worse)

    # ── handlers that do not end ──────────────────────────────────────────────

    def abandon(self, attempt: LiveAttempt) -> None:
        """Give up a handler that did not stop in time; with too many of them, ask for a new worker."""
        if attempt.child is not None:
            attempt.child.kill(attempt)
            attempt.child = None
            return
        self.abandoned.add(attempt)
        self._threads.abandon(attempt)
        if attempt.task is not None:
            # A plain handler's task only waits for the thread: cancelling exits the tenant context.
            attempt.task.cancel()
        if self.abandoned.count > self._settings.max_abandoned and not self._shutdown.is_draining:
            report.too_many_abandoned(self._worker, self.abandoned.count)
            self._shutdown.replace(self._settings.shutdown_deadline)

    @property
    def has_abandoned(self) -> bool:
        """Whether an async handler that was abandoned still has not ended."""
        return self.abandoned.has_tasks

    async def aclose(self) -> None:
        """Cancel what still runs, let idle threads end, and end all children."""
        for attempt in self._attempts.running():
            if attempt.task is not None:
                attempt.task.cancel()
        self._threads.close()
        await self.children.aclose()
