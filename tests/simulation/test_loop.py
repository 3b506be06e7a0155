"""Simulated loops: virtual time, turns that a seed draws, and threads that stand still or die."""

from __future__ import annotations

import asyncio
from random import Random

from fairlane.model.instants import SECOND
from tests.simulation.loop import Schedule, SimLoop


async def _note(said: list[str], word: str, seconds: float = 0) -> None:
    await asyncio.sleep(seconds)
    said.append(word)


def _world(seed: int = 0) -> tuple[Schedule, SimLoop, SimLoop]:
    schedule = Schedule(Random(seed))
    return schedule, schedule.loop("one"), schedule.loop("other")


def test_waiting_takes_no_time_but_virtual_time() -> None:
    """An hour passes at once, and everybody's clock shows it."""
    schedule, one, _ = _world()
    said: list[str] = []
    one.create_task(_note(said, "done", 3_600))
    assert schedule.run(lambda: bool(said), 3_601 * SECOND)
    assert 3_600 <= one.time() < 3_601


def test_callbacks_of_one_loop_keep_their_order() -> None:
    """As asyncio promises."""
    schedule, one, _ = _world()
    said: list[str] = []
    for word in "abcdef":
        one.call_soon(said.append, word)
    schedule.run(lambda: len(said) == 6, SECOND)
    assert "".join(said) == "abcdef"


def test_between_loops_and_at_one_instant_every_order_comes() -> None:
    """Whose turn it is, among threads and among timers that are due together, is the seed's to say."""
    orders, due = set(), set()
    for seed in range(40):
        schedule, one, other = _world(seed)
        said: list[str] = []
        one.call_soon(said.append, "a")
        other.call_soon(said.append, "b")
        one.call_at(1.0, said.append, "c")
        one.call_at(1.0, said.append, "d")
        schedule.run(lambda said=said: len(said) == 4, 2 * SECOND)  # type: ignore[misc]
        orders.add("".join(said[:2]))
        due.add("".join(said[2:]))
    assert orders == {"ab", "ba"}
    assert due == {"cd", "dc"}


def test_a_loop_that_stands_still_goes_on_where_it_was() -> None:
    """What became due meanwhile happens when it is thawed, late but whole."""
    schedule, one, other = _world()
    said: list[str] = []
    one.create_task(_note(said, "late", 1))
    other.create_task(_note(said, "other", 2))
    one.freeze()
    assert not schedule.run(lambda: "late" in said, 5 * SECOND)
    assert said == ["other"]
    one.thaw()
    assert schedule.run(lambda: "late" in said, 2 * SECOND)


def test_a_killed_loop_runs_nothing_until_its_tasks_are_ended() -> None:
    """Nothing of a dead process happens in a run; afterwards its tasks are cancelled, and none is left."""
    schedule, one, other = _world()
    said: list[str] = []
    one.create_task(_note(said, "never"))
    other.create_task(_note(said, "other", 1))
    one.kill()
    one.thaw()
    schedule.run(lambda: bool(said), 2 * SECOND)
    assert said == ["other"]
    assert schedule.end() == 0
    assert said == ["other"]


def test_many_callbacks_let_time_pass() -> None:
    """Who never waits cannot hold the clock, and timers come due beside it."""
    schedule, one, other = _world()
    said: list[str] = []

    def again() -> None:
        one.call_soon(again)

    again()
    other.call_at(0.000_050, said.append, "due")
    assert schedule.run(lambda: bool(said), SECOND)
