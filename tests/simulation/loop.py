"""Event loops on one virtual clock: no thread, no socket, no waiting. The seed decides whose turn it is.

A loop stands for a thread of a process. Inside a loop callbacks keep their order, as asyncio promises, unless
the schedule shuffles them; between loops any order may come. Knows neither jobs nor stores.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from fairlane.model.instants import SECOND, Micros

L = TypeVar("L", bound="SimLoop")

STEPS_A_MICRO = 8
"""Callbacks that take a microsecond together: time goes on also where nobody waits."""


class SimTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it lies in memory."""

    def __init__(self, *args: Any, number: int, **said: Any) -> None:
        """Take the number of the task in its run."""
        self._number = number
        super().__init__(*args, **said)

    def __hash__(self) -> int:
        return self._number


class SimLoop(asyncio.AbstractEventLoop):
    """One thread's event loop. It never runs by itself: its schedule takes one callback at a time.

    Of what asyncio's own loops can do it has what tasks, futures, timers and locks ask for; the rest is about
    sockets, signals and processes, of which there are none here.
    """

    def __init__(self, schedule: Schedule, name: str) -> None:
        """Belong to a schedule."""
        self.name = name
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: dict[int, SimTask] = {}
        self.is_frozen = False
        self.is_dead = False
        self._schedule = schedule

    def __repr__(self) -> str:
        return f"<SimLoop {self.name}>"

    # ── what asyncio asks for ─────────────────────────────────────────────────

    def time(self) -> float:
        """Return the virtual time."""
        return self._schedule.now / SECOND

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Put a callback at the end of the line."""
        handle = asyncio.Handle(callback, args, self, context)
        self.take(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back after some virtual seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a virtual time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._schedule.add_timer(round(when * SECOND), self, handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> SimTask:
        """Start a task here, and know of it until it is done."""
        number = self._schedule.next_number()
        task = SimTask(coro, loop=self, name=name or "", context=context, number=number)
        self.tasks[number] = task
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: SimTask) -> None:
        self.tasks.pop(hash(task), None)

    def get_debug(self) -> bool:
        """Nothing is debugged by asyncio itself."""
        return False

    def is_running(self) -> bool:
        """It always runs, for whoever asks."""
        return True

    def is_closed(self) -> bool:
        """It ends with its seed."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Hear of an error that nobody awaited."""
        self._schedule.on_error(self, context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave it in line: it is dropped when its time comes."""

    # ── what the schedule does with it ────────────────────────────────────────

    def take(self, handle: asyncio.Handle) -> None:
        """Have a callback to run."""
        if not self.ready and not self.is_frozen:
            self._schedule.runnable.append(self)
        self.ready.append(handle)

    def freeze(self) -> None:
        """Run nothing until thawed; what becomes due meanwhile waits in line."""
        if not self.is_frozen and self.ready:
            self._schedule.runnable.remove(self)
        self.is_frozen = True

    def thaw(self) -> None:
        """Go on, unless it is dead."""
        if self.is_dead:
            return
        if self.is_frozen and self.ready:
            self._schedule.runnable.append(self)
        self.is_frozen = False

    def kill(self) -> None:
        """Run nothing any more in this run; what is in line stays there, so that `revive` can end it."""
        self.freeze()
        self.is_dead = True

    def revive(self) -> None:
        """Let the tasks of a killed loop be ended, after the run."""
        self.is_dead = False
        self.thaw()


class Schedule:
    """All loops, their one clock, and the draw of who goes next."""

    def __init__(self, rng: Random, *, is_shuffled: bool = False) -> None:
        """Begin at zero, with no loop."""
        self.now: Micros = 0
        self.steps = 0
        self.runnable: list[SimLoop] = []
        self.loops: list[SimLoop] = []
        self.on_error: Callable[[SimLoop, dict[str, Any]], None] = lambda _, __: None
        self._draw = rng.random
        self._is_shuffled = is_shuffled
        self._timers: list[tuple[Micros, float, int, SimLoop, asyncio.Handle]] = []
        self._numbers = 0
        self._running: SimLoop | None = None

    def loop(self, name: str) -> SimLoop:
        """Make a loop."""
        return self.add(SimLoop(self, name))  # type: ignore[abstract]

    def add(self, loop: L) -> L:
        """Have one loop more."""
        self.loops.append(loop)
        return loop

    def next_number(self) -> int:
        """Count."""
        self._numbers += 1
        return self._numbers

    def add_timer(self, when: Micros, loop: SimLoop, handle: asyncio.Handle) -> None:
        """Call back then; the draw decides among those of one instant."""
        heapq.heappush(self._timers, (when, self._draw(), self.next_number(), loop, handle))

    def step(self) -> bool:
        """Run one callback, letting time pass if nobody can run now. False if nothing will ever happen."""
        if self._timers and self._timers[0][0] <= self.now:
            self._ring()
        if not self.runnable and not self._pass_time():
            return False
        self.steps += 1
        if not self.steps % STEPS_A_MICRO:
            self.now += 1
        runnable = self.runnable
        index = int(self._draw() * len(runnable)) if len(runnable) > 1 else 0
        loop = runnable[index]
        ready = loop.ready
        if self._is_shuffled and len(ready) > 1:
            ready.rotate(-int(self._draw() * len(ready)))
        handle = ready.popleft()
        if not ready:
            runnable[index] = runnable[-1]
            runnable.pop()
        if not handle.cancelled():
            if loop is not self._running:  # it costs a system call
                asyncio._set_running_loop(loop)
                self._running = loop
            handle._run()
        return True

    def rest(self) -> None:
        """Leave no loop running in this thread."""
        asyncio._set_running_loop(None)
        self._running = None

    def _pass_time(self) -> bool:
        while self._timers and not self.runnable:
            self.now = max(self.now, self._timers[0][0])
            self._ring()
        return bool(self.runnable)

    def _ring(self) -> None:
        """Let every timer whose time has come join the line of its loop."""
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            _, _, _, loop, handle = heapq.heappop(timers)
            if not handle.cancelled():
                loop.take(handle)

    def run(self, until: Callable[[], bool], at_most: Micros) -> bool:
        """Run until something is so; False if it was not so by then, or nothing is left to happen."""
        deadline = self.now + at_most
        try:
            while not until():
                if self.now >= deadline or not self.step():
                    return False
        finally:
            self.rest()
        return True

    def end(self, most: int = 20_000) -> int:
        """End every task of every loop by cancelling it, in order; say how many would not end."""
        for loop in self.loops:
            loop.revive()
        for _ in range(3):  # what is cancelled may await something more in its `finally`
            for loop in self.loops:
                for task in list(loop.tasks.values()):
                    task.cancel()
            for _ in range(most):
                if not any(loop.tasks for loop in self.loops) or not self.step():
                    break
        self.rest()
        return sum(len(loop.tasks) for loop in self.loops)
