"""The life of one attempt, to be read from top to bottom.

    1  `hold`                     the claim is here; its lease is renewed from now on     portal thread
    -  `Dispatcher`               it waits for a slot, if none is free                    worker's loop
    2  `start`                    its arguments are decoded                               worker's loop
    3  `_launch`, `_run_in_task`  its handler runs, as a task of the loop or in a thread
    4  `ended`                    what it returned or raised becomes a result; slot free  worker's loop
    5  `settle`                   the result becomes a settlement, which waits in a lane  worker's loop
    6  `RoundTrip`                the lane's next round trip sends it to the store        portal thread
    7  `Settler.answered`         the store has answered: the attempt is forgotten        worker's loop

Whatever is raised on the way settles that attempt as failed and concerns no other (`fail`); if even that
cannot be done, the worker ends. A lost claim or slot is a defect; `Shutdown` reports it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import Any

from fairlane.app.ambient import Ambient, set_ambient
from fairlane.app.client import Client
from fairlane.app.task.context import Context, ambient_of
from fairlane.app.task.declaration import Declaration, with_task_settings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.failure import ErrorClass, describe
from fairlane.model.instants import Instant, Micros, to_datetime
from fairlane.model.job import Claim, JobRecord
from fairlane.model.payload.encoding import Undecodable, decode_arguments, verify
from fairlane.model.retry.backoff import RetryPolicy
from fairlane.model.retry.decision import AttemptResult, Failed, decide_settlement
from fairlane.model.scope import SYSTEM
from fairlane.runtime.clock import Clock, ClockOffset
from fairlane.runtime.loops import start_task
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts
from fairlane.worker.attempts.results import result_of, undecodable
from fairlane.worker.attempts.run_handler import HandlerThreads, in_tenant_context
from fairlane.worker.attempts.soft_timeout import with_soft_timeout
from fairlane.worker.attempts.succeed_in import succeed_in
from fairlane.worker.attempts.unknown_tasks import UNKNOWN_TASK
from fairlane.worker.lane_state import LaneState, PendingSettlement
from fairlane.worker.shutdown import Shutdown


class Executor:
    """Takes attempts from their claim to their settlement. Used by the worker's loop, except `hold`."""

    def __init__(
        self,
        *,
        worker: str,
        client: Client,
        settings: WorkerSettings,
        clock: Clock,
        clock_offset: ClockOffset,
        attempts: LiveAttempts,
        shutdown: Shutdown,
    ) -> None:
        self._worker = worker
        self._client = client
        self._settings = settings
        self._clock = clock
        self._clock_offset = clock_offset
        self._attempts = attempts
        self._shutdown = shutdown
        self._threads = HandlerThreads(self.ended)
        self._declarations: dict[str, Declaration] = {}
        self._abandoned: list[asyncio.Task[None]] = []

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
        try:
            arguments = read_arguments(attempt.claim.job, attempt.declared)
        except Undecodable as error:
            self.settle(attempt, undecodable(error))
        else:
            self._launch(attempt, arguments)

    # ── 3. its handler runs ───────────────────────────────────────────────────

    def _launch(self, attempt: LiveAttempt, arguments: dict[str, Any]) -> None:
        """Call the handler in its tenant's context: `async def` in a task, plain `def` in a thread.

        A plain handler gets a task as well if there is a `tenant_context` hook, which may be async.
        The end comes through `ended`, never before this has returned.
        """
        job, declared, handler = attempt.claim.job, attempt.declared, attempt.declared.handler
        hook = self._client.tenant_context
        # The task may have been an ordinary one when the job was enqueued: it spans tenants only if the job
        # itself is in `system` (S8).
        spans_tenants = declared.system and job.tenant == SYSTEM
        variables = copy_context()
        context: Context | None = None
        if handler.takes_context or hook is not None:
            context = self._context(attempt)
            variables.run(set_ambient, ambient_of(context, is_system=spans_tenants))
        else:  # the job is rendered when somebody asks for it: most handlers never do
            variables.run(set_ambient, Ambient(job.tenant, partial(self._client.show, job), spans_tenants))
        given = (context,) if handler.takes_context else ()
        call = partial(handler.func, *given, **arguments)
        if handler.is_async or hook is not None:
            attempt.task = start_task(self._run_in_task(attempt, context, call), variables)
        else:
            attempt.begin(self._clock.elapsed())
            self._threads.run(attempt, partial(variables.run, call))

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
            show=partial(self._client.show, job),
            fence=attempt.claim.fence,
            control=attempt.control,
            succeed=partial(succeed_in, self._client, self._worker, attempt),
            deadline=None if job.timeout is None else to_datetime(self._clock.wall() + job.timeout),
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
        job = attempt.claim.job
        if attempt.has_begun:
            took = self._clock.elapsed() - attempt.began_at
            attempt.lane.look_ahead.handler_took(job.queue, job.task, took)
        try:
            result = result_of(attempt, value, error, self._store_now)
            if result is None:
                attempt.is_over = True
                self._attempts.release(attempt)
                attempt.lane.wake_up.set()
            else:
                self.settle(attempt, result)
        except BaseException as broken:  # noqa: BLE001 (the loop and tasks, which call this, would drop it)
            self.fail(attempt, broken)

    def _store_now(self) -> Instant:
        return self._clock_offset.to_store(self._clock.elapsed())

    # ── 5. its settlement is decided and queued ───────────────────────────────

    def settle(self, attempt: LiveAttempt, result: AttemptResult) -> None:
        """Decide what a result means for the job, and queue the settlement for the lane's next round trip."""
        attempt.is_over = True
        policies: tuple[RetryPolicy | None, ...] = ()
        if isinstance(result, Failed):
            queue = self._client.settings.queue(attempt.claim.job.queue)
            policies = (attempt.declared.retry, queue.retry)
            if result.classifier_error is not None:
                report.classifier_failed(attempt, result.classifier_error)
        tail = attempt.control.tail
        settlement = decide_settlement(
            attempt.claim,
            result,
            *policies,
            draw=random.random(),  # noqa: S311 (spreads retries, guards nothing)
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
                settlement = decide_settlement(attempt.claim, result, draw=random.random())  # noqa: S311 (as above)
                attempt.lane.settle(PendingSettlement(attempt, settlement), self._clock.elapsed())
        except BaseException as worse:  # noqa: BLE001 (nothing is left but to end)
            self._shutdown.fail(worse)

    # ── handlers that do not end ──────────────────────────────────────────────

    def abandon(self, attempt: LiveAttempt) -> None:
        """Give up a handler that did not stop in time."""
        self._threads.abandon(attempt)
        if attempt.task is not None:
            # A plain handler's task only waits for the thread: cancelling exits the tenant context.
            attempt.task.cancel()
            self._abandoned = [task for task in (*self._abandoned, attempt.task) if not task.done()]

    @property
    def has_abandoned(self) -> bool:
        """Whether an async handler that was abandoned still has not ended."""
        return any(not task.done() for task in self._abandoned)

    def close(self) -> None:
        """Cancel what still runs, and let idle threads end."""
        for attempt in self._attempts.running():
            if attempt.task is not None:
                attempt.task.cancel()
        self._threads.close()


def read_arguments(job: JobRecord, declared: Declaration) -> dict[str, Any]:
    """Return a job's arguments by name, as its handler takes them today (S33).

    `Undecodable` if their bytes have changed, or cannot be read or upcast.
    """
    verify(job.payload, job.checksum)
    arguments = decode_arguments(job.payload, enums=declared.handler.argument_enums)
    if job.version == declared.version:
        return arguments
    return declared.upcasters.upcast(arguments, job.version, declared.version)
