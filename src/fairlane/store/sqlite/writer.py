"""Run verbs on the file: one thread that writes, many verbs to a commit, and one that reads beside it.

A verb is a plain function of a `Tx`. The writer takes all verbs that are waiting, runs each in a savepoint of
one transaction, commits once, and only then answers: an answer means durable. A verb that raises undoes
itself alone. If the commit fails, all of them failed.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import apsw

from fairlane.model.errors import EnqueueUnknown, StoreError, StoreUnavailable
from fairlane.model.instants import Instant
from fairlane.store.sqlite.connect import translated
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


class Lane:
    """A thread with a connection of its own that runs verbs one after the other."""

    def __init__(
        self, connect: Callable[[], apsw.Connection], clock: Callable[[], Instant], name: str
    ) -> None:
        """Start nothing yet: the thread begins with the first verb."""
        self._connect = connect
        self._clock = clock
        self._name = name
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start_guard = threading.Lock()

    async def run(self, verb: Verb[R], unknown: type[StoreError] = StoreUnavailable) -> R:
        """Run a verb and give its answer once it is durable."""
        work = _Work(verb, unknown)
        with self._start_guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name=self._name, daemon=True)
                self._thread.start()
            self._work.put(work)
        answer: R = await work.future
        return answer

    async def close(self) -> None:
        """Finish what was asked, close the connection, end the thread."""
        thread = self._thread
        if thread is not None:
            self._work.put(_STOP)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)
            self._thread = None

    def _live(self) -> None:
        db: apsw.Connection | None = None
        while True:
            group = [self._work.get()]
            while len(group) < GROUP_MOST and not self._work.empty():
                group.append(self._work.get())
            is_last = _STOP in group
            works = [one for one in group if one is not _STOP]
            if works:
                try:
                    db = db or self._connect()
                    self._do(db, works)
                except StoreError as error:
                    for work in works:
                        work.error = error
                _deliver(works)
            if is_last:
                if db is not None:
                    db.close()
                return

    def _do(self, db: apsw.Connection, works: list[_Work]) -> None:
        raise NotImplementedError


class Writer(Lane):
    """Writes; a group of verbs to a commit."""

    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        clock: Callable[[], Instant],
        wake: Callable[[set[str], set[str]], None],
    ) -> None:
        """`wake` is told, after each commit, which queues and workers have something to hear."""
        super().__init__(connect, clock, "fairlane-sqlite-writer")
        self._wake = wake
        self._tx: Tx | None = None

    def _do(self, db: apsw.Connection, works: list[_Work]) -> None:
        tx = self._tx = self._tx or Tx(db)
        try:
            db.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise translated(error, db.filename) from error
        try:
            tx.begin(self._clock())
            for work in works:
                self._run(tx, work)
            db.execute("COMMIT")
        except apsw.Error as error:
            self._undo(db, works, error)
        else:
            self._wake(*tx.take_hints())

    def _run(self, tx: Tx, work: _Work) -> None:
        tx.db.execute("SAVEPOINT verb")
        try:
            work.answer = work.verb(tx)
            tx.flush()
        except apsw.Error as error:
            if tx.db.in_transaction:
                tx.undo()
            work.error = translated(error, tx.db.filename)
            if not tx.db.in_transaction:
                raise  # SQLite has rolled the whole transaction back: nobody's verb happened
        except BaseException as error:  # noqa: BLE001 (whatever it is, its caller is told)
            tx.undo()
            work.error = error
        else:
            tx.db.execute("RELEASE verb")

    def _undo(self, db: apsw.Connection, works: list[_Work], error: apsw.Error) -> None:
        """Roll back and tell everybody; only a commit that failed half-way leaves an enqueue unknown."""
        is_unknown = db.in_transaction and isinstance(error, apsw.IOError)
        if db.in_transaction:
            db.execute("ROLLBACK")
        self._tx = None
        reason = translated(error, db.filename)
        for work in works:
            if is_unknown and work.unknown is EnqueueUnknown:
                work.error = EnqueueUnknown(f"{reason}; repeat the enqueue under the same ids")
            else:
                work.error = work.error or reason


class Reader(Lane):
    """Reads from a snapshot beside the writer; blocks nobody and is blocked by nobody."""

    def __init__(self, connect: Callable[[], apsw.Connection], clock: Callable[[], Instant]) -> None:
        """Start nothing yet."""
        super().__init__(connect, clock, "fairlane-sqlite-reader")
        self._tx: Tx | None = None

    def _do(self, db: apsw.Connection, works: list[_Work]) -> None:
        tx = self._tx = self._tx or Tx(db)
        db.execute("BEGIN")
        try:
            tx.begin(self._clock())
            for work in works:
                try:
                    work.answer = work.verb(tx)
                except apsw.Error as error:
                    work.error = translated(error, db.filename)
                except BaseException as error:  # noqa: BLE001 (whatever it is, its caller is told)
                    work.error = error
        finally:
            db.execute("ROLLBACK")


def _deliver(works: list[_Work]) -> None:
    for work in works:
        try:
            work.loop.call_soon_threadsafe(work.deliver)
        except RuntimeError:
            continue  # its loop is closed: nobody waits
