"""Write a dump of the worker at SIGUSR1, whatever its main thread does.

Python runs signal handlers in the main thread, between two steps of Python code: a handler of a job that
blocks the loop inside of a library would delay them. So the signal is caught in C, by `faulthandler`, which
writes to a pipe; a thread that waits there writes the dump. Only code that keeps the interpreter lock delays
it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from fairlane.worker import report

_LOG_TIMEOUT: Final = 2.0
"""Seconds after which a dump that could not be logged is written to standard error."""

_SIGNAL: Final = b"(most recent call first):"
"""What `faulthandler` writes once for a signal, among lines that it writes one by one."""

_END: Final = b"\0"


@contextmanager
def dump_on_signal(worker: str, dump: Callable[[], str]) -> Generator[None]:
    """Log what `dump` returns for every SIGUSR1, until the block ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    thread = threading.Thread(
        target=_write_dumps, args=(reading, worker, dump), name="fairlane-dump", daemon=True
    )
    thread.start()
    faulthandler.register(signal.SIGUSR1, file=writing, all_threads=False)
    try:
        yield
    finally:
        # A signal that comes now would end the process: ignore it from here on.
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        os.write(writing, _END)
        thread.join(_LOG_TIMEOUT)
        os.close(writing)
        if not thread.is_alive():
            os.close(reading)


def _write_dumps(reading: int, worker: str, dump: Callable[[], str]) -> None:
    told = b""
    while (data := os.read(reading, 65_536)) and not data.endswith(_END):
        _, is_signal, told = (told + data).rpartition(_SIGNAL)
        if is_signal:
            write_dump(worker, "SIGUSR1", dump)


def write_dump(worker: str, why: str, dump: Callable[[], str]) -> None:
    """Log a dump; if logging is blocked by whatever is stuck, write it to standard error."""
    text = dump()
    logging = threading.Thread(target=report.dump, args=(worker, why, text), daemon=True)
    logging.start()
    logging.join(_LOG_TIMEOUT)
    if logging.is_alive():
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), f"{worker}: dump, {why}\n{text}\n".encode(errors="replace"))
