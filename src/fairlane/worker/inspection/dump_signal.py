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
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from fairlane.runtime.last_words import LOG_TIMEOUT, log_or_print
from fairlane.worker import report

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
        thread.join(LOG_TIMEOUT)
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
    log_or_print(lambda: report.dump(worker, why, text), f"{worker}: dump, {why}\n{text}\n")
