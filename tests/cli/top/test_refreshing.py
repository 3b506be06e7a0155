"""When `fairlane top` looks again, and what it says while the store does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from fairlane.cli.top import refreshing
from fairlane.cli.top.refreshing import Refresher
from fairlane.model.errors import StoreUnavailable
from fairlane.model.instants import HOUR, SECOND
from fairlane.runtime.clock import MachineClock


async def run_until(refresher: Refresher[int], is_so: Callable[[], object]) -> None:
    """Look again and again until something holds after a look."""
    reached = asyncio.Event()

    def show() -> None:
        if is_so():
            reached.set()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(refresher.run(show))
        await reached.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_an_answer_is_shown_as_live() -> None:
    """With how often it is made anew."""

    async def look() -> int:
        return 5

    refresher = Refresher(MachineClock(), HOUR, look)
    assert refresher.status == "reading"
    await run_until(refresher, lambda: refresher.answer == 5)
    assert refresher.status == "live, every 1h"


async def test_an_error_keeps_the_last_answer_and_its_age() -> None:
    """And ends with the next answer."""
    answers: list[int | Exception] = [1, StoreUnavailable("gone fishing"), 2]

    async def look() -> int:
        answer = answers[0] if len(answers) == 1 else answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    refresher = Refresher(MachineClock(), SECOND // 1_000, look)
    statuses: list[tuple[int | None, str]] = []

    def seen() -> bool:
        statuses.append((refresher.answer, refresher.status))
        return refresher.answer == 2

    await run_until(refresher, seen)
    (away,) = [one for one in statuses if one[1].startswith("STORE AWAY")]
    assert away[0] == 1
    assert away[1].startswith("STORE AWAY, shown is what was ")
    assert away[1].endswith(" ago: gone fishing")
    assert statuses[-1][1].startswith("live")


async def test_a_store_that_does_not_answer_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for for ever."""
    monkeypatch.setattr(refreshing, "ANSWER_WITHIN", SECOND // 100)

    async def look() -> int:
        await asyncio.Event().wait()
        return 5

    refresher = Refresher(MachineClock(), HOUR, look)
    await run_until(refresher, lambda: refresher.looks)
    assert refresher.status.startswith("STORE AWAY, nothing to show yet: no answer within ")


async def test_an_answer_about_what_is_no_longer_shown_is_dropped() -> None:
    """The next look begins at once."""
    asked: list[int] = []

    async def look() -> int:
        asked.append(1)
        if len(asked) == 1:
            refresher.forget()  # the user has chosen something else meanwhile
        return len(asked)

    refresher = Refresher(MachineClock(), HOUR, look)
    answers: list[int | None] = []

    def seen() -> bool:
        answers.append(refresher.answer)
        return refresher.answer is not None

    await run_until(refresher, seen)
    assert answers == [None, 2]
