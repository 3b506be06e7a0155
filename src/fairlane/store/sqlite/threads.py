"""Run verbs on the file: one writer thread that groups verbs into commits, and one reader thread beside it.

A verb is a plain function of a `Transaction`. The writer takes all waiting verbs, runs them in one
transaction, commits once, and answers only then: an answer means durable. If a verb raises, the transaction
is rolled back and every verb runs again in a savepoint of its own, so that only the one that raised is
undone. If the commit fails, all verbs of the group failed.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import apsw

from fairlane.model.errors import EnqueueUnknown, StoreError, StoreUnavailable
from fairlane.model.instants import Instant
from fairlane.store.sqlite.checkpoints import IDLE_SECONDS, Checkpoints
from fairlane.store.sqlite.connection import to_store_error
from fairlane.store.sqlite.file_guard import OpenFile
from fairlane.store.sqlite.query import one_value
from fairlane.store.sqlite.transaction import Transaction

R = TypeVar("R")
Verb = Callable[[Transaction], R]

MAX_GROUP: Final = 64
"""Verbs that share a commit: enough to spread its cost, few enough to answer soon."""

_STEPS: Final = 20_000
"""Steps of SQLite's machine, less than a millisecond, after which it is asked whether the caller has gone."""

_STOP: Final = object()


class _Call:
    """A verb to run, and the future of the caller that awaits its answer."""

    __slots__ = ("answer", "error", "future", "loop", "unknown", "verb")

    def __init__(self, verb: Verb[Any], unknown: type[StoreError]) -> None:
        self.verb = verb
        self.unknown = unknown
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.answer: Any = None
        self.error: BaseException | None = None

    def deliver(self) -> None:
        """Resolve the future, in the caller's event loop, unless the caller has gone."""
        if self.future.cancelled():
            return
        if self.error is None:
            self.future.set_result(self.answer)
        else:
            self.future.set_exception(self.error)


class StoreThread(ABC):
    """A thread with its own connection that runs verbs one after the other."""

    def __init__(self, connect: Callable[[], OpenFile], clock: Callable[[], Instant], name: str) -> None:
        """Start nothing: the thread starts with the first verb."""
        self._connect = connect
        self._clock = clock
        self._name = name
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start_guard = threading.Lock()
        self._pid = 0

    async def run(self, verb: Verb[R], unknown: type[StoreError] = StoreUnavailable) -> R:
        """Run a verb and return its answer once it is durable."""
        if self._is_forked():
            message = (
                "this store was open when this process was forked from another, and its threads and locks "
                "stayed there. Open the store after the fork, or start processes by spawn."
            )
            raise StoreError(message)
        call = _Call(verb, unknown)
        with self._start_guard:
            if self._thread is None:
                self._pid = os.getpid()
                self._calls = queue.SimpleQueue()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._calls,), name=self._name, daemon=True
                )
                self._thread.start()
            self._calls.put(call)
        answer: R = await call.future
        return answer

    async def close(self) -> None:
        """Run the waiting verbs, close the connection, end the thread."""
        if self._is_forked():
            return  # thread and connection are the parent's
        with self._start_guard:
            thread, self._thread = self._thread, None
            self._calls.put(_STOP)  # nothing follows it: the next verb starts a new queue
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    def _is_forked(self) -> bool:
        return self._thread is not None and self._pid != os.getpid()

    def _serve(self, waiting: queue.SimpleQueue[Any]) -> None:
        file: OpenFile | None = None
        is_last = False
        while not is_last:
            group = [self._wait(waiting)]
            while len(group) < MAX_GROUP and not waiting.empty():
                group.append(waiting.get())
            is_last = _STOP in group
            calls = [one for one in group if one is not _STOP]
            try:
                if calls:
                    file = file or self._connect()
                    file.check()
                    self._run_group(file.db, calls)
                    file.check()
            except apsw.Error as error:
                _fail_all(calls, to_store_error(error, file.db.filename if file else self._name))
            except BaseException as error:  # noqa: BLE001 (every error goes to the callers)
                _fail_all(calls, error)
            _answer_all(calls)
        if file is not None:
            file.close()

    def _wait(self, waiting: queue.SimpleQueue[Any]) -> Any:
        """Wait for the next verb."""
        return waiting.get()

    @abstractmethod
    def _run_group(self, db: apsw.Connection, calls: list[_Call]) -> None:
        """Run a group of verbs; store the answer or error of each."""


