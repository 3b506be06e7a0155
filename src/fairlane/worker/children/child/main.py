"""The main program of a child process: import the application once, then run one job at a time.

Started by `launch`. The main thread waits for a frame, runs the handler, and reports its result. Nothing
reads the connection while a handler runs: signals interrupt it (`stops`), and the guardian kills the
process if the worker is gone.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final

from fairlane.app.ambient import require_tenant
from fairlane.app.fairlane import Fairlane
from fairlane.app.task.declaration import Declaration, with_task_settings
from fairlane.model.failure import ErrorClass, Failure, describe
from fairlane.model.payload.encoding import Undecodable
from fairlane.model.retry.decision import AttemptResult, Failed
from fairlane.model.worker_errors import StartupFailed
from fairlane.worker.attempts.arguments import read_arguments
from fairlane.worker.attempts.results import result_of, undecodable
from fairlane.worker.breaker_outcomes import breaker_of
from fairlane.worker.children.child.attempt import ChildAttempt, HandlerRunner
from fairlane.worker.children.child.leftovers import Leftovers, adopt_orphans
from fairlane.worker.children.child.log import log_to_worker
from fairlane.worker.children.child.stops import ChildStops
from fairlane.worker.children.connection import ConnectionLost, WorkerConnection
from fairlane.worker.children.death import LOST_CONNECTION
from fairlane.worker.children.import_path import import_application, import_tasks
from fairlane.worker.children.protocol import NotReady, Ready, Setup, Start, ended

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Child:
    """Runs the jobs that its worker sends, one after the other."""

    def __init__(self, app: Fairlane, setup: Setup, connection: WorkerConnection, stops: ChildStops) -> None:
        self._client = app.client
        self._client.has_worker = True  # a handler must not close the store under the next one
        self._connection = connection
        self._stops = stops
        self._pid = os.getpid()
        self._reports_memory = setup.reports_memory
        self._runner = HandlerRunner(app.client, setup.worker, stops)
        self._declarations: dict[str, Declaration] = {}
        self._clean = copy_context()
        self.attempt: ChildAttempt | None = None
        self._leftovers = Leftovers()

    def open(self) -> None:
        """Open the application's resources, once for all jobs (S71). What they start is no handler's."""
        self._runner.open()
        self._leftovers = Leftovers()

    def serve(self) -> None:
        """Run jobs until the worker closes the connection."""
        while (message := self._connection.receive()) is not None:
            if isinstance(message, Start):
                self._run(message)
        self._runner.close()

    def _run(self, start: Start) -> None:
        declared = self._declaration(start.job.task)
        if declared is None:
            text = f"the child process does not know task {start.job.task}: it was declared after the import"
            unknown = Failed(Failure(ErrorClass.RETRYABLE, "UnknownTask", text))
            self._connection.send(ended(unknown, None, None, 0))
            return
        for said in start.open_breakers:
            self._client.breaker_memory.hear(said, start.store_now)
        attempt = self.attempt = ChildAttempt(start, declared, self._connection)
        self._stops.begin(attempt)
        try:
            result = self._result(attempt)
        except BaseException as error:  # noqa: BLE001 (around the handler: fails this attempt and no other)
            self._exit_if_forked(error)
            result = Failed(describe(error, ErrorClass.RETRYABLE))
        self._stops.end()
        attempt.control.end()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the handler may have closed or replaced it
                stream.flush()
        tail = attempt.control.tail
        log = None if tail is None else tail.text()
        leftovers = self._leftovers.found(was_stopped=attempt.control.stop_reason is not None)
        resident = _resident() if self._reports_memory else 0
        self._connection.send(
            ended(result, log, leftovers, resident, attempt.control.metadata, attempt.control.spent)
        )
        self.attempt = None
        if self._client.journals.is_due:  # a refusal: rare, so the next job may wait for it
            self._client.portal.run(self._client.asend_journals())

    def _result(self, attempt: ChildAttempt) -> AttemptResult | None:
        """Decode the arguments, run the handler, and read what it returned or raised."""
        try:
            arguments = read_arguments(attempt.claim.job, attempt.declared)
        except Undecodable as error:
            return undecodable(error)
        value, raised = None, None
        try:
            value = self._runner.run(attempt, arguments, self._clean.copy())
        except BaseException as error:  # noqa: BLE001 (S28: whatever a handler raises ends its attempt only)
            raised = error
        self._exit_if_forked(raised)
        breaker = breaker_of(self._client, attempt.declared)
        return result_of(attempt, value, raised, attempt.store_now, breaker)

    def _declaration(self, task: str) -> Declaration | None:
        found = self._declarations.get(task)
        if found is None:
            declared = self._client.registry.find(task)
            if declared is not None:
                found = self._declarations[task] = with_task_settings(declared, self._client.settings.tasks)
        return found

    def _exit_if_forked(self, error: BaseException | None) -> None:
        """End this process if the handler has forked it: the worker knows only its parent."""
        if os.getpid() != self._pid:
            os._exit(error is not None)

    def about(self) -> Mapping[str, Any]:
        """Return the fields of the running job that its log records carry."""
        if self.attempt is None:
            return {}
        job = self.attempt.claim.job
        return {"tenant": job.tenant, "job": str(job.id), "task": job.task, "attempt": job.attempt}


def main(descriptor: int) -> None:
    """Import what the worker names, say that it is there, and run jobs."""
    connection = WorkerConnection(descriptor)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    setup = connection.receive()
    if not isinstance(setup, Setup):
        return
    stops = ChildStops(connection)
    stops.install()
    connection.on_sent = stops.after_sending
    try:
        app = _application(setup)
    except BaseException as error:  # noqa: BLE001 (the application's code may raise anything; the worker logs it)
        connection.send(NotReady(describe(error, ErrorClass.RETRYABLE)))
        return
    adopt_orphans()
    with require_tenant():
        child = Child(app, setup, connection, stops)
        log_to_worker(connection, setup.log_levels, child.about)
        try:
            child.open()
        except StartupFailed as error:
            connection.send(NotReady(describe(error, ErrorClass.RETRYABLE)))
            return
        connection.send(Ready())
        child.serve()


def _application(setup: Setup) -> Fairlane:
    sys.path[:] = setup.path
    app = import_application(setup.application)
    file = None if setup.config_file is None else Path(setup.config_file)
    app.configuration.use(file=file, options=setup.options, is_quiet=True)
    import_tasks(app)
    return app


def _resident() -> int:
    """Return the resident memory of this process in bytes; 0 if that cannot be read."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:  # noqa: PTH123 (after every job)
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except ConnectionLost:
        os._exit(LOST_CONNECTION)
