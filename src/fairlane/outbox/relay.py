"""Move rows from the outbox to the store until told to stop, in a thread of its own or the caller's.

An error of the application's database or of the store is logged once per outage and retried: a row stays in
the outbox until the store has its job.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from random import SystemRandom
from typing import Final, Self

from fairlane.app.ambient import acting_for_all_tenants, refuse_inside
from fairlane.app.fairlane import Fairlane
from fairlane.model.checking import instance, is_whole, positive, refuse, shown
from fairlane.model.errors import ConfigError
from fairlane.model.instants import SECOND, Duration, to_micros
from fairlane.model.job import NewJob
from fairlane.model.retry.backoff import Backoff
from fairlane.outbox.backlog import Backlog, Connection
from fairlane.outbox.held_tenants import HeldTenants
from fairlane.outbox.table import ParamStyle, check_style
from fairlane.outbox.transfer import PassResult, move
from fairlane.store.contract.jobs import MAX_BATCH_SIZE, EnqueueReply

_BACKOFF: Final = Backoff.exponential(0.25, cap=30, jitter=0.2)

_FOR_ALL: Final = "a relay moves the jobs of all tenants"

_log: Final = getLogger("fairlane")
_draw: Final = SystemRandom().random


class Relay:
    """Moves the jobs of an outbox into the store of an application: exactly once, in order per tenant.

    `connect` opens a DB-API connection to the application's database; it is called in the thread that uses
    the connection. `paramstyle` is that of its library (PEP 249). Any number of relays may run at once, in
    any process. An empty outbox is polled every `poll` seconds; at most `batch` rows share a transaction.

    A relay acts for all tenants: from inside one it raises `InsideTenant`, unless the task is declared
    `system=True` or the code uses `app.as_system` (S9).
    """

    def __init__(
        self,
        app: Fairlane,
        connect: Callable[[], Connection],
        *,
        paramstyle: ParamStyle = "qmark",
        poll: Duration = 0.25,
        batch: int = 500,
    ) -> None:
        instance("app", app, Fairlane, "a Fairlane(...)")
        check_style(paramstyle)
        if not callable(connect):
            refuse("connect", connect, "a function that opens a connection")
        positive("poll", poll)
        if not is_whole(batch) or not 1 <= batch <= MAX_BATCH_SIZE:
            raise ConfigError(f"it is {shown(batch)}.", key="batch", allowed=f"1 to {MAX_BATCH_SIZE:,}")
        self._app = app
        self._connect = connect
        self._style: ParamStyle = paramstyle
        self._batch = batch
        self._poll = to_micros(poll)
        self._pid = os.getpid()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Run in a thread of this process; no effect if it runs already."""
        refuse_inside(_FOR_ALL)
        self._notice_fork()
        if self._thread is None:
            self._stop = threading.Event()
            # A daemon, so that an application that never stops it can still exit; safe at any point.
            self._thread = threading.Thread(
                target=self._run_for_all, args=(self._stop,), name="fairlane-relay", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread after its current pass, and wait for it."""
        self._notice_fork()
        thread, self._thread = self._thread, None
        self._stop.set()
        if thread is not None:
            thread.join()

    def run(self, stop: threading.Event) -> None:
        """Move rows until `stop` is set; errors are logged once per outage and retried."""
        refuse_inside(_FOR_ALL)
        self._run_for_all(stop)

    def _run_for_all(self, stop: threading.Event) -> None:
        # The starter was checked. A thread has no tenant, and a worker may start to require one later.
        with acting_for_all_tenants(), self.session() as session:
            failures = 0
            while not stop.is_set():
                try:
                    again_in = session.step().again_in
                except Exception as error:  # noqa: BLE001 (a database library may raise any class)
                    failures += 1
                    session.disconnect()
                    _log_failure(error, failures)
                    stop.wait(_BACKOFF.micros(failures, _draw()) / SECOND)
                    continue
                if failures:
                    _log.info("outbox: the relay moves jobs again", extra={"event": "outbox_recovered"})
                failures = 0
                stop.wait((self._poll if again_in is None else again_in) / SECOND)

    def drain(self) -> int:
        """Move all rows that may go now, in the caller's thread; return how many. Errors are raised."""
        moved = 0
        with self.session() as session:
            while (passed := session.step()).again_in == 0:
                moved += passed.stored
        return moved

    def session(self) -> RelaySession:
        """Return a session, with which one thread runs passes itself."""
        return RelaySession(self._app, self._connect, self._style, self._batch)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            # The thread and its connection stayed in the parent.
            self._pid, self._thread, self._stop = os.getpid(), None, threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class RelaySession:
    """The resources of one relaying thread: an event loop with its store, and a connection."""

    def __init__(
        self, app: Fairlane, connect: Callable[[], Connection], style: ParamStyle, limit: int
    ) -> None:
        self._client = app.client
        self._connect = connect
        self._style: ParamStyle = style
        self._limit = limit
        self._runner = asyncio.Runner()
        self._held_tenants = HeldTenants()
        self._backlog: Backlog | None = None

    def step(self) -> PassResult:
        """Run one pass."""
        refuse_inside(_FOR_ALL)
        if self._backlog is None:
            self._backlog = Backlog(self._connect(), self._style)
        now = self._client.clock.elapsed()
        return move(self._backlog, self._send, self._held_tenants, now, self._limit)

    def _send(self, jobs: tuple[NewJob, ...]) -> EnqueueReply:
        return self._runner.run(self._client.astore(jobs))

    def disconnect(self) -> None:
        """Close a connection that may be broken; the next pass opens a new one."""
        backlog, self._backlog = self._backlog, None
        if backlog is not None:
            with suppress(Exception):  # closing a broken connection may raise anything
                backlog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.disconnect()
        with self._runner as runner:
            runner.run(self._client.aclose_here())


def _log_failure(error: Exception, failures: int) -> None:
    if failures == 1:
        _log.warning(
            "outbox: the relay failed and will retry: %s: %s",
            *(type(error).__name__, error),
            extra={"event": "outbox_trouble", "error_type": type(error).__name__},
        )
