"""Run a worker as a process: signals, exit codes, the walls between tenants. The command line calls this."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, cast

from fairlane.app.ambient import walled
from fairlane.app.fairlane import Fairlane
from fairlane.model.policy import Lane
from fairlane.runtime.exits import BROKEN_DOWN, OK, STOOD_STILL, STORE_GONE
from fairlane.runtime.signals import on_stop
from fairlane.worker import report
from fairlane.worker.worker import Worker

COLLECT_EVERY: Final = 5_000
"""New objects between two looks of the collector, at least: an attempt has dozens, and none needs it."""

SWITCH_EVERY: Final = 0.001
"""Seconds that a thread may keep the interpreter while another waits for it."""

_PYTHONS_OWN: Final = 0.005

LAST_WORD: Final = 2.0
"""Seconds that saying so may take."""


def run_worker(
    app: Fairlane,
    *,
    burst: bool = False,
    duties: bool | None = None,
    lanes: Sequence[Lane | str] | None = None,
) -> int:
    """Work until SIGTERM, SIGINT or the end of the burst; give the exit code of the process.

    A second signal ends running jobs at once. In this process every Fairlane call needs a tenant (S9).
    """
    worker = Worker(app, burst=burst, duties=duties, lanes=lanes)
    worker.on_standstill = lambda: _give_up(worker)
    with walled(), _collecting_seldom(), _switching_often():
        return asyncio.run(_work(app, worker))


@contextmanager
def _collecting_seldom() -> Generator[None]:
    """Spare the collector what an application has imported, which stays, and most of its looks.

    It took a tenth of a worker's time. An application that has chosen a longer way, or none, keeps it.
    """
    every, *rest = before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    if 0 < every < COLLECT_EVERY:
        gc.set_threshold(COLLECT_EVERY, *rest)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def _switching_often() -> Generator[None]:
    """Let the thread that talks to the store have the interpreter soon, whatever handlers compute.

    It asks for it again after every read. An application that has chosen an interval of its own keeps it.
    """
    before = sys.getswitchinterval()
    if before == _PYTHONS_OWN:
        sys.setswitchinterval(SWITCH_EVERY)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


async def _work(app: Fairlane, worker: Worker) -> int:
    with on_stop(worker.stop):
        try:
            await worker.run()
        except BaseExceptionGroup as group:
            # Handlers may run on that nobody could settle: a supervisor replaces the whole process.
            report.broken_down(worker.id, _first(group))
            exit_now(BROKEN_DOWN)
    await app.aclose()
    code = STORE_GONE if worker.has_lost_its_store else OK
    if worker.has_abandoned:
        # A handler that ignores its cancellation would keep the loop, and so the process, for ever.
        exit_now(code)
    return code


def _first(error: BaseException) -> BaseException:
    """Find what a group of errors began with."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error if error.__cause__ is None else error.__cause__


def _give_up(worker: Worker) -> None:
    # The loop may stand still inside of logging itself, with a handler in its hands.
    timer = threading.Timer(LAST_WORD, os._exit, (STOOD_STILL,))
    timer.daemon = True
    timer.start()
    report.standstill(worker.id)
    exit_now(STOOD_STILL)


def exit_now(code: int) -> None:
    """End the process without waiting for anything that still runs in it."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
