"""Worker process i of N, whichever process that is now: the current one, its successor, those that leave.

Decides when a successor serves and how long to wait before a restart. Knows no signals and no other instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fairlane.supervisor import report
from fairlane.supervisor.control import ProcessNumber
from fairlane.supervisor.endings import Consequence, Ending
from fairlane.supervisor.process import WorkerProcess

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 30.0
"""Seconds before a restart: the first after a crash; it doubles with each, up to the longest."""

STABLE: Final = 60.0
"""A process that was ready for this many seconds is not part of a crash loop."""

CRASH_LOOP: Final = 5
"""Crashes in a row, none of a stable process, that make a crash loop."""

START_TIMEOUT: Final = 120.0
"""Seconds in which a successor must be ready; until then its predecessor works on."""


def restart_pause(crashes: int) -> float:
    """Return the seconds to wait after `crashes` crashes in a row.

    >>> [restart_pause(crashes) for crashes in (1, 2, 3, 9, 10, 5_000)]
    [0.1, 0.2, 0.4, 25.6, 30.0, 30.0]
    """
    return min(LONGEST_PAUSE, FIRST_PAUSE * float(2 ** min(crashes - 1, 20)))


class Instance:
    """One of the N processes of a command, through its restarts."""

    def __init__(self, number: ProcessNumber, start: Callable[[ProcessNumber], WorkerProcess]) -> None:
        """Begin without a process, to be started at once."""
        self.number = number
        self.current: WorkerProcess | None = None
        self.successor: WorkerProcess | None = None
        self.leaving: list[WorkerProcess] = []
        self.restart_at = 0.0
        self.crashes = 0
        self.is_done = False
        self._start = start

    @property
    def runs_jobs(self) -> bool:
        """Whether it is a worker."""
        return self.number.kind == "worker"

    def processes(self) -> Iterator[WorkerProcess]:
        """Return every process that runs for this instance."""
        yield from self.leaving
        for process in (self.current, self.successor):
            if process is not None:
                yield process

    @property
    def is_serving(self) -> bool:
        """Whether a process works for this instance."""
        return self.current is not None and self.current.is_serving and not self.is_between_processes

    @property
    def is_between_processes(self) -> bool:
        """Whether its process was told to leave before there is another one in its place."""
        return self.current is not None and self.current.is_told_to_leave and self.successor is None

    @property
    def is_process_missing(self) -> bool:
        """Whether a process is to be started: there is none, or the current one asks to be replaced."""
        if self.current is None:
            return True
        return self.current.wants_replacement and self.successor is None

    @property
    def is_in_crash_loop(self) -> bool:
        """Whether its processes crash again and again."""
        return self.crashes >= CRASH_LOOP

    # ── starting ──────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start a process; it serves when it is ready."""
        self.current = self._start(self.number)
        report.started(self.number, self.current.pid)

    def start_successor(self) -> None:
        """Start the process that takes over from the current one."""
        self.successor = self._start(self.number)
        pid = 0 if self.current is None else self.current.pid
        report.successor_started(self.number, self.successor.pid, pid)

    def replace(self, now: float) -> None:
        """Replace the process that serves: by a successor, or, of the web, by the next one when it has left.

        Two processes cannot listen at one address. Until the next one does, the system keeps no connection.
        """
        if self.current is not None and self.number.kind == "web":
            self.current.leave(now)
        else:
            self.start_successor()

    def advance(self, now: float, *, is_in_quarantine: bool) -> None:
        """Let a process serve that is ready, once no other of this instance claims.

        A successor that is ready ends the claims of its predecessor first.
        """
        current, successor = self.current, self.successor
        if current is not None and successor is not None and successor.is_ready:
            if current.has_ended_claims:
                self.leaving.append(current)
                self.current, self.successor = successor, None
            elif not (current.is_told_to_leave or current.wants_replacement):
                current.leave(now)
        current = self.current
        if current is not None and current.is_ready and not current.is_serving:
            if is_in_quarantine and self.runs_jobs:
                current.quarantine()
            current.serve()
            report.serving(self.number, current.pid)
        if current is not None and current.ready_at is not None and now - current.ready_at >= STABLE:
            self.crashes = 0

    # ── ending ────────────────────────────────────────────────────────────────

    def remove(self, process: WorkerProcess) -> bool:
        """Remove a process that has ended; return whether the instance has no process in its place."""
        if process in self.leaving:
            self.leaving.remove(process)
            return False
        if process is self.successor:
            self.successor = None
            return False
        self.current, self.successor = self.successor, None
        return self.current is None

    def schedule_restart(
        self, process: WorkerProcess, ending: Ending, consequence: Consequence, now: float
    ) -> None:
        """Decide when the next process starts, and say why the last one ended."""
        if consequence is Consequence.REPLACED:
            pause = 0.0
        elif consequence is Consequence.MISCONFIGURED:
            pause = LONGEST_PAUSE
        else:
            self.crashes += 1
            pause = restart_pause(self.crashes)
        self.restart_at = now + pause
        report.ended(self.number, process.pid, ending, consequence, pause)
        if self.crashes == CRASH_LOOP and consequence is Consequence.CRASHED:
            report.crash_loop(self.number, ending, self.crashes)

    def successor_failed(self, now: float) -> None:
        """Count a successor that did not get ready as a crash: the next one is not started at once."""
        self.crashes += 1
        self.restart_at = now + restart_pause(self.crashes)

    def deadlines(self, *, may_start: bool) -> Iterator[float]:
        """Return the times at which something is to be done."""
        if may_start and self.is_process_missing and not self.is_done:
            yield self.restart_at
        if self.successor is not None and not self.successor.is_ready:
            yield self.successor.started_at + START_TIMEOUT
        for process in self.processes():
            if process.kill_at is not None:
                yield process.kill_at
