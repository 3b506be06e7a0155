"""Loop, wait and start tasks: the only module that does. What is repeated is a pass that returns its pause.

Knows no store and no job. Nothing here swallows a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any, Final, TypeAlias, TypeVar

from fairlane.model.instants import SECOND, Micros

T = TypeVar("T")

Pass: TypeAlias = Callable[[], Awaitable[Micros | None]]
"""One bounded piece of work. It returns the pause before its next call; None ends the repetition."""


class WakeUp:
    """Ends a wait early. Set while nobody waits, it ends the next wait at once. Used in one event loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake whoever waits, or will wait next."""
        self._event.set()

    async def wait(self, max_wait: Micros) -> None:
        """Wait until it is set, at most this long; zero or less only yields to other tasks."""
        if max_wait <= 0 and not self._event.is_set():
            await asyncio.sleep(0)
        elif not self._event.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(max_wait / SECOND):
                    await self._event.wait()
        self._event.clear()


async def repeat(one_pass: Pass, wake_up: WakeUp | None = None) -> None:
    """Call a pass again and again: after the pause it returned, or sooner if it is woken."""
    wake_up = wake_up or WakeUp()
    while (pause := await one_pass()) is not None:
        await wake_up.wait(pause)


async def run_all(*works: Coroutine[Any, Any, None]) -> None:
    """Run coroutines side by side to their ends; if one fails, the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work)


async def read_together(*reads: Coroutine[Any, Any, Any]) -> Sequence[Any]:
    """Return what several readings find, made at the same time. The first error ends all of them."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in reads]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def run_with_background(main: Coroutine[Any, Any, T], *background: Coroutine[Any, Any, None]) -> T:
    """Run `main` to its end and return its result; the background is cancelled then. If one fails, all do."""
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(main)
        following = [group.create_task(other) for other in background]
        try:
            await asyncio.wait([leading])
        finally:
            for task in following:
                task.cancel()
    return leading.result()


async def wait_for(event: asyncio.Event) -> None:
    """Wait until an event is set."""
    await event.wait()


def call_soon(callback: Callable[..., None], *args: Any, context: Context) -> None:
    """Call a function in the running loop's next iteration, in a given context and not in the caller's."""
    asyncio.get_running_loop().call_soon(callback, *args, context=context)


_in_background: Final[set[asyncio.Task[None]]] = set()
"""Referenced until they have ended: a loop holds its tasks only weakly."""


def start_in_background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start what nobody waits for, in the running loop. It is cancelled if the loop ends before it."""
    task = asyncio.get_running_loop().create_task(work)
    _in_background.add(task)
    task.add_done_callback(_in_background.discard)
    return task


def start_task(work: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
    """Start a handler's task outside of any group: a stuck handler must not block the worker's shutdown."""
    return asyncio.get_running_loop().create_task(work, context=context)
