"""Let the operating system's signals be heard in the event loop. Knows not what they are for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

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
