"""The warm child processes of a worker: who gets one, when another is started, when one is replaced.

Used in the worker's loop only. What the end of an attempt means is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from signal import SIGKILL
from typing import Final, NamedTuple, Protocol

from fairlane.model.failure import MESSAGE_CHARS, ErrorClass, Failure, bounded
from fairlane.model.instants import SECOND, Micros
from fairlane.model.retry.decision import AttemptResult, Failed
from fairlane.runtime.clock import Clock
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt
from fairlane.worker.children import memory
from fairlane.worker.children.child_process import ChildProcess
from fairlane.worker.children.death import OutOfMemoryKills, describe_end
from fairlane.worker.children.guardian_link import GuardianLink
from fairlane.worker.children.launch import launch_guarded
from fairlane.worker.children.protocol import Setup, Start

GROW_AFTER: Final[Micros] = SECOND // 50
"""How long an attempt waits before another child is started: many jobs end sooner than one starts."""

IDLE_FOR: Final[Micros] = 60 * SECOND
START_TIMEOUT: Final[Micros] = 60 * SECOND
"""How long the import of an application may take in a child."""

END_TIMEOUT: Final[Micros] = 5 * SECOND
"""How long a child that was told to end may take."""

FIRST_PAUSE: Final[Micros] = SECOND
LONGEST_PAUSE: Final[Micros] = 60 * SECOND


class ChildEnds(Protocol):
    """Hears how attempts in children end, each exactly once. Called in the worker's loop."""

    def child_ended(self, attempt: LiveAttempt, result: AttemptResult | None) -> None:
        """Called with the result of an attempt; None if its claim was lost."""
        ...

    def child_died(self, attempt: LiveAttempt, how: str) -> None:
        """Called when the process of an attempt died, with how."""
        ...

    def child_refused(self, attempt: LiveAttempt, failure: Failure) -> None:
        """Called when no child can be started, with the reason."""
        ...

    def child_not_needed(self, attempt: LiveAttempt) -> None:
        """Called when an attempt was stopped before it got a child."""
        ...


class PoolLimits(NamedTuple):
    """How many children there may be, and when one is replaced after its job; None means never."""

    children: int
    max_jobs: int | None = None
    max_memory: int | None = None
    max_age: Micros | None = None


