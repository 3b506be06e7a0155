"""The SQLite store: thirteen facets over one file, one writer thread and one reader thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import apsw

from fairlane.model.instants import Instant
from fairlane.store.contract.upkeep import MigrateReply
from fairlane.store.opening import StoreClock
from fairlane.store.sqlite.access import SqliteAccess
from fairlane.store.sqlite.app_transaction import AppTransaction
from fairlane.store.sqlite.breakers import SqliteBreakers
from fairlane.store.sqlite.budgets import SqliteBudgets
from fairlane.store.sqlite.claims.facet import SqliteClaims
from fairlane.store.sqlite.connection import connect, to_store_error
from fairlane.store.sqlite.dead.facet import SqliteDead
from fairlane.store.sqlite.file_guard import FileId, OpenFile
from fairlane.store.sqlite.history import SqliteHistory
from fairlane.store.sqlite.jobs.facet import SqliteJobs
from fairlane.store.sqlite.journal import SqliteJournal
from fairlane.store.sqlite.location import Location
from fairlane.store.sqlite.mailbox import SqliteMailbox
from fairlane.store.sqlite.migrating import is_empty, migrate, plan, planned, verify
from fairlane.store.sqlite.policies.facet import SqlitePolicies
from fairlane.store.sqlite.registry import SqliteRegistry
from fairlane.store.sqlite.schedules import SqliteSchedules
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.upkeep.facet import SqliteUpkeep
from fairlane.store.sqlite.wake import Wake


class SqliteStore:
    """One installation in one file."""

    def __init__(self, url: str, clock: Callable[[], Instant] | None = None) -> None:
        """Open nothing: the first verb opens the file. Only tests pass a clock."""
        self._location = Location(url)
        self._identity: FileId | None = None
        self._opening = threading.Lock()
        now = clock or _system_clock
        self._reader = ReaderThread(self._connect, now)
        self._wake = Wake(self._location.path, self._version, self._location.group)
        self._writer = WriterThread(self._connect, now, self._wake.send)
        app_transaction = AppTransaction(self._location, now)
        self.jobs = SqliteJobs(self._writer, self._reader, app_transaction)
        self.claims = SqliteClaims(self._writer, self._reader, app_transaction)
        self.policies = SqlitePolicies(self._writer, self._reader)
        self.budgets = SqliteBudgets(self._writer, self._reader)
        self.registry = SqliteRegistry(self._writer, self._reader, self._wake)
        self.mailbox = SqliteMailbox(self._writer, self._reader)
        self.dead = SqliteDead(self._writer, self._reader)
        self.journal = SqliteJournal(self._writer, self._reader)
        self.access = SqliteAccess(self._writer, self._reader)
        self.breakers = SqliteBreakers(self._writer, self._reader)
        self.schedules = SqliteSchedules(self._writer, self._reader)
        self.history = SqliteHistory(self._writer, self._reader)
        self.upkeep = SqliteUpkeep(self._writer, self._reader, self._migrate, self._plan, self._close)

    def _connect(self) -> OpenFile:
        """Open a connection. A new file gets its schema at once; an old one must be migrated explicitly.

        All connections of a store use the same file, even if its path leads to another one meanwhile.
        """
        with self._opening:
            file = connect(self._location, self._identity)
            try:
                if is_empty(file.db):
                    migrate(file.db)
                verify(file.db)
            except apsw.Error as error:
                file.close()
                raise to_store_error(error, str(self._location.path)) from error
            except BaseException:
                file.close()
                raise
            self._identity = file.identity
        return file

    async def _version(self) -> int:
        return await self._writer.version()

    async def _migrate(self) -> MigrateReply:
        return await self._apart(migrate)

    async def _plan(self) -> MigrateReply:
        if not self._location.path.exists():
            return planned(0)
        return await self._apart(plan)

    async def _apart(self, work: Callable[[apsw.Connection], MigrateReply]) -> MigrateReply:
        """Work on the schema through a separate connection, which accepts any version."""

        def run() -> MigrateReply:
            file = connect(self._location, self._identity)
            try:
                return work(file.db)
            except apsw.Error as error:
                raise to_store_error(error, str(self._location.path)) from error
            finally:
                file.close()

        return await asyncio.get_running_loop().run_in_executor(None, run)

    async def _close(self) -> None:
        await self._writer.close()
        await self._reader.close()
        self._wake.close()
        self._identity = None


def open_url(url: str, clock: StoreClock | None = None) -> SqliteStore:
    """Return the store of a URL; opens nothing."""
    return SqliteStore(url, None if clock is None else clock.now)


def _system_clock() -> Instant:
    return time.time_ns() // 1_000
