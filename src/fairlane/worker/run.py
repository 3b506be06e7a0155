"""Run handlers: `async def` in the event loop, plain `def` in threads, each inside its tenant's context.

Whatever a handler raises, be it `SystemExit`, ends its attempt and nothing else: this is the one module that
catches everything, and what happens next is always `over`, which makes an ending of it (S28).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from contextvars import copy_context
from functools import partial
from types import coroutine
from typing import Any, Final, TypeAlias

from fairlane.app.ambient import Ambient, enter
from fairlane.app.client import Client
from fairlane.app.context import Context, SoftTimeout, ambient_of
from fairlane.model.instants import to_datetime
from fairlane.model.scope import SYSTEM
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import start
from fairlane.runtime.threads import Threads
from fairlane.worker.attempt import Attempt
from fairlane.worker.succeed import succeed_in

Over: TypeAlias = Callable[[Attempt, Any, BaseException | None], None]
"""Hears how a handler ended: with a result, or by raising."""

Surrounding: TypeAlias = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]


class Runner:
    """Starts attempts and tells how they end. Used from the worker's loop only."""

    def __init__(self, worker: str, client: Client, clock: Clock, over: Over) -> None:
        self._worker = worker
        self._client = client
        self._clock = clock
        self._over = over
        self._threads = Threads("fairlane-handler")
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._ended: Final[deque[tuple[Attempt, Any, BaseException | None]]] = deque()
        self._is_rung = False
        self._abandoned: list[asyncio.Task[None]] = []

    @property
    def has_abandoned(self) -> bool:
        """Whether a task that was given up has not ended since."""
        return any(not task.done() for task in self._abandoned)

    def start(self, attempt: Attempt, arguments: dict[str, Any]) -> None:
        """Begin an attempt; its end comes by `over`, never before this has returned."""
        declared, handler = attempt.declared, attempt.declared.handler
        # Whoever stored the job may have known the task as another: only in `system` it acts for all (S8).
        is_wide = declared.system and attempt.claim.job.tenant == SYSTEM
        own = copy_context()
        if handler.takes_context or self._client.tenant_context is not None:
            context = self._context(attempt)
            own.run(enter, ambient_of(context, is_system=is_wide))
            given = (context,) if handler.takes_context else ()
            call = partial(handler.func, *given, **arguments)
            if self._client.tenant_context is not None:
                attempt.task = start(self._run_surrounded(attempt, context, call), own)
                return
        else:
            job = attempt.claim.job  # shown when somebody looks: most handlers never do
            own.run(enter, Ambient(job.tenant, partial(self._client.show, job), is_wide))
            call = partial(handler.func, **arguments)
        if handler.is_async:
            attempt.task = start(self._run_async(attempt, call), own)
        else:
            attempt.begin(self._clock.elapsed())
            self._submit(attempt, partial(own.run, call))

    def _context(self, attempt: Attempt) -> Context:
        job = attempt.claim.job
        return Context(
            tenant=job.tenant,
            attempt=job.attempt,
            version=job.version,
            worker=self._worker,
            show=partial(self._client.show, job),
            fence=attempt.claim.fence,
            rein=attempt.rein,
            succeed=partial(succeed_in, self._client, self._worker, attempt),
            deadline=None if job.timeout is None else to_datetime(self._clock.wall() + job.timeout),
        )

    def abandon(self, attempt: Attempt) -> None:
        """Count no more on a handler that did not end in time."""
        if attempt.ticket is not None:
            self._threads.abandon(attempt.ticket)
        if attempt.task is not None:
            attempt.task.cancel()  # for a thread, ends the wait for it and leaves what surrounds it
            self._abandoned = [task for task in (*self._abandoned, attempt.task) if not task.done()]

    def close(self) -> None:
        """Let idle threads end."""
        self._threads.close()

    # ── in the loop ───────────────────────────────────────────────────────────

    async def _run_async(self, attempt: Attempt, call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            attempt.begin(self._clock.elapsed())
            result = await (call() if attempt.soft_at is None else _softly(call(), attempt))
        except BaseException as error:  # noqa: BLE001 (S28: whatever a handler raises ends its attempt only)
            self._tell(attempt, None, error)
        else:
            self._tell(attempt, result, None)

    async def _run_surrounded(self, attempt: Attempt, context: Context, call: Callable[[], Any]) -> None:
        """Run a handler inside what the application's hook gives for its tenant, left whatever happens."""
        try:
            attempt.begin(self._clock.elapsed())
            result = await self._surrounded(attempt, context, call)
        except BaseException as error:  # noqa: BLE001 (as above; the hook is the application's, too)
            self._tell(attempt, None, error)
        else:
            self._tell(attempt, result, None)

    def _tell(self, attempt: Attempt, result: Any, error: BaseException | None) -> None:
        self._end_fork(error)
        # A task holds its context, that the attempt, and that the task: the collector would have to find out.
        attempt.task = None
        self._over(attempt, result, error)

    async def _surrounded(self, attempt: Attempt, context: Context, call: Callable[[], Any]) -> Any:
        hook = self._client.tenant_context
        around: Surrounding | None = None if hook is None else hook(context)
        result = None  # of a handler whose error is swallowed by what surrounds it
        if isinstance(around, AbstractAsyncContextManager):
            async with around:
                result = await self._called(attempt, call)
        elif around is None:
            result = await self._called(attempt, call)
        elif attempt.declared.handler.is_async:
            with around:
                result = await self._called(attempt, call)
        else:
            result = await self._called(attempt, partial(_inside, around, call))
        return result

    async def _called(self, attempt: Attempt, call: Callable[[], Any]) -> Any:
        if not attempt.declared.handler.is_async:
            return await self._in_thread(attempt, call)
        if attempt.soft_at is None:
            return await call()
        return await _softly(call(), attempt)

    # ── in threads ────────────────────────────────────────────────────────────

    async def _in_thread(self, attempt: Attempt, call: Callable[[], Any]) -> Any:
        """Wait in the loop for a function in a thread; being cancelled ends the wait, not the function."""
        # The error is carried as a value: no future takes a StopIteration.
        done: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()

        def tell(result: Any, error: BaseException | None) -> None:
            if not done.cancelled():
                done.set_result((result, error))

        def work() -> None:
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 (carried to the loop, where it ends the attempt)
                tell_loop(None, error)
            else:
                tell_loop(result, None)

        def tell_loop(result: Any, error: BaseException | None) -> None:
            self._end_fork(error)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(tell, result, error)

        ticket = self._threads.submit(partial(copy_context().run, work))
        attempt.ticket = ticket
        try:
            result, error = await done
        finally:
            self._threads.ended(ticket)
        if error is not None:
            raise error
        return result

    def _submit(self, attempt: Attempt, call: Callable[[], Any]) -> None:
        attempt.ticket = self._threads.submit(partial(self._work, attempt, call))

    def _work(self, attempt: Attempt, call: Callable[[], Any]) -> None:
        """Run a plain handler, in its thread, and bring its end to the loop: many ends in one call."""
        end: tuple[Attempt, Any, BaseException | None]
        try:
            end = (attempt, call(), None)
        except BaseException as error:  # noqa: BLE001 (as above)
            end = (attempt, None, error)
        self._end_fork(end[2])
        self._ended.append(end)
        if not self._is_rung:
            self._is_rung = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits for an abandoned thread
                self._loop.call_soon_threadsafe(self._collect)

    def _end_fork(self, error: BaseException | None) -> None:
        """End a child that a handler has forked and that comes back from it: all of this is its parent's.

        Its loop shares the parent's selector. Closing it would make the parent deaf to signals and threads.
        """
        if os.getpid() != self._pid:
            os._exit(error is not None)

    def _collect(self) -> None:
        self._is_rung = False
        while self._ended:
            attempt, result, error = self._ended.popleft()
            if attempt.ticket is not None:
                self._threads.ended(attempt.ticket)
                attempt.ticket = None  # as above: the ticket holds the attempt
            self._over(attempt, result, error)


def _inside(around: AbstractContextManager[Any], call: Callable[[], Any]) -> Any:
    with around:
        return call()


@coroutine
def _softly(work: Coroutine[Any, Any, Any], attempt: Attempt) -> Generator[Any, Any, Any]:
    """Pass everything between the loop and a handler, but let its soft timeout arrive as itself.

    The worker cancels the task; here, at the outermost frame, that becomes `SoftTimeout`, once. What the
    handler awaits was cancelled properly by then.
    """
    step: Callable[[], Any] = partial(work.send, None)
    while True:
        try:
            awaited = step()
        except StopIteration as end:
            return end.value
        try:
            step = partial(work.send, (yield awaited))
        except asyncio.CancelledError as cancelled:
            is_soft = attempt.cause is None and attempt.rein.take_soft()
            step = partial(work.throw, SoftTimeout() if is_soft else cancelled)
            if is_soft and attempt.task is not None:
                attempt.task.uncancel()
        except BaseException as error:  # noqa: BLE001 (passed on to where it was meant to go)
            step = partial(work.throw, error)
