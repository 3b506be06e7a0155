"""Format the stacks of all threads and asyncio tasks, with tenant and job. Runs in any thread.

A stack shows files, lines and functions, never values: arguments may be secret.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from traceback import FrameSummary, StackSummary, walk_stack
from types import FrameType
from typing import Any, Final, TypeAlias

from fairlane.worker.attempts.live_attempts import LiveAttempt

MAX_FRAMES: Final = 40
"""The innermost frames of a stack that are shown."""

_MAX_NAMED: Final = 20
"""How many owners of the same stack are named."""

Stack: TypeAlias = tuple[str, str]
"""Whose stack it is, and its lines."""


def thread_stacks() -> Iterator[Stack]:
    """Return the stack of each thread; of a handler's thread, with its attempt."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (documented)
        owner = f"thread {names.get(ident, ident)}"
        attempt = _attempt_of(frame)
        if attempt is not None:
            owner += f", {describe_attempt(attempt)}"
        yield owner, _format(reversed(list(walk_stack(frame))))


def task_stacks(
    loop: asyncio.AbstractEventLoop, where: str, attempts: Iterable[LiveAttempt]
) -> Iterator[Stack]:
    """Return the stack of each task of a loop; of a handler's task, with its attempt."""
    by_task: Mapping[Any, LiveAttempt] = {one.task: one for one in attempts if one.task is not None}
    running = asyncio.current_task(loop)
    for task in asyncio.all_tasks(loop):
        attempt = by_task.get(task)
        about = task.get_name() if attempt is None else describe_attempt(attempt)
        is_running = " (running now: see the loop's thread)" if task is running else ""
        yield f"task of {where}, {about}{is_running}", _format(_awaited(task.get_coro()))


def describe_attempt(attempt: LiveAttempt) -> str:
    """Name an attempt: tenant, job, task and number; and whether it was abandoned."""
    job = attempt.claim.job
    over = ", abandoned" if attempt.is_over else ""
    return f"tenant {job.tenant}, job {job.id}, task {job.task}, attempt {job.attempt}{over}"


def render(stacks: Iterable[Stack]) -> str:
    """Return the stacks as text; equal ones are shown once, with all their owners."""
    owners: dict[str, list[str]] = {}
    for owner, text in stacks:
        owners.setdefault(text, []).append(owner)
    parts: list[str] = []
    for text, named in owners.items():
        more = f"\n… and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        parts.append("\n".join(named[:_MAX_NAMED]) + more + "\n" + text)
    return "\n".join(parts)


def _attempt_of(frame: FrameType) -> LiveAttempt | None:
    """Return the attempt whose handler runs in a thread: the innermost one in a frame of the worker."""
    for one, _ in walk_stack(frame):
        if str(one.f_globals.get("__name__", "")).startswith("fairlane.worker."):
            for value in one.f_locals.values():
                if isinstance(value, LiveAttempt):
                    return value
    return None


def _awaited(coroutine: Any) -> Iterator[tuple[FrameType, int]]:
    """Return the frames of a suspended coroutine, of what it awaits, and so on to the innermost."""
    for _ in range(1_000):
        frame = next(
            (found for name in _FRAMES if (found := getattr(coroutine, name, None)) is not None), None
        )
        if frame is not None:
            yield frame, frame.f_lineno
        coroutine = next(
            (found for name in _AWAITED if (found := getattr(coroutine, name, None)) is not None), None
        )
        if coroutine is None:
            return


_FRAMES: Final = ("cr_frame", "gi_frame", "ag_frame")
_AWAITED: Final = ("cr_await", "gi_yieldfrom", "ag_await")


def _format(frames: Iterable[tuple[FrameType, int]]) -> str:
    shown = list(frames)
    cut = len(shown) - MAX_FRAMES
    lines = [f"    … {cut} outer frames\n"] if cut > 0 else []
    summary = StackSummary.from_list(
        [
            FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_name, lookup_line=False)
            for frame, line in shown[-MAX_FRAMES:]
        ]
    )
    return "".join((*lines, *summary.format())) or "    (no frames)\n"
