"""Format the stacks of all threads, and of the asyncio tasks of a loop. Runs in any thread.

A stack shows files, lines and functions, never values: arguments may be secret. Knows no worker and no job.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from traceback import FrameSummary, StackSummary, walk_stack
from types import FrameType
from typing import Any, Final, TypeAlias

MAX_FRAMES: Final = 40
"""The innermost frames of a stack that are shown."""

_MAX_NAMED: Final = 20
"""How many owners of the same stack are named."""

Stack: TypeAlias = tuple[str, str]
"""Whose stack it is, and its lines."""


def _unknown(_: object) -> None:
    return None


def thread_stacks(describe: Callable[[FrameType], str | None] = _unknown) -> Iterator[Stack]:
    """Return the stack of each thread. `describe` says more of one, by its innermost frame, if it knows."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (documented)
        owner, more = f"thread {names.get(ident, ident)}", describe(frame)
        if more is not None:
            owner += f", {more}"
        yield owner, _format(reversed(list(walk_stack(frame))))


def task_stacks(
    loop: asyncio.AbstractEventLoop,
    where: str,
    describe: Callable[[asyncio.Task[Any]], str | None] = _unknown,
) -> Iterator[Stack]:
    """Return the stack of each task of a loop. What `describe` does not know has the name of its task."""
    running = asyncio.current_task(loop)
    for task in asyncio.all_tasks(loop):
        about = describe(task) or task.get_name()
        is_running = " (running now: see the loop's thread)" if task is running else ""
        yield f"task of {where}, {about}{is_running}", _format(_awaited(task.get_coro()))


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
