"""Run a worker as a process: signals, exit codes, interpreter settings. The command line calls this."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, cast

from fairlane.app.ambient import require_tenant
from fairlane.app.fairlane import Fairlane
from fairlane.diagnosis.probe_port import probe_port
from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Lane
from fairlane.model.scheduling.division import divide_lanes
from fairlane.runtime.exits import EVENT_LOOP_BLOCKED, INTERNAL_ERROR, OK, REPLACE, STORE_GONE
from fairlane.runtime.signals import on_stop
from fairlane.supervisor import control
from fairlane.supervisor.control import ProcessNumber, SupervisorConnection
from fairlane.worker import report
from fairlane.worker.inspection.dump_signal import dump_on_signal
from fairlane.worker.startup.lanes import choose_lanes
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
    supervisor: SupervisorConnection | None = None,
) -> int:
    """Work until SIGTERM, SIGINT or the end of the burst; return the exit code of the process.

    A second signal ends running jobs at once. With a `supervisor`, the worker has its part of the slots
    (S47), and only the supervisor can stop it at once: a signal may reach both. In this process every
    Fairlane call needs a tenant (S9).
    """
    if supervisor is not None:
        lanes = _own_part(app, lanes, supervisor.number)
    worker = WorkerRuntime(
        app, burst=burst, duties=duties, lanes=lanes, paused=supervisor is not None, observer=supervisor
    )
    worker.on_loop_blocked = lambda: _exit_blocked(worker)
    worker.on_stalled = lambda: exit_now(REPLACE)
    with dump_on_signal(worker.id, worker.dump), require_tenant(), _fewer_collections(), _faster_switching():
        return asyncio.run(_work(app, worker, supervisor))


def _own_part(app: Fairlane, lanes: Sequence[Lane | str] | None, number: ProcessNumber) -> list[Lane]:
    """Return this process's part of the lanes; `ConfigError` if the supervisor divides by another number."""
    wanted = app.settings.worker.processes
    if wanted != number.total:
        source = app.configuration.read.given.get(("worker", "processes"))
        message = (
            f"it is {wanted}, but the supervisor, which imports no application, has read {number.total}."
        )
        raise ConfigError(
            message,
            key="worker.processes",
            source="" if source is None else source.source,
            allowed="a value in --processes, FAIRLANE_WORKER__PROCESSES or fairlane.toml",
        )
    return divide_lanes(choose_lanes(app, lanes), number.position, number.total)


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


async def _work(app: Fairlane, worker: WorkerRuntime, supervisor: SupervisorConnection | None) -> int:
    interrupt = worker.stop_now if worker.settings.sigint == "immediate" else worker.stop
    with on_stop(worker.stop, interrupt) if supervisor is None else _obeying(worker, supervisor):
        try:
            async with probe_port(app, partial(why_not_ready, worker)):
                await worker.run()
        except BaseExceptionGroup as group:
            # Handlers may still run that nobody could settle: a supervisor restarts the whole process.
            report.worker_broken(worker.id, _first(group))
            exit_now(INTERNAL_ERROR)
    await app.aclose()
    code = STORE_GONE if worker.has_lost_its_store else REPLACE if worker.wants_replacement else OK
    if worker.has_abandoned:
        # A handler that ignores its cancellation would keep the loop, and so the process, alive forever.
        exit_now(code)
    return code


def why_not_ready(worker: WorkerRuntime) -> str:
    """Say why a worker takes no jobs, for a probe; the empty text if it does."""
    if not worker.is_ready:
        return "it has not begun yet"
    return "it leaves" if worker.stops or worker.wants_replacement else ""


@contextmanager
def _obeying(worker: WorkerRuntime, supervisor: SupervisorConnection) -> Generator[None]:
    """Do what the supervisor says. A signal to this process lets it drain, however often it comes."""
    loop = asyncio.get_running_loop()
    orders = {
        control.SERVE: worker.serve,
        control.QUARANTINE: worker.quarantine,
        control.DRAIN: worker.drain,
        control.INTERRUPT: worker.stop_now if worker.settings.sigint == "immediate" else worker.drain,
        control.STOP: worker.stop_now,
    }

    def obey() -> None:
        if not supervisor.receive(lambda message: orders[message]()):
            loop.remove_reader(supervisor.fileno())

    loop.add_reader(supervisor.fileno(), obey)
    loop.add_signal_handler(signal.SIGHUP, _ignore)  # meant for the supervisor
    try:
        with on_stop(worker.drain):
            yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        loop.remove_reader(supervisor.fileno())


def _ignore() -> None:
    """Ignore a signal, but not in programs that a handler starts."""


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
    report.dump(worker.id, "blocked", worker.dump())
    exit_now(EVENT_LOOP_BLOCKED)


def exit_now(code: int) -> None:
    """Exit without waiting for anything that still runs."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
