"""Let the operating system's signals be heard in the event loop. Knows not what they are for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_stop(heard: Callable[[], None]) -> Generator[None]:
    """Call back, in the running loop, for every SIGTERM and SIGINT; afterwards they are as usual."""
    loop = asyncio.get_running_loop()
    for number in STOPPING:
        loop.add_signal_handler(number, heard)
    try:
        yield
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run a work in a loop of its own; SIGTERM and SIGINT cancel it, and then this is interrupted.

    A process that is simply ended by SIGTERM would leave behind what it has started.
    """

    async def inside() -> T:
        own = cast("asyncio.Task[T]", asyncio.current_task())
        with on_stop(lambda: _cancel(own)):
            return await work

    try:
        return asyncio.run(inside())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
