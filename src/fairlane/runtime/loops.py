"""Loop, wait and spawn: the one module that does. What is repeated is a pass that says when to come back.

Knows no store and no job. Nothing here swallows a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeAlias, TypeVar

from fairlane.model.instants import SECOND, Micros

T = TypeVar("T")

Pass: TypeAlias = Callable[[], Awaitable[Micros | None]]
"""One bounded piece of upkeep: it answers after how long it wants to be called again; None, never."""


class Bell:
    """Ends a wait early. It rings inside its own loop; a ring that nobody waits for is kept for the next."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Let whoever waits, or waits next, go on."""
        self._event.set()

    async def wait(self, at_most: Micros) -> None:
        """Wait for a ring, at most so long; nothing or less only gives others their turn."""
        if at_most <= 0 and not self._event.is_set():
            await asyncio.sleep(0)
        elif not self._event.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(at_most / SECOND):
                    await self._event.wait()
        self._event.clear()


async def repeat(one_pass: Pass, bell: Bell | None = None) -> None:
    """Call a pass again and again: after the pause it asks for, or sooner if the bell rings."""
    bell = bell or Bell()
    while (pause := await one_pass()) is not None:
        await bell.wait(pause)


async def all_of(*works: Coroutine[Any, Any, None]) -> None:
    """Run works side by side to their ends; if one fails, the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work)


async def beside(main: Coroutine[Any, Any, T], *others: Coroutine[Any, Any, None]) -> T:
    """Run a work to its end while others go on beside it: they end with it, and if one fails, all fail."""
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(main)
        following = [group.create_task(other) for other in others]
        try:
            await asyncio.wait([leading])
        finally:
            for task in following:
                task.cancel()
    return leading.result()


def start(work: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
    """Start a handler's task, outside of any group: one that never ends must not keep its worker from it."""
    return asyncio.get_running_loop().create_task(work, context=context)
