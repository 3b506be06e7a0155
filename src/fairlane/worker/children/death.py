"""Say how a child process ended: exit code, signal, out of memory. Decides nothing about its job."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

LOST_CONNECTION: Final = 73
"""The exit code of a child that could not report: its handler has closed the connection to the worker."""

_EVENTS: Final = "memory.events"


def describe_end(code: int, *, out_of_memory: bool = False) -> str:
    """Return how a process ended, from its return code as `subprocess` gives it.

    >>> describe_end(-11), describe_end(3), describe_end(0)
    ('killed by SIGSEGV', 'exit code 3', 'exit code 0 in the middle of its job')
    >>> describe_end(-9, out_of_memory=True)
    'killed by SIGKILL: the system was out of memory'
    """
    if code == LOST_CONNECTION:
        return "it could not reach its worker any more; did the handler close descriptors?"
    if code == 0:
        return "exit code 0 in the middle of its job"
    if code > 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (": the system was out of memory" if out_of_memory else "")


class OutOfMemoryKills:
    """Counts the processes of our control group that were killed for lack of memory. Linux only."""

    def __init__(self) -> None:
        self._file = _events_file()
        self._seen = self._read()

    def has_more(self) -> bool:
        """Whether there was another kill since the last call."""
        before, self._seen = self._seen, self._read()
        return self._seen > before

    def _read(self) -> int:
        if self._file is None:
            return 0
        try:
            lines = dict(line.split() for line in self._file.read_text().splitlines())
            return int(lines.get("oom_kill", 0))
        except (OSError, ValueError):
            return 0


def _events_file() -> Path | None:
    try:
        own = Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]
    except OSError:
        return None
    for place in (f"/sys/fs/cgroup{own}", "/sys/fs/cgroup"):
        file = Path(place) / _EVENTS
        if file.exists():
            return file
    return None
