"""Let callers without an event loop in: the one edge between plain code and asyncio.

A thread with an event loop of its own, started at the first call and not before. Knows no store.
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
"""What a forked child has inherited and must not touch, not even by letting it be collected."""


class _Service(NamedTuple):
    """A thread that runs an event loop until it is told to stop."""

    thread: threading.Thread
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event


def run_here(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that has nothing to wait for to its end, in the caller's own thread.

    For work on a plain connection, which belongs to that thread. `Unsupported` if it waits after all.
    """
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise Unsupported("the connection is asynchronous; await the twin, as aenqueue() or asucceed_in()")


class Portal:
    """Runs coroutines for callers that cannot await. Any number of threads may call; a fork gets its own."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        # Entered by one thread at a time; nobody waits to be notified.
        self._entry = threading.Condition()
        self._service: _Service | None = None
        self._has_warned = False

    @property
    def is_open(self) -> bool:
        """Whether a thread of this process serves calls."""
        self._notice_fork()
        return self._service is not None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and give what it gives, in the context of the caller.

        An interrupted wait (Ctrl-C) cancels the work.
        """
        self._warn_inside_a_loop(getattr(work, "__name__", "the async twin"))
        future = self.submit(work)
        try:
            return future.result()
        finally:
            future.cancel()  # without effect on work that is done

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the portal's loop; the thread is there from the first call on.

        `StoreUnavailable` while the interpreter goes down, as in a late `__del__`: no thread runs any more
        that could answer.
        """
        if sys.is_finalizing():
            work.close()
            raise StoreUnavailable("the interpreter is shutting down, and nothing can be asked any more")
        self._notice_fork()
        with self._entry:
            if self._service is None:
                self._service = _start()
            return asyncio.run_coroutine_threadsafe(work, self._service.loop)

    async def aside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the portal's loop for a caller in another; it is cancelled with its caller."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Stop the thread and wait for it; what still runs in it is cancelled. A later call starts anew."""
        self._notice_fork()
        with self._entry:
            service, self._service = self._service, None
        if service is not None:
            service.loop.call_soon_threadsafe(service.stop.set)
            service.thread.join()

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            # Threads do not survive a fork; the loop's files belong to the parent as well.
            _left_to_the_parent.append(self._service)
            self._pid, self._service = os.getpid(), None
            # Another thread of the parent may have been inside at the instant of the fork.
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
    # A daemon: an application that never closes must still be able to exit.
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
