"""Run a worker as a process: signals, exit codes, the walls between tenants. The command line calls this."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import Final

from fairlane.app.ambient import walled
from fairlane.app.fairlane import Fairlane
from fairlane.model.policy import Lane
from fairlane.runtime.exits import OK, STOOD_STILL, STORE_GONE
from fairlane.runtime.signals import on_stop
from fairlane.worker import report
from fairlane.worker.worker import Worker

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
    with walled():
        return asyncio.run(_work(app, worker))


async def _work(app: Fairlane, worker: Worker) -> int:
    with on_stop(worker.stop):
        await worker.run()
    await app.aclose()
    code = STORE_GONE if worker.has_lost_its_store else OK
    if worker.has_abandoned:
        # A handler that ignores its cancellation would keep the loop, and so the process, for ever.
        exit_now(code)
    return code


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
