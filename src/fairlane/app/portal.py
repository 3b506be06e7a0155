"""Run coroutines for blocking callers: the one bridge between plain code and asyncio.

A portal is a thread with an event loop, started by the first call. Knows no store.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import warnings
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, TypeVar, cast

from fairlane.model.errors import StoreUnavailable, Unsupported

T = TypeVar("T")

_left_to_the_parent: Final[list[object]] = []
"""Services inherited over a fork. Referenced for good: collecting them would touch the parent's files."""


class _Service(NamedTuple):
    """A thread that runs an event loop until `stop` is set."""

    thread: threading.Thread
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event


def run_here(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, in the caller's thread.

    For work on a plain connection, which belongs to that thread. `Unsupported` if the coroutine does wait.
    """
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise Unsupported("the connection is asynchronous; await the async twin: aenqueue() or asucceed_in()")


class Portal:
    """Runs coroutines for callers that cannot await. Thread-safe; a forked child starts its own thread."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        # Used as a plain lock: nobody waits to be notified.
        self._entry = threading.Condition()
        self._service: _Service | None = None
        self._has_warned = False

    @property
    def is_open(self) -> bool:
        """Whether the thread runs in this process."""
        self._notice_fork()
        return self._service is not None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the caller's context variables, and return its result.

        An interrupted wait (Ctrl-C) cancels the coroutine.
        """
        self._warn_inside_a_loop(getattr(work, "__name__", "the async twin"))
        future = self.submit(work)
        try:
            return future.result()
        finally:
            future.cancel()  # no effect if it is done

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the portal's loop; the first call starts the thread.

        `StoreUnavailable` while the interpreter shuts down, as in a late `__del__`: no thread can answer.
        """
        if sys.is_finalizing():
            work.close()
            raise StoreUnavailable("the interpreter is shutting down; no store can be asked any more")
        self._notice_fork()
        with self._entry:
            if self._service is None:
                self._service = _start()
            return asyncio.run_coroutine_threadsafe(work, self._service.loop)

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the portal's loop for a caller in another loop; cancelled with its caller."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Cancel what runs in the thread, stop it and wait for it. A later call starts a new one."""
        self._notice_fork()
        with self._entry:
            service, self._service = self._service, None
        if service is not None:
            service.loop.call_soon_threadsafe(service.stop.set)
            service.thread.join()

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            # Threads do not survive a fork, and the loop's files belong to the parent.
            _left_to_the_parent.append(self._service)
            self._pid, self._service = os.getpid(), None
            # Another thread of the parent may have held it at the instant of the fork.
            self._entry = threading.Condition()

    def _warn_inside_a_loop(self, twin: str) -> None:
        if self._has_warned or not _is_inside_a_loop():
            return
        self._has_warned = True
        message = f"{twin.removeprefix('a')}() blocks the running event loop; await {twin}() instead"
        warnings.warn(message, RuntimeWarning, stacklevel=4)


def _start() -> _Service:
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    # A daemon, so that an application that never closes can still exit.
    thread = threading.Thread(target=_serve, args=(loop, stop), name="fairlane-portal", daemon=True)
    thread.start()
    return _Service(thread, loop, stop)


def _serve(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(_until(stop))


async def _until(stop: asyncio.Event) -> None:
    await stop.wait()


def _is_inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
