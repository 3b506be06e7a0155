"""Run verbs on the file: one thread that writes, many verbs to a commit, and one that reads beside it.

A verb is a plain function of a `Tx`. The writer takes all verbs that are waiting, runs them in one
transaction, commits once, and only then answers: an answer means durable. If one raises, all are undone and
run again, each in a savepoint of its own: so it undoes itself alone. If the commit fails, all of them failed.
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
from fairlane.store.sqlite.asking import one_value
from fairlane.store.sqlite.checkpoints import IDLE_SECONDS, Checkpoints
from fairlane.store.sqlite.connect import Opened, translated
from fairlane.store.sqlite.tx import Tx

R = TypeVar("R")
Verb = Callable[[Tx], R]

GROUP_MOST: Final = 64
"""How many verbs share a commit: enough to hide the cost of one, few enough to answer soon."""

_STOP: Final = object()


class _Work:
    """A verb on its way, and who waits for its answer."""

    __slots__ = ("answer", "error", "future", "loop", "unknown", "verb")

    def __init__(self, verb: Verb[Any], unknown: type[StoreError]) -> None:
        self.verb = verb
        self.unknown = unknown
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.answer: Any = None
        self.error: BaseException | None = None

    def deliver(self) -> None:
        """Answer in the loop that asked, unless nobody waits any more."""
        if self.future.cancelled():
            return
        if self.error is None:
            self.future.set_result(self.answer)
        else:
            self.future.set_exception(self.error)


class Lane(ABC):
    """A thread with a connection of its own that runs verbs one after the other."""

    def __init__(self, connect: Callable[[], Opened], clock: Callable[[], Instant], name: str) -> None:
        """Start nothing yet: the thread begins with the first verb."""
        self._connect = connect
        self._clock = clock
        self._name = name
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start_guard = threading.Lock()
        self._pid = 0

    async def run(self, verb: Verb[R], unknown: type[StoreError] = StoreUnavailable) -> R:
        """Run a verb and give its answer once it is durable."""
        if self._is_forked():
            message = (
                "this store was open when this process was forked from another, and its threads and locks "
                "stayed there. Open the store after the fork, or start processes by spawn."
            )
            raise StoreError(message)
        work = _Work(verb, unknown)
        with self._start_guard:
            if self._thread is None:
                self._pid = os.getpid()
                self._work = queue.SimpleQueue()
                self._thread = threading.Thread(
                    target=self._live, args=(self._work,), name=self._name, daemon=True
                )
                self._thread.start()
            self._work.put(work)
        answer: R = await work.future
        return answer

    async def close(self) -> None:
        """Finish what was asked, close the connection, end the thread."""
        if self._is_forked():
            return  # all of it is the parent's
        with self._start_guard:
            thread, self._thread = self._thread, None
            self._work.put(_STOP)  # nothing comes behind it: the next verb begins a new queue
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    def _is_forked(self) -> bool:
        return self._thread is not None and self._pid != os.getpid()

    def _live(self, waiting: queue.SimpleQueue[Any]) -> None:
        file: Opened | None = None
        is_last = False
        while not is_last:
            group = [self._wait(waiting)]
            while len(group) < GROUP_MOST and not waiting.empty():
                group.append(waiting.get())
            is_last = _STOP in group
            works = [one for one in group if one is not _STOP]
            try:
                if works:
                    file = file or self._connect()
                    file.check()
                    self._do(file.db, works)
                    file.check()
            except apsw.Error as error:
                _tell(works, translated(error, file.db.filename if file else self._name))
            except BaseException as error:  # noqa: BLE001 (whatever it is, those who wait are told)
                _tell(works, error)
            _deliver(works)
        if file is not None:
            file.close()

    def _wait(self, waiting: queue.SimpleQueue[Any]) -> Any:
        """Give the next work."""
        return waiting.get()

    @abstractmethod
    def _do(self, db: apsw.Connection, works: list[_Work]) -> None:
        """Run a group of verbs and note each one's answer or error."""


