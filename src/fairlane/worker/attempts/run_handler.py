"""Run a handler in a thread, or inside what the `tenant_context` hook returns. Settles nothing."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from fairlane.model.instants import Micros
from fairlane.runtime.thread_pool import ThreadPool
from fairlane.worker.attempts.live_attempts import LiveAttempt

Ended: TypeAlias = Callable[[LiveAttempt, Any, BaseException | None], None]
"""Called in the worker's loop when a handler has ended: with what it returned, or what it raised."""


Call: TypeAlias = Callable[[], Any]
"""A handler with its arguments, in the context of its attempt."""

Surrounding: TypeAlias = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

CallHandler: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Makes a call where its handler belongs: in the loop or in a thread."""


COLLECT_EVERY: Final = 0.001
"""How often, in seconds, the loop collects the ends of handlers whose threads have gone on."""


class _HandlerEnd(NamedTuple):
    """How a plain handler ended, and the attempt that its thread has gone on with.

    If it `is_unprepared`, the handler did not run: its arguments or its context could not be made.
    """

    attempt: LiveAttempt
    value: Any
    error: BaseException | None
    following: LiveAttempt | None
    is_unprepared: bool


class PlainHandlers(NamedTuple):
    """What a thread needs to go on by itself when a handler has ended.

    `following` returns the attempt that has its slot now, if there is one (S47, S48); `prepare` its call.
    `ended` and `unprepared` are called in the loop, the others in the thread.
    """

    following: Callable[[LiveAttempt], LiveAttempt | None]
    prepare: Callable[[LiveAttempt], Call]
    ended: Ended
    unprepared: Callable[[LiveAttempt, BaseException], None]
    elapsed: Callable[[], Micros]


class HandlerThreads:
    """Runs plain `def` handlers in threads, and brings their ends back to the worker's loop.

    To hand a job to a thread, and its end back, costs more than most handlers do: the threads and the loop
    take turns. So a thread goes on with what waits for a slot, and the loop collects many ends at a time: at
    once when a thread has nothing to go on with, else every `COLLECT_EVERY`.

    Its methods are called in the worker's loop only.
    """

    def __init__(self, handlers: PlainHandlers) -> None:
        self._handlers = handlers
        self._pool = ThreadPool("fairlane-handler")
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._ends: Final[deque[_HandlerEnd]] = deque()
        self._is_collecting = False
        self._is_collecting_later = False

    def run(self, attempt: LiveAttempt, call: Call) -> None:
        """Start a call in a thread; its end comes through `ended`. Needs no task in the loop."""
        attempt.thread_call = self._pool.submit(partial(self._run, attempt, call))

    # ── in the thread ─────────────────────────────────────────────────────────

    def _run(self, first: LiveAttempt, call: Call) -> None:
        """Run the call, and then whatever may start in its slot."""
        following = self._run_one(first, call, is_unprepared=False)
        while following is not None:
            attempt, is_unprepared = following, False
            try:
                call = self._handlers.prepare(attempt)
            except BaseException as error:  # noqa: BLE001 (settled in the loop)
                call, is_unprepared = partial(_raise, error), True
            following = self._run_one(attempt, call, is_unprepared=is_unprepared)

    def _run_one(self, attempt: LiveAttempt, call: Call, *, is_unprepared: bool) -> LiveAttempt | None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = call()
        except BaseException as raised:  # noqa: BLE001 (S28: whatever a handler raises ends its attempt only)
            error = raised
        self.exit_if_forked(error)
        attempt.ended_at = self._handlers.elapsed()
        following = self._handlers.following(attempt)
        self._ends.append(_HandlerEnd(attempt, value, error, following, is_unprepared))
        # Before the next handler begins, however long it runs; after the end is there to be collected.
        if not self._is_collecting and (following is None or not self._is_collecting_later):
            self._is_collecting = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits for an abandoned thread
                self._loop.call_soon_threadsafe(self._collect)
        return following

    # ── in the worker's loop ──────────────────────────────────────────────────

    def _collect(self) -> None:
        self._is_collecting = False
        has_gone_on = False
        while self._ends:
            attempt, value, error, following, is_unprepared = self._ends.popleft()
            thread_call, attempt.thread_call = (
                attempt.thread_call,
                None,
            )  # breaks a cycle: it holds the attempt
            if following is not None:
                has_gone_on = True
                following.thread_call = thread_call
            elif thread_call is not None:
                self._pool.ended(thread_call)
            if is_unprepared and error is not None:
                self._handlers.unprepared(attempt, error)
            else:
                self._handlers.ended(attempt, value, error)
        if has_gone_on and not self._is_collecting_later:
            self._is_collecting_later = True
            self._loop.call_later(COLLECT_EVERY, self._collect_later)

    def _collect_later(self) -> None:
        self._is_collecting_later = False
        self._collect()

    async def call(self, attempt: LiveAttempt, call: Call) -> Any:
        """Wait in the loop for a call in a thread. Cancelling the wait does not end the call."""
        # The error travels as a value: no future takes a StopIteration.
        done: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()

        def finish(value: Any, error: BaseException | None) -> None:
            if not done.cancelled():
                done.set_result((value, error))

        def run() -> None:
            value, error = None, None
            try:
                value = call()
            except BaseException as raised:  # noqa: BLE001 (raised again in the loop)
                error = raised
            self.exit_if_forked(error)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(finish, value, error)

        thread_call = self._pool.submit(partial(copy_context().run, run))
        attempt.thread_call = thread_call
        try:
            value, error = await done
        finally:
            self._pool.ended(thread_call)
        if error is not None:
            raise error
        return value

    def abandon(self, attempt: LiveAttempt) -> None:
        """Give up the thread of an attempt: it cannot be ended, and another takes its place."""
        self._collect()  # which thread it is may only be known since the end of the handler before it
        if attempt.thread_call is not None:
            self._pool.abandon(attempt.thread_call)

    def close(self) -> None:
        """Let idle threads end."""
        self._pool.close()

    def exit_if_forked(self, error: BaseException | None) -> None:
        """End this process if it is a child that the handler has forked: the worker is its parent's.

        The child's event loop shares the parent's selector. Closing it would make the parent deaf to signals
        and threads.
        """
        if os.getpid() != self._pid:
            os._exit(error is not None)


async def in_tenant_context(
    around: Surrounding | None, call_handler: CallHandler, call: Callable[[], Any], *, is_async: bool
) -> Any:
    """Make a call inside a context manager, which is left whatever happens.

    A plain context manager is entered where the handler runs: in its thread, if it has one.
    """
    result = None  # of a handler whose error the context manager swallows
    if isinstance(around, AbstractAsyncContextManager):
        async with around:
            result = await call_handler(call)
    elif around is None:
        result = await call_handler(call)
    elif is_async:
        with around:
            result = await call_handler(call)
    else:
        result = await call_handler(partial(_inside, around, call))
    return result


def _inside(around: AbstractContextManager[Any], call: Call) -> Any:
    with around:
        return call()


def _raise(error: BaseException) -> None:
    raise error