class ChildPool:
    """Runs attempts in children, one at a time in each, in the order in which they came."""

    def __init__(
        self,
        setup: Callable[[], Setup],
        limits: PoolLimits,
        clock: Clock,
        guardian: GuardianLink,
        ends: ChildEnds,
        start_of: Callable[[LiveAttempt], Start],
    ) -> None:
        self._setup = setup
        self._limits = limits
        self._clock = clock
        self._guardian = guardian
        self._ends = ends
        self._start_of = start_of
        self._waiting: deque[LiveAttempt] = deque()
        self._idle: list[ChildProcess] = []
        self._children: set[ChildProcess] = set()
        self._retired: set[ChildProcess] = set()
        self._is_growing = False
        self._is_closed = False
        self._failed_starts = 0
        self._last_failure: Failure | None = None
        self._not_before: Micros = 0
        self._kills = OutOfMemoryKills()
        self._started_at_once = max(1, min(limits.children, os.cpu_count() or 1))
        self.on_idle: Callable[[], None] = _nothing

    # ── attempts ──────────────────────────────────────────────────────────────

    def run(self, attempt: LiveAttempt) -> None:
        """Run an attempt in an idle child, or as soon as there is one."""
        if self._idle:
            self._assign(self._idle.pop(), attempt)
            return
        if self._is_backing_off() and not self._children:
            self._refuse(attempt)
            return
        attempt.child = self
        self._waiting.append(attempt)
        if not self._children:
            self._grow()
        elif not self._is_growing:
            self._grow_later()

    @property
    def is_free(self) -> bool:
        """Whether nothing runs in it and nothing waits."""
        return not self._waiting and len(self._idle) == len(self._children)

    def stop(self, attempt: LiveAttempt) -> None:
        """Forget an attempt that waits for a child; soft timeouts count from the start of the handler."""
        if attempt.cause is not None and attempt in self._waiting:
            self._waiting.remove(attempt)
            attempt.child = None
            self._ends.child_not_needed(attempt)

    terminate = stop
    kill = stop

    def _assign(self, child: ChildProcess, attempt: LiveAttempt) -> None:
        attempt.begin(self._clock.elapsed())
        child.run(attempt, self._start_of(attempt))

    # ── children ──────────────────────────────────────────────────────────────

    def warm_up(self) -> None:
        """Start the first child before the first job needs it."""
        if not self._children:
            self._start()

    def _grow(self) -> None:
        """Start as many children as wait, within bounds: a few at once, and not too many altogether."""
        self._is_growing = False
        if self._is_closed or not self._waiting:
            return
        if self._is_backing_off():
            if not self._children:
                self._refuse_all()
            return
        if self._children and self._clock.elapsed() - self._waiting[0].started_at < GROW_AFTER:
            self._grow_later()
            return
        starting = sum(not child.is_ready for child in self._children)
        room = min(self._limits.children - len(self._children), self._started_at_once - starting)
        for _ in range(min(room, len(self._waiting) - starting)):
            if not self._start():
                return
        self._grow_later()

    def _grow_later(self) -> None:
        self._is_growing = True
        asyncio.get_running_loop().call_later(GROW_AFTER / SECOND, self._grow)

    def _start(self) -> bool:
        try:
            launched = launch_guarded(self._guardian)
        except OSError as error:
            text = bounded(f"no child process can be started: {error}", MESSAGE_CHARS)
            self._start_failed(Failure(ErrorClass.RETRYABLE, "fairlane.ChildNotStarted", text))
            return False
        self._children.add(ChildProcess(launched, self._setup(), self, self._clock.elapsed()))
        return True

    def ready(self, child: ChildProcess) -> None:
        """Give a child that has imported the application its first attempt."""
        self._failed_starts, self._not_before = 0, 0
        self._next(child)

    def _next(self, child: ChildProcess) -> None:
        if self._waiting and not self._is_closed:
            self._assign(child, self._waiting.popleft())
        else:
            child.idle_since = self._clock.elapsed()
            self._idle.append(child)
            self.on_idle()

    def job_ended(
        self, child: ChildProcess, attempt: LiveAttempt, result: AttemptResult | None, leftovers: str | None
    ) -> None:
        """Give a child its next attempt, or replace it."""
        attempt.child = None
        if leftovers is not None:
            report.child_left_behind(attempt, leftovers)
            self._remove(child)
            child.is_retired = True
            child.kill_now()
        elif self._is_due(child):
            self._remove(child)
            child.retire()
        else:
            self._next(child)
        self._ends.child_ended(attempt, result)
        if child not in self._children:
            self._replace()

    def _replace(self) -> None:
        if self._waiting and not self._is_growing:
            self._grow()
        elif not self._waiting:
            self.on_idle()

    def _is_due(self, child: ChildProcess) -> bool:
        limits = self._limits
        age = self._clock.elapsed() - child.started_at
        return (
            (limits.max_jobs is not None and child.jobs >= limits.max_jobs)
            or (limits.max_memory is not None and child.resident > limits.max_memory)
            or (limits.max_age is not None and age >= limits.max_age)
        )

    def _remove(self, child: ChildProcess) -> None:
        """Count a child no longer; it is waited for until it has ended."""
        self._children.discard(child)
        self._retired.add(child)
        child.idle_since = self._clock.elapsed()
        if child in self._idle:
            self._idle.remove(child)

    def forget_group(self, group: int) -> None:
        """Let the guardian forget a group that has ended."""
        self._guardian.forget(group)

    def died(self, child: ChildProcess, attempt: LiveAttempt | None, code: int) -> None:
        """Report the attempt that a child took along, or that it did not even start."""
        was_expected = child.is_retired or self._is_closed
        self._remove(child)
        self._retired.discard(child)
        how = describe_end(
            code, out_of_memory=code == -SIGKILL and not was_expected and self._kills.has_more()
        )
        if attempt is not None:
            attempt.child = None
            self._ends.child_died(attempt, how)
        elif not child.is_ready and not was_expected:
            text = f"a child process ended before it had imported the application: {how}"
            failure = child.start_failure or Failure(
                ErrorClass.RETRYABLE, "fairlane.ChildNotStarted", bounded(text, MESSAGE_CHARS)
            )
            self._start_failed(failure)
        self._replace()

    # ── children that do not start ────────────────────────────────────────────

    def _is_backing_off(self) -> bool:
        return self._clock.elapsed() < self._not_before

    def _start_failed(self, failure: Failure) -> None:
        """Fail what waits, unless another child is there for it; try again after a growing pause."""
        self._failed_starts += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE << min(self._failed_starts - 1, 10))
        self._not_before = self._clock.elapsed() + pause
        self._last_failure = failure
        report.child_not_started(failure, pause)
        if not self._children:
            self._refuse_all()

    def _refuse_all(self) -> None:
        while self._waiting:
            self._refuse(self._waiting.popleft())

    def _refuse(self, attempt: LiveAttempt) -> None:
        attempt.child = None
        if self._last_failure is not None:
            self._ends.child_refused(attempt, self._last_failure)

    # ── upkeep ────────────────────────────────────────────────────────────────

    def check(self) -> None:
        """Enforce bounds of memory, end idle children but one, notice those that did not start or ended."""
        now = self._clock.elapsed()
        self._check_memory()
        for child in (*self._children, *self._retired):
            child.reap()
        for child in [one for one in self._retired if now - one.idle_since > END_TIMEOUT]:
            child.kill_now()  # it does not end by itself: a thread is left that nothing can stop
        for child in [one for one in self._children if not one.is_ready]:
            if now - child.started_at > START_TIMEOUT:
                text = f"the application was not imported within {START_TIMEOUT // SECOND} s"
                child.start_failure = Failure(ErrorClass.RETRYABLE, "fairlane.ChildNotStarted", text)
                child.kill_now()
        idle = [one for one in self._idle if now - one.idle_since > IDLE_FOR]
        for child in idle[: len(self._children) - 1]:
            self._remove(child)
            child.retire()

    def _check_memory(self) -> None:
        bounded_ones = {
            child.pid: (child, attempt, limit)
            for child in self._children
            if (attempt := child.attempt) is not None and (limit := attempt.declared.max_memory) is not None
        }
        if not bounded_ones:
            return
        for pid, family in memory.families(bounded_ones).items():
            child, attempt, limit = bounded_ones[pid]
            used = memory.resident_of(family)
            if used > limit:
                self._remove(child)
                child.kill(attempt)
                attempt.child = None
                text = f"its process used {_megabytes(used)}, more than max_memory, {_megabytes(limit)}"
                failure = Failure(ErrorClass.RETRYABLE, "fairlane.MaxMemoryExceeded", text)
                self._ends.child_ended(attempt, Failed(failure))
                self._replace()

    def pids(self) -> list[int]:
        """Return the processes of this pool."""
        return [child.pid for child in (*self._children, *self._retired)]

    def dump_stacks(self) -> None:
        """Let every child write its stacks to its output, which is logged with its tenant and job."""
        for child in self._children:
            # One that is not ready may not handle the signal yet, and would die of it.
            if child.is_ready:
                child.dump_stacks()

    def close(self) -> None:
        """Let idle children end, and kill the others."""
        self._is_closed = True
        for child in list(self._children):
            is_idle = child in self._idle
            self._remove(child)
            if is_idle:
                child.retire()
            else:
                child.is_retired = True
                child.kill_now()

    def is_empty(self) -> bool:
        """Whether all children have ended."""
        for child in tuple(self._retired):
            child.reap()
        return not self._retired and not self._children

    def kill_all(self) -> None:
        """Kill what has not ended."""
        for child in (*self._children, *self._retired):
            child.kill_now()


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"


def _nothing() -> None:
    """Do nothing: nobody waits for an idle child."""
