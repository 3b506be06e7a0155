"""When to look again, and what is known while the store does not answer. Knows no terminal and no table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from fairlane.model.durations import format_duration
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import Clock

T = TypeVar("T")

ANSWER_WITHIN: Final[Micros] = 5 * SECOND
"""A store that takes longer is away."""

_REST: Final = 5


class Refresher(Generic[T]):
    """Looks again and again, one look at a time, and keeps the last answer with its age.

    After a slow look it rests five times as long as the look took, so that looking costs the store little.
    """

    def __init__(self, clock: Clock, every: Micros, look: Callable[[], Awaitable[T]]) -> None:
        self._clock = clock
        self._every = every
        self._look = look
        self._wanted = asyncio.Event()
        self._looked_at: Micros | None = None
        self.is_paused = False
        self.problem = ""
        self.answer: T | None = None
        self.looks = 0

    def again(self) -> None:
        """Look as soon as possible: something else is to be shown."""
        self._wanted.set()

    def forget(self) -> None:
        """Forget the last answer, which was about something else, and look as soon as possible."""
        self.answer, self._looked_at = None, None
        self.again()

    @property
    def status(self) -> str:
        """What the user has to know about what is shown."""
        age = None if self._looked_at is None else self._clock.elapsed() - self._looked_at
        shown = "nothing to show yet" if age is None else f"shown is what was {format_duration(age)} ago"
        if self.problem:
            return f"STORE AWAY, {shown}: {self.problem}"
        if self.is_paused:
            return f"PAUSED, {shown}"
        return "reading" if age is None else f"live, every {format_duration(self._every)}"

    async def run(self, show: Callable[[], None]) -> None:
        """Look and show until cancelled."""
        while True:
            self._wanted.clear()
            began = self._clock.elapsed()
            await self._once()
            took = self._clock.elapsed() - began
            show()
            wait = None if self.is_paused else max(self._every, _REST * took) / SECOND
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wanted.wait()

    async def _once(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_WITHIN / SECOND):
                answer = await self._look()
        except (StoreError, TimeoutError, OSError) as error:
            self.problem = str(error) or f"no answer within {format_duration(ANSWER_WITHIN)}"
        else:
            self.problem = ""
            if not self._wanted.is_set():  # else it is about what is no longer shown
                self.answer, self._looked_at = answer, self._clock.elapsed()
        self.looks += 1
