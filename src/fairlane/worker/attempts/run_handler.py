"""Run a handler in a thread, or inside what the `tenant_context` hook returns. Settles nothing."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeAlias

from fairlane.runtime.thread_pool import ThreadPool
from fairlane.worker.attempts.live_attempts import LiveAttempt

Ended: TypeAlias = Callable[[LiveAttempt, Any, BaseException | None], None]
"""Called in the worker's loop when a handler has ended: with what it returned, or what it raised."""


Surrounding: TypeAlias = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

CallHandler: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Makes a call where its handler belongs: in the loop or in a thread."""


class HandlerThreads:
    """Runs plain `def` handlers in threads, and brings their ends back to the worker's loop.

    Its methods are called in the worker's loop only.
    """

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._pool = ThreadPool("fairlane-handler")
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._ends: Final[deque[tuple[LiveAttempt, Any, BaseException | None]]] = deque()
        self._is_collecting = False

    def run(self, attempt: LiveAttempt, call: Callable[[], Any]) -> None:
        """Start a call in a thread; its end comes through `ended`. Needs no task in the loop."""
        attempt.thread_call = self._pool.submit(partial(self._run, attempt, call))

    def _run(self, attempt: LiveAttempt, call: Callable[[], Any]) -> None:
        """Run the call, in its thread. Many ends reach the loop in one callback."""
        end: tuple[LiveAttempt, Any, BaseException | None]
        try:
            end = (attempt, call(), None)
        except BaseException as error:  # noqa: BLE001 (S28: whatever a handler raises ends its attempt only)
            end = (attempt, None, error)
        self.exit_if_forked(end[2])
        self._ends.append(end)
        if not self._is_collecting:
            self._is_collecting = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits for an abandoned thread
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._is_collecting = False
        while self._ends:
            attempt, value, error = self._ends.popleft()
            if attempt.thread_call is not None:
                self._pool.ended(attempt.thread_call)
                attempt.thread_call = None  # breaks a reference cycle: the call holds the attempt
            self._ended(attempt, value, error)

    async def call(self, attempt: LiveAttempt, call: Callable[[], Any]) -> Any:
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


def _inside(around: AbstractContextManager[Any], call: Callable[[], Any]) -> Any:
    with around:
        return call()