class WriterThread(StoreThread):
    """The only thread that writes; a group of verbs shares a commit."""

    def __init__(
        self,
        connect: Callable[[], OpenFile],
        clock: Callable[[], Instant],
        wake: Callable[[set[str], set[str]], None],
    ) -> None:
        """`wake` is called after each commit with the queues and workers to wake."""
        super().__init__(connect, clock, "fairlane-sqlite-writer")
        self._wake = wake
        self._tx: Transaction | None = None
        self._log: Checkpoints | None = None
        self._idle_at = 0.0

    async def version(self) -> int:
        """Return a number that changes when any other connection has written to the file.

        This writer's own commits do not change it, because `wake` has announced them: an idle worker must not
        be woken by its own heartbeats.
        """
        return await self.run(_version)

    def _wait(self, waiting: queue.SimpleQueue[Any]) -> Any:
        if self._log is not None:
            self._log.after_commit()
        while self._log is not None and self._log.pages:
            try:
                return waiting.get(timeout=max(0.0, self._idle_at - time.monotonic()))
            except queue.Empty:
                self._log.when_idle()
                self._idle_at = time.monotonic() + IDLE_SECONDS
        return waiting.get()

    def _run_group(self, db: apsw.Connection, calls: list[_Call]) -> None:
        tx = self._tx if self._tx is not None and self._tx.db is db else Transaction(db)
        writes = [call for call in calls if call.verb is not _version]
        for call in calls:
            if call.verb is _version:  # takes no lock and adds nothing to the log
                call.answer = _version(tx)
        if writes:
            self._write(tx, writes)
            self._idle_at = time.monotonic() + IDLE_SECONDS

    def _write(self, tx: Transaction, calls: list[_Call]) -> None:
        db = tx.db
        if self._log is None or self._log.db is not db:
            self._log = Checkpoints(db)
        self._tx = None  # if this transaction fails, its caches are wrong
        is_sent = False
        try:
            if not self._run_all(tx, calls):
                self._run_each(tx, calls)
            is_sent = True
            db.execute("COMMIT")
        except apsw.Error as error:
            _rollback(db)
            is_unknown = is_sent and not isinstance(error, apsw.FullError)
            _fail_all(calls, to_store_error(error, db.filename), is_unknown=is_unknown)
        except BaseException:
            _rollback(db)
            raise
        else:
            self._tx = tx
            tx.cache_rows()
            self._wake(*tx.take_hints())

    def _begin(self, tx: Transaction) -> None:
        tx.db.execute("BEGIN IMMEDIATE")
        tx.begin(self._clock())

    def _run_all(self, tx: Transaction, calls: list[_Call]) -> bool:
        """Run all verbs without savepoints; return False if one raised.

        A savepoint costs a copy of every page. Verbs hardly ever raise, and they touch nothing outside the
        transaction, so that they can run again.
        """
        self._begin(tx)
        try:
            for call in calls:
                call.answer = call.verb(tx)
                tx.flush()
        except BaseException:  # noqa: BLE001 (it is raised again when each verb runs in a savepoint)
            _rollback(tx.db)
            return False
        return True

    def _run_each(self, tx: Transaction, calls: list[_Call]) -> None:
        """Run each verb in a savepoint, so that a verb that raises undoes only itself."""
        tx.drop_caches()
        tx.take_hints()
        self._begin(tx)
        for call in calls:
            self._run(tx, call)

    def _run(self, tx: Transaction, call: _Call) -> None:
        tx.savepoint()
        try:
            call.answer = call.verb(tx)
            tx.release()
        except apsw.Error as error:
            if tx.db.in_transaction:
                tx.rollback()
            call.error = to_store_error(error, tx.db.filename)
            if not tx.db.in_transaction:
                raise  # SQLite has rolled back the whole transaction: no verb of the group happened
        except BaseException as error:  # noqa: BLE001 (every error goes to its caller)
            tx.rollback()
            call.error = error


class ReaderThread(StoreThread):
    """Reads from a snapshot; never blocks the writer and is never blocked by it.

    A read whose caller has gone, as at the end of a time limit, is interrupted.
    """

    def __init__(self, connect: Callable[[], OpenFile], clock: Callable[[], Instant]) -> None:
        """Start nothing: the thread starts with the first verb."""
        super().__init__(connect, clock, "fairlane-sqlite-reader")
        self._tx: Transaction | None = None

    def _run_group(self, db: apsw.Connection, calls: list[_Call]) -> None:
        if self._tx is None or self._tx.db is not db:
            self._tx = Transaction(db)
        tx = self._tx
        try:
            db.execute("BEGIN")
            tx.begin(self._clock())
            for call in calls:
                db.set_progress_handler(call.future.cancelled, _STEPS)
                try:
                    call.answer = call.verb(tx)
                except apsw.Error as error:
                    call.error = to_store_error(error, db.filename)
                except BaseException as error:  # noqa: BLE001 (every error goes to its caller)
                    call.error = error
        finally:
            db.set_progress_handler(None)
            _rollback(db)


def _version(tx: Transaction) -> int:
    """Return SQLite's number that changes with every commit of another connection."""
    return int(one_value(tx.db, "PRAGMA data_version"))


def _rollback(db: apsw.Connection) -> None:
    """Roll back, unless SQLite has done so itself; afterwards no transaction is open."""
    if db.in_transaction:
        with suppress(apsw.Error):
            db.execute("ROLLBACK")


def _fail_all(calls: list[_Call], reason: BaseException, *, is_unknown: bool = False) -> None:
    """Set the error of every verb in a group that failed as a whole.

    After a failed commit it is unknown whether the enqueue happened: the next opening of the file may find
    the commit complete in the log. Only after a full disk it cannot be, because its last page is missing.
    """
    for call in calls:
        if is_unknown and call.unknown is EnqueueUnknown:
            call.error = EnqueueUnknown(f"{reason}; repeat the enqueue under the same ids")
        else:
            call.error = reason


def _answer_all(calls: list[_Call]) -> None:
    for call in calls:
        try:
            call.loop.call_soon_threadsafe(call.deliver)
        except RuntimeError:
            continue  # its event loop is closed: nobody waits
