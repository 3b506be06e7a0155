"""The end of a process that runs no jobs: obey its supervisor, and tell it that this process is alive."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.loops import repeat, start_in_background
from fairlane.supervisor import control
from fairlane.supervisor.control import SupervisorConnection

_ENDING: Final = frozenset({control.DRAIN, control.INTERRUPT, control.STOP})


@asynccontextmanager
async def supervised(
    connection: SupervisorConnection | None, stop: Callable[[], None]
) -> AsyncGenerator[None]:
    """Surround the work of a process: `stop` is called when its supervisor says so, or is gone.

    Nothing happens without a supervisor.
    """
    if connection is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def hear() -> None:
        if not connection.receive(lambda message: stop() if message in _ENDING else None):
            loop.remove_reader(connection.fileno())

    async def say_alive() -> Micros:
        connection.alive()
        return SECOND

    loop.add_reader(connection.fileno(), hear)
    loop.add_signal_handler(signal.SIGHUP, _ignore)  # meant for the supervisor
    saying = start_in_background(repeat(say_alive))
    try:
        yield
    finally:
        saying.cancel()
        with suppress(asyncio.CancelledError):
            await saying
        loop.remove_signal_handler(signal.SIGHUP)
        loop.remove_reader(connection.fileno())


def _ignore() -> None:
    """Ignore a signal, but not in programs that this process starts."""