class Writer(Lane):
    """Writes; a group of verbs to a commit."""

    def __init__(
        self,
        connect: Callable[[], Opened],
        clock: Callable[[], Instant],
        wake: Callable[[set[str], set[str]], None],
    ) -> None:
        """`wake` is told, after each commit, which queues and workers have something to hear."""
        super().__init__(connect, clock, "fairlane-sqlite-writer")
        self._wake = wake
        self._tx: Tx | None = None
        self._log: Checkpoints | None = None
        self._rests_at = 0.0

    async def version(self) -> int:
        """Give a number that changes when anybody else has written to the file, another process or not.

        What this writer has written itself it has told already (`wake`): a worker that is idle shall not be
        woken by its own heartbeats.
        """
        return await self.run(_version)

    def _wait(self, waiting: queue.SimpleQueue[Any]) -> Any:
        if self._log is not None:
            self._log.after_commit()
        while self._log is not None and self._log.pages:
            try:
                return waiting.get(timeout=max(0.0, self._rests_at - time.monotonic()))
            except queue.Empty:
                self._log.at_rest()
                self._rests_at = time.monotonic() + IDLE_SECONDS
        return waiting.get()

    def _do(self, db: apsw.Connection, works: list[_Work]) -> None:
        tx = self._tx if self._tx is not None and self._tx.db is db else Tx(db)
        writes = [work for work in works if work.verb is not _version]
        for work in works:
            if work.verb is _version:  # takes no lock, and is no work for the log
                work.answer = _version(tx)
        if writes:
            self._write(tx, writes)
            self._rests_at = time.monotonic() + IDLE_SECONDS

    def _write(self, tx: Tx, works: list[_Work]) -> None:
        db = tx.db
        if self._log is None or self._log.db is not db:
            self._log = Checkpoints(db)
        self._tx = None  # what it knows of a transaction that failed is not true
        is_sent = False
        try:
            if not self._run_all(tx, works):
                self._run_each(tx, works)
            is_sent = True
            db.execute("COMMIT")
        except apsw.Error as error:
            _undo(db)
            is_unknown = is_sent and not isinstance(error, apsw.FullError)
            _tell(works, translated(error, db.filename), is_unknown=is_unknown)
        except BaseException:
            _undo(db)
            raise
        else:
            self._tx = tx
            tx.committed()
            self._wake(*tx.take_hints())

    def _begin(self, tx: Tx) -> None:
        tx.db.execute("BEGIN IMMEDIATE")
        tx.begin(self._clock())

    def _run_all(self, tx: Tx, works: list[_Work]) -> bool:
        """Run all verbs without savepoints, which cost a copy of every page; False if one raised.

        A verb hardly ever raises, and it touches nothing outside the transaction: it can be run again.
        """
        self._begin(tx)
        try:
            for work in works:
                work.answer = work.verb(tx)
                tx.flush()
        except BaseException:  # noqa: BLE001 (it is raised again when each runs by itself)
            _undo(tx.db)
            return False
        return True

    def _run_each(self, tx: Tx, works: list[_Work]) -> None:
        """Run each verb in a savepoint, so that one that raises undoes itself alone."""
        tx.forget()
        tx.take_hints()
        self._begin(tx)
        for work in works:
            self._run(tx, work)

    def _run(self, tx: Tx, work: _Work) -> None:
        tx.mark()
        try:
            work.answer = work.verb(tx)
            tx.keep()
        except apsw.Error as error:
            if tx.db.in_transaction:
                tx.undo()
            work.error = translated(error, tx.db.filename)
            if not tx.db.in_transaction:
                raise  # SQLite has rolled the whole transaction back: nobody's verb happened
        except BaseException as error:  # noqa: BLE001 (whatever it is, its caller is told)
            tx.undo()
            work.error = error


class Reader(Lane):
    """Reads from a snapshot beside the writer; blocks nobody and is blocked by nobody."""

    def __init__(self, connect: Callable[[], Opened], clock: Callable[[], Instant]) -> None:
        """Start nothing yet."""
        super().__init__(connect, clock, "fairlane-sqlite-reader")
        self._tx: Tx | None = None

    def _do(self, db: apsw.Connection, works: list[_Work]) -> None:
        if self._tx is None or self._tx.db is not db:
            self._tx = Tx(db)
        tx = self._tx
        try:
            db.execute("BEGIN")
            tx.begin(self._clock())
            for work in works:
                try:
                    work.answer = work.verb(tx)
                except apsw.Error as error:
                    work.error = translated(error, db.filename)
                except BaseException as error:  # noqa: BLE001 (whatever it is, its caller is told)
                    work.error = error
        finally:
            _undo(db)


def _version(tx: Tx) -> int:
    """Read what changes with every commit of another connection."""
    return int(one_value(tx.db, "PRAGMA data_version"))


def _undo(db: apsw.Connection) -> None:
    """End the transaction, unless SQLite has done so by itself; afterwards there is none in any case."""
    if db.in_transaction:
        with suppress(apsw.Error):
            db.execute("ROLLBACK")


def _tell(works: list[_Work], reason: BaseException, *, is_unknown: bool = False) -> None:
    """Tell everybody in a group that failed as a whole.

    A commit that was cut short may be found whole when the file is next opened, unless the disk was full:
    then its last page is not there.
    """
    for work in works:
        if is_unknown and work.unknown is EnqueueUnknown:
            work.error = EnqueueUnknown(f"{reason}; repeat the enqueue under the same ids")
        else:
            work.error = reason


def _deliver(works: list[_Work]) -> None:
    for work in works:
        try:
            work.loop.call_soon_threadsafe(work.deliver)
        except RuntimeError:
            continue  # its loop is closed: nobody waits
