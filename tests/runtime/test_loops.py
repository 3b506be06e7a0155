"""Loops, wake-ups and groups: passes say when they run again, tasks end together, no error is lost."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.loops import (
    WakeUp,
    read_together,
    repeat,
    run_all,
    run_with_background,
    start_task,
)

FOR_EVER: Micros = 3_600 * SECOND


async def test_a_pass_is_repeated_until_it_wants_no_more() -> None:
    """None ends it."""
    pauses: list[Micros | None] = [0, 1, None]
    calls: list[int] = []

    async def one_pass() -> Micros | None:
        calls.append(1)
        return pauses.pop(0)

    await repeat(one_pass)
    assert len(calls) == 3


async def test_a_bell_ends_a_pause_early_and_is_kept_if_nobody_waits() -> None:
    """Whatever rang during a pass, the next pause is skipped once."""
    wake_up, twice, calls = WakeUp(), asyncio.Event(), list[int]()

    async def one_pass() -> Micros | None:
        calls.append(1)
        if len(calls) == 1:
            wake_up.set()
        else:
            twice.set()
        return FOR_EVER if len(calls) < 3 else None

    async def ring() -> None:
        await twice.wait()
        wake_up.set()

    async with asyncio.timeout(10):
        await run_all(repeat(one_pass, wake_up), ring())
    assert len(calls) == 3


async def test_readings_at_the_same_time_answer_in_order_and_fail_as_one() -> None:
    """The first error is raised as it is, and the others end."""
    ended: list[str] = []

    async def read(name: str, error: Exception | None = None) -> str:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return name

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waiting")

    assert await read_together(read("a"), read("b")) == ["a", "b"]
    with pytest.raises(LookupError, match="gone"):
        await read_together(wait(), read("a", LookupError("gone")))
    assert ended == ["waiting"]


async def test_what_goes_on_beside_a_work_ends_with_it() -> None:
    """And the work's answer is given."""
    left: list[str] = []

    async def other() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.append("other")

    async def main() -> str:
        await asyncio.sleep(0)
        return "done"

    assert await run_with_background(main(), other(), other()) == "done"
    assert left == ["other", "other"]


async def test_a_failure_beside_a_work_ends_both() -> None:
    """Nothing goes on half."""
    left: list[str] = []

    async def other() -> None:
        raise LookupError

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.append("main")

    with pytest.RaisesGroup(LookupError):
        await run_with_background(main(), other())
    assert left == ["main"]


async def test_a_cancellation_from_outside_is_not_swallowed() -> None:
    """It ends the loop, in the middle of a pause as well."""
    began = asyncio.Event()

    async def one_pass() -> Micros:
        began.set()
        return FOR_EVER

    task = asyncio.ensure_future(run_with_background(repeat(one_pass), repeat(one_pass)))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_handler_s_task_has_its_own_context() -> None:
    """What it sets, nobody else sees."""
    word = contextvars.ContextVar("word", default="none")

    async def work() -> None:
        assert word.get() == "given"
        word.set("changed")

    own = contextvars.copy_context()
    own.run(word.set, "given")
    await start_task(work(), own)
    assert (word.get(), own[word]) == ("none", "changed")
