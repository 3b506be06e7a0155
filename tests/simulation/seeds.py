"""Run one seed after the other: put production code into simulated processes, and tell how each went."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from fairlane.app import client as client_module
from fairlane.duties import duties as duties_module
from fairlane.model.instants import SECOND, Micros
from fairlane.store import opening
from fairlane.store.contract import Store
from fairlane.worker import worker as worker_module
from fairlane.worker.attempts import live_attempts, run_handler
from fairlane.worker.startup import worker_record
from tests.simulation.process import ProcessLoop, SimThreads
from tests.simulation.server import Call, brief, link
from tests.simulation.world import World

OPERATIONS: Final = 40
TRACED: Final = 40
"""How many of the last happenings are kept to be shown."""


class Outcome(NamedTuple):
    """What a seed has shown."""

    seed: int
    wrong: list[str]
    trace: list[str]
    calls: list[Call] | None
    steps: int
    virtual: Micros
    figures: dict[str, int]


class InOrder(dict[Any, None]):
    """A set whose order does not depend on where its members lie in memory."""

    def add(self, member: Any) -> None:
        """Have a member."""
        self[member] = None

    def discard(self, member: Any) -> None:
        """Have it no more."""
        self.pop(member, None)


@contextmanager
def seams() -> Iterator[None]:
    """Let production code find the simulated process where it would ask the machine.

    Names, ids, the threads of plain handlers, and the order of a set of attempts; everything else is handed
    to it as it is in production.
    """
    opening.register_scheme("sim", _open)
    state = random.getstate()
    with (
        patch.object(worker_module, "new_process_name", _name),
        patch.object(client_module, "SystemRandom", lambda: now_running().rng),
        patch.object(run_handler, "ThreadPool", SimThreads),
        patch.object(live_attempts, "set", InOrder, create=True),
        patch.object(worker_record, "version", lambda _: "0"),
        patch.object(duties_module.log, "exception", _duty_failed),
    ):
        try:
            yield
        finally:
            random.setstate(state)


@contextmanager
def quiet() -> Iterator[None]:
    """Let production code log nothing: a run's log is its trace."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


_running: list[World] = []


def now_running() -> World:
    """Return the world of the seed that runs now."""
    return _running[-1]


def _duty_failed(*_: object, **__: object) -> None:
    now_running().wrong.append(f"a duty failed: {sys.exception()!r}")


def _name(role: str) -> str:
    return f"{role}-{now_running().figures['workers']}"


def _open(url: str, clock: opening.StoreClock | None) -> Store:
    home = asyncio.get_running_loop()
    assert isinstance(home, ProcessLoop)
    return link(now_running().server, home.process.name)


def run_seed(
    seed: int, operations: int = OPERATIONS, *, keeps_calls: bool = False, traced: int = TRACED
) -> Outcome:
    """Run one seed, inside `seams`. The same seed gives the same outcome, to the last step."""
    random.seed(seed)
    world = World(seed, operations, keeps_calls=keeps_calls, traced=traced)
    _running.append(world)
    try:
        world.run()
        steps, virtual = world.schedule.steps, world.schedule.now
        calls = world.server.calls
        world.end()
    finally:
        _running.pop()
    trace = [
        f"{at / SECOND:10.6f} {who}: {what} {brief(about)}".rstrip() for at, who, what, about in world.trace
    ]
    return Outcome(seed, world.wrong, trace, calls, steps, virtual, world.figures)
