"""Run a worker as a process: signals, exit codes, interpreter settings. The command line calls this."""

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

from fairlane.app.ambient import require_tenant
from fairlane.app.fairlane import Fairlane
from fairlane.model.policy.declared import Lane
from fairlane.runtime.exits import EVENT_LOOP_BLOCKED, INTERNAL_ERROR, OK, STORE_GONE
from fairlane.runtime.signals import on_stop
from fairlane.worker import report
from fairlane.worker.worker import WorkerRuntime

COLLECT_EVERY: Final = 5_000
"""New objects between two garbage collections, at least: an attempt makes dozens, and none needs one."""

SWITCH_EVERY: Final = 0.001
"""Seconds that a thread may keep the interpreter lock while another waits for it."""

_PYTHON_DEFAULT: Final = 0.005

FINAL_LOG_TIMEOUT: Final = 2.0
"""Seconds that logging a blocked event loop may take."""


def run_worker(
    app: Fairlane,
    *,
    burst: bool = False,
    duties: bool | None = None,
    lanes: Sequence[Lane | str] | None = None,
) -> int:
    """Work until SIGTERM, SIGINT or the end of the burst; return the exit code of the process.

    A second signal ends running jobs at once. In this process every Fairlane call needs a tenant (S9).
    """
    worker = WorkerRuntime(app, burst=burst, duties=duties, lanes=lanes)
    worker.on_loop_blocked = lambda: _exit_blocked(worker)
    with require_tenant(), _fewer_collections(), _faster_switching():
        return asyncio.run(_work(app, worker))


@contextmanager
def _fewer_collections() -> Generator[None]:
    """Freeze what the application has imported, and collect garbage less often.

    Collections took a tenth of a worker's time. A higher threshold of the application, or none, is kept.
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
def _faster_switching() -> Generator[None]:
    """Let the portal thread have the interpreter lock soon, whatever handlers compute.

    It needs the lock again after every read from the store. An interval that the application has set is kept.
    """
    before = sys.getswitchinterval()
    if before == _PYTHON_DEFAULT:
        sys.setswitchinterval(SWITCH_EVERY)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


async def _work(app: Fairlane, worker: WorkerRuntime) -> int:
    with on_stop(worker.stop):
        try:
            await worker.run()
        except BaseExceptionGroup as group:
            # Handlers may still run that nobody could settle: a supervisor restarts the whole process.
            report.worker_broken(worker.id, _first(group))
            exit_now(INTERNAL_ERROR)
    await app.aclose()
    code = STORE_GONE if worker.has_lost_its_store else OK
    if worker.has_abandoned:
        # A handler that ignores its cancellation would keep the loop, and so the process, alive forever.
        exit_now(code)
    return code


def _first(error: BaseException) -> BaseException:
    """Return the error that a group of errors began with."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error if error.__cause__ is None else error.__cause__


def _exit_blocked(worker: WorkerRuntime) -> None:
    # The loop may be blocked inside of logging, holding a log handler's lock.
    timer = threading.Timer(FINAL_LOG_TIMEOUT, os._exit, (EVENT_LOOP_BLOCKED,))
    timer.daemon = True
    timer.start()
    report.loop_blocked(worker.id)
    exit_now(EVENT_LOOP_BLOCKED)


def exit_now(code: int) -> None:
    """Exit without waiting for anything that still runs."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
