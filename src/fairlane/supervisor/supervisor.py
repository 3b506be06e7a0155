"""Keep the worker processes of one command running until it is told to stop. Imports no application.

One loop in one thread: wait for a signal, a message or a deadline, then look at every process and do one
step.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Final

from fairlane.model.instants import SECOND
from fairlane.runtime import exits
from fairlane.supervisor import control, report
from fairlane.supervisor.control import ProcessKind, ProcessNumber
from fairlane.supervisor.endings import Consequence, Ending, consequence, memory_kills
from fairlane.supervisor.instance import START_TIMEOUT, Instance
from fairlane.supervisor.orphans import reap_orphans
from fairlane.supervisor.process import WorkerProcess
from fairlane.supervisor.requests import SignalMeaning, SignalRequests
from fairlane.supervisor.service_manager import ServiceManager

_LONGEST_WAIT: Final = 60.0
_QUARANTINE_AFTER: Final = 2
"""Crashes in a row after which handlers run in children: one may be chance, and costs each job one loss."""

_MEMORY_KILL_TAKES: Final = 5.0
"""Seconds within which a process that the kernel kills for lack of memory has ended."""


def supervise(
    arguments: Sequence[str],
    count: int,
    *,
    is_burst: bool = False,
    beside: Sequence[ProcessKind] = (),
    environ: MutableMapping[str, str] | None = None,
) -> int:
    """Run `fairlane ARGUMENTS` in several processes until the command ends; return its exit code.

    Beside the workers there is one process of each other kind.
    """
    inherited = dict(os.environ) if environ is None else environ
    manager = ServiceManager(inherited)
    with SignalRequests() as requests:
        supervisor = Supervisor(arguments, count, inherited, manager, is_burst=is_burst, beside=beside)
        return supervisor.run(requests)


class Supervisor:
    """The processes of one command.

    The first instance starts alone: a mistake that keeps workers from starting is said once, not N times. As
    soon as one process has been ready, all others start.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        count: int,
        environ: Mapping[str, str],
        manager: ServiceManager,
        *,
        is_burst: bool,
        beside: Sequence[ProcessKind] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._manager = manager
        self._is_burst = is_burst

        def start(number: ProcessNumber) -> WorkerProcess:
            return WorkerProcess(arguments, environ, number, clock())

        numbers = [ProcessNumber(index, count) for index in range(count)]
        numbers += [ProcessNumber(0, 1, kind) for kind in beside]
        self._instances = [Instance(number, start) for number in numbers]
        self._was_any_ready = False
        self._is_announced = False
        self._stops = 0
        self._code = exits.OK
        self._to_replace: list[Instance] = []  # by the rolling restart, the next one first
        self._is_rolling = False
        self._is_rolling_again = False
        self._memory_kills = memory_kills()
        self._memory_killed_at = float("-inf")
        self._reset_watchdog_at = 0.0

    def run(self, requests: SignalRequests) -> int:
        """Work until every process has ended and none is to be started; return the exit code."""
        while not self._is_over():
            for request in requests.taken():
                self._handle(request)
            self._step(self._clock())
            if not self._is_over():
                self._wait(requests)
        return self._code

    # ── requests ──────────────────────────────────────────────────────────────

    def _handle(self, request: SignalMeaning) -> None:
        if request is SignalMeaning.RESTART:
            self._begin_rolling_restart()
        elif request is SignalMeaning.DUMP:
            for _, process in self._processes():
                process.dump()
        else:
            message = control.INTERRUPT if request is SignalMeaning.INTERRUPT else control.DRAIN
            self._stop(self._clock(), message)

    def _stop(self, now: float, message: str = control.DRAIN) -> None:
        """Let every process drain; called again, let them stop at once."""
        self._stops += 1
        is_fast = self._stops > 1
        self._to_replace, self._is_rolling, self._is_rolling_again = [], False, False
        running = list(self._processes())
        if running:
            report.stopping(len(running), is_fast=is_fast)
        self._manager.stopping()
        for _, process in running:
            if is_fast:
                process.stop(now)
            elif not process.is_told_to_leave:
                process.leave(now, message)

    def _begin_rolling_restart(self) -> None:
        if self._stops:
            return
        if self._is_rolling:
            self._is_rolling_again = True  # the code may have changed since the first ones were replaced
            return
        self._is_rolling = True
        self._to_replace = list(self._instances)
        report.rolling_restart(len(self._instances))
        self._manager.reloading()

    # ── one step ──────────────────────────────────────────────────────────────

    def _step(self, now: float) -> None:
        self._notice_ends(now)
        self._kill_late(now)
        if not self._stops:
            is_in_quarantine = self._crashes() >= _QUARANTINE_AFTER
            for instance in self._instances:
                self._start_if_due(instance, now)
                instance.advance(now, is_in_quarantine=is_in_quarantine)
            self._roll(now)
            self._announce()
        self._reset_watchdog(now)

    def _notice_ends(self, now: float) -> None:
        kills = memory_kills()
        if kills != self._memory_kills:
            self._memory_kills, self._memory_killed_at = kills, now
        is_out_of_memory = now - self._memory_killed_at < _MEMORY_KILL_TAKES
        for instance, process in list(self._processes()):
            process.hear(now)
            self._was_any_ready |= process.is_ready
            ending = process.ended(is_out_of_memory=is_out_of_memory)
            if ending is not None:
                process.hear(now)
                self._ended(instance, process, ending, now)
        if os.getpid() == 1:
            reap_orphans({process.pid for _, process in self._processes()})

    def _ended(self, instance: Instance, process: WorkerProcess, ending: Ending, now: float) -> None:
        is_successor = process is instance.successor
        is_vacant = instance.remove(process)
        if self._stops or process.is_told_to_leave:
            self._left(instance, process, ending)
        elif is_successor:
            report.successor_failed(instance.number, process.pid, ending)
            instance.successor_failed(now)
            self._end_rolling_restart(is_done=False)
        elif self._is_burst and ending.code == exits.OK and process.is_ready:
            instance.is_done = True
            report.burst_ended(instance.number, process.pid)
        else:
            follows = consequence(ending, was_ready=process.is_ready, was_any_ready=self._was_any_ready)
            if follows is Consequence.FINAL:
                self._give_up(instance, process, ending, now)
            elif is_vacant:
                instance.schedule_restart(process, ending, follows, now)
                self._quarantine_if_due(follows)
                self._end_hopeless(instance, ending, now)
            else:  # it had a successor already
                report.left(instance.number, process.pid, ending)

    def _crashes(self) -> int:
        """Return how many workers have crashed, without a stable one of their instance since."""
        return sum(one.crashes for one in self._instances if one.runs_jobs)

    def _quarantine_if_due(self, follows: Consequence) -> None:
        """Warn the processes that work: the job that ends one after the other may be theirs next."""
        if follows is Consequence.CRASHED and self._crashes() >= _QUARANTINE_AFTER:
            for one in self._instances:
                if one.runs_jobs and one.current is not None and one.current.is_serving:
                    one.current.quarantine()

    def _left(self, instance: Instance, process: WorkerProcess, ending: Ending) -> None:
        """Note the end of a process that was told to leave; if it did not obey, the exit code says so."""
        report.left(instance.number, process.pid, ending)
        is_normal = ending.code in {exits.OK, exits.REPLACE} or not process.is_ready
        if self._stops and not is_normal and not self._code:
            self._code = ending.exit_code

    def _give_up(self, instance: Instance, process: WorkerProcess, ending: Ending, now: float) -> None:
        report.final(instance.number, process.pid, ending)
        self._code = self._code or ending.exit_code
        self._stop(now)

    def _end_hopeless(self, instance: Instance, ending: Ending, now: float) -> None:
        """End the command if nothing of it has ever worked: who started it should know, and tries again."""
        if instance.is_in_crash_loop and not self._was_any_ready:
            report.given_up()
            self._code = exits.INTERNAL_ERROR
            self._stop(now)
            self._manager.status(f"gave up: the last worker process {ending}")

    def _kill_late(self, now: float) -> None:
        for instance, process in self._processes():
            if process.kill_at is not None and now >= process.kill_at:
                report.killed(instance.number, process.pid)
                process.kill()

    def _start_if_due(self, instance: Instance, now: float) -> None:
        may_start = self._was_any_ready or instance is self._instances[0]
        if not may_start or instance.is_done or not instance.is_process_missing or now < instance.restart_at:
            return
        if instance.current is None:
            instance.start()
        else:
            instance.start_successor()

    # ── rolling restart ───────────────────────────────────────────────────────

    def _roll(self, now: float) -> None:
        """Replace the next instance once the last one has only one process again."""
        if not self._is_rolling:
            return
        late = [one for one in self._instances if one.successor is not None and not one.successor.is_ready]
        for instance in late:
            successor = instance.successor
            if successor is not None and now >= successor.started_at + START_TIMEOUT:
                report.successor_failed(instance.number, successor.pid, None)
                instance.leaving.append(successor)
                instance.successor = None
                successor.kill()
                self._end_rolling_restart(is_done=False)
                return
        if any(
            one.successor is not None or one.leaving or one.is_between_processes for one in self._instances
        ):
            return
        while self._to_replace:
            instance = self._to_replace.pop(0)
            if instance.is_serving:
                instance.replace(self._clock())
                return
            # Its process is about to be started, or has been a moment ago, and will run the new code.
        if all(one.is_serving or one.is_done for one in self._instances):
            self._end_rolling_restart(is_done=True)

    def _end_rolling_restart(self, *, is_done: bool) -> None:
        if not self._is_rolling:
            return
        self._is_rolling, self._to_replace = False, []
        if is_done:
            report.rolling_restart_done()
        self._manager.ready()
        if self._is_rolling_again:
            self._is_rolling_again = False
            self._begin_rolling_restart()

    # ── what systemd hears ────────────────────────────────────────────────────

    def _announce(self) -> None:
        serving = sum(one.is_serving for one in self._instances)
        if not self._is_announced and serving == len(self._instances):
            self._is_announced = True
            self._manager.ready()
        loops = sum(one.is_in_crash_loop for one in self._instances)
        more = f", {loops} in a crash loop" if loops else ", rolling restart" if self._is_rolling else ""
        self._manager.status(f"{serving} of {len(self._instances)} processes serve{more}")

    def _reset_watchdog(self, now: float) -> None:
        """Reset the watchdog of systemd, unless a worker process has been silent for too long."""
        every = self._watchdog_every()
        if every is None or now < self._reset_watchdog_at:
            return
        self._reset_watchdog_at = now + every
        if all(now - one.alive_at <= 2 * every for _, one in self._processes() if one.is_ready):
            self._manager.still_works()

    def _watchdog_every(self) -> float | None:
        watchdog = self._manager.watchdog
        return None if watchdog is None else watchdog / SECOND / 3

    # ── waiting ───────────────────────────────────────────────────────────────

    def _processes(self) -> Iterator[tuple[Instance, WorkerProcess]]:
        return ((one, process) for one in self._instances for process in one.processes())

    def _is_over(self) -> bool:
        if any(True for _ in self._processes()):
            return False
        return self._stops > 0 or all(one.is_done for one in self._instances)

    def _wait(self, requests: SignalRequests) -> None:
        """Wait for a signal, a message, or the next deadline."""
        now = self._clock()
        deadlines = [at for one in self._instances for at in self._deadlines(one)]
        if self._watchdog_every() is not None:
            deadlines.append(self._reset_watchdog_at)
        pause = min((at - now for at in deadlines), default=_LONGEST_WAIT)
        with selectors.DefaultSelector() as selector:
            selector.register(requests, selectors.EVENT_READ)
            for _, process in self._processes():
                if not process.connection.has_ended:
                    selector.register(process.connection, selectors.EVENT_READ)
            selector.select(max(0.0, min(pause, _LONGEST_WAIT)))

    def _deadlines(self, instance: Instance) -> Iterator[float]:
        may_start = not self._stops and (self._was_any_ready or instance is self._instances[0])
        return instance.deadlines(may_start=may_start)
