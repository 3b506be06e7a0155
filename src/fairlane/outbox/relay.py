"""Keep moving rows from the outbox to the store, in a thread or in the caller's own, until told to stop.

Whatever goes wrong, in the application's database or in the store, is told once and tried again: a row stays
where it is until the store has its job.
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

from fairlane.app.ambient import for_all, refuse_inside
from fairlane.app.fairlane import Fairlane
from fairlane.model.checking import is_whole, positive, refuse, shown
from fairlane.model.errors import ConfigError
from fairlane.model.instants import SECOND, Duration, to_micros
from fairlane.model.job import NewJob
from fairlane.model.retry import Backoff
from fairlane.outbox.backlog import Backlog, Connection
from fairlane.outbox.holding import Holds
from fairlane.outbox.moving import Passed, move
from fairlane.outbox.options import check_app, check_style
from fairlane.outbox.table import ParamStyle
from fairlane.store.contract.jobs import BATCH_MOST, EnqueueReply

_BACKOFF: Final = Backoff.exponential(0.25, cap=30, jitter=0.2)

_FOR_ALL: Final = "a relay moves the jobs of all tenants"

_log: Final = getLogger("fairlane")
_draw: Final = SystemRandom().random


class Relay:
    """Moves the jobs of an outbox into the store of an application, each exactly once, in order per tenant.

    `connect` opens a DB-API connection to the application's database, in the thread that uses it;
    `paramstyle` is that of its library (PEP 249). Any number of relays may run at once, in any process. An
    empty outbox is looked at every `poll` seconds; `batch` rows share a transaction.

    Rows say themselves whose they are, so moving them acts for all tenants: from inside one it raises
    `InsideTenant`, unless the task is declared `system=True` or `app.as_system` says why (S9).
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
        check_app(app)
        check_style(paramstyle)
        if not callable(connect):
            refuse("connect", connect, "a function that opens a connection")
        positive("poll", poll)
        if not is_whole(batch) or not 1 <= batch <= BATCH_MOST:
            raise ConfigError(f"it is {shown(batch)}.", key="batch", allowed=f"1 to {BATCH_MOST:,}")
        self._app = app
        self._connect = connect
        self._style: ParamStyle = paramstyle
        self._batch = batch
        self._poll = to_micros(poll)
        self._pid = os.getpid()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Run in a thread of this process; nothing happens if it does already."""
        refuse_inside(_FOR_ALL)
        self._notice_fork()
        if self._thread is None:
            self._stop = threading.Event()
            # A daemon: an application that never stops it must still be able to exit, and may at any point.
            self._thread = threading.Thread(
                target=self._run_for_all, args=(self._stop,), name="fairlane-relay", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End the thread after the pass it is in, and wait for that."""
        self._notice_fork()
        thread, self._thread = self._thread, None
        self._stop.set()
        if thread is not None:
            thread.join()

    def run(self, stop: threading.Event) -> None:
        """Move rows until told to stop; errors are logged, once an outage, and tried again."""
        refuse_inside(_FOR_ALL)
        self._run_for_all(stop)

    def _run_for_all(self, stop: threading.Event) -> None:
        # Whoever started it was allowed to. A thread has no tenant, and a worker may raise its walls later.
        with for_all(), self.session() as session:
            failures = 0
            while not stop.is_set():
                try:
                    again_in = session.step().again_in
                except Exception as error:  # noqa: BLE001 (a database library's errors are of any class)
                    failures += 1
                    session.disconnect()
                    _tell_trouble(error, failures)
                    stop.wait(_BACKOFF.micros(failures, _draw()) / SECOND)
                    continue
                if failures:
                    _log.info("outbox: the relay moves jobs again", extra={"event": "outbox_recovered"})
                failures = 0
                stop.wait((self._poll if again_in is None else again_in) / SECOND)

    def drain(self) -> int:
        """Move all that may go now, in the caller's thread, and say how many; errors are raised."""
        moved = 0
        with self.session() as session:
            while (passed := session.step()).again_in == 0:
                moved += passed.stored
        return moved

    def session(self) -> Session:
        """Give what one thread needs to do passes by itself."""
        return Session(self._app, self._connect, self._style, self._batch)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            # The thread, and the connection in it, stayed in the parent.
            self._pid, self._thread, self._stop = os.getpid(), None, threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Session:
    """What one thread has open while it relays: an event loop with its store, and a connection."""

    def __init__(
        self, app: Fairlane, connect: Callable[[], Connection], style: ParamStyle, most: int
    ) -> None:
        self._client = app.client
        self._connect = connect
        self._style: ParamStyle = style
        self._most = most
        self._runner = asyncio.Runner()
        self._holds = Holds()
        self._backlog: Backlog | None = None

    def step(self) -> Passed:
        """Do one pass."""
        refuse_inside(_FOR_ALL)
        if self._backlog is None:
            self._backlog = Backlog(self._connect(), self._style)
        now = self._client.clock.elapsed()
        return move(self._backlog, self._send, self._holds, now, self._most)

    def _send(self, jobs: tuple[NewJob, ...]) -> EnqueueReply:
        return self._runner.run(self._client.astore(jobs))

    def disconnect(self) -> None:
        """Let go of a connection that may be broken; the next pass makes a new one."""
        backlog, self._backlog = self._backlog, None
        if backlog is not None:
            with suppress(Exception):  # it is no longer wanted, whatever it says
                backlog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.disconnect()
        with self._runner as runner:
            runner.run(self._client.aclose_here())


def _tell_trouble(error: Exception, failures: int) -> None:
    if failures == 1:
        _log.warning(
            "outbox: the relay cannot go on and will try again: %s: %s",
            *(type(error).__name__, error),
            extra={"event": "outbox_trouble", "error_type": type(error).__name__},
        )
