"""Deliver SIGTERM and SIGINT to the event loop. Does not know what they are for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_stop(callback: Callable[[], None], on_interrupt: Callable[[], None] | None = None) -> Generator[None]:
    """Call back in the running loop for every SIGTERM and SIGINT; afterwards they act as usual.

    `on_interrupt`, if given, is called for SIGINT instead.
    """
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, (on_interrupt or callback) if number == signal.SIGINT else callback)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own; SIGTERM and SIGINT cancel it and raise `KeyboardInterrupt`.

    A process that SIGTERM ends at once would leave behind the processes that it has started.
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
