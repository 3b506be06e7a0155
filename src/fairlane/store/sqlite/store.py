"""The SQLite store, whole: six facets over one file."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import apsw

from fairlane.model.instants import Instant
from fairlane.store.contract.upkeep import MigrateReply
from fairlane.store.opening import StoreClock
from fairlane.store.sqlite.claims import SqliteClaims
from fairlane.store.sqlite.connect import Identity, Opened, connect, translated
from fairlane.store.sqlite.dead import SqliteDead
from fairlane.store.sqlite.jobs import SqliteJobs
from fairlane.store.sqlite.joining import Joining
from fairlane.store.sqlite.location import Location
from fairlane.store.sqlite.migrating import is_empty, migrate, plan, planned, verify
from fairlane.store.sqlite.policies import SqlitePolicies
from fairlane.store.sqlite.registry import SqliteRegistry
from fairlane.store.sqlite.upkeep import SqliteUpkeep
from fairlane.store.sqlite.wake import Wake
from fairlane.store.sqlite.writer import Reader, Writer


class SqliteStore:
    """One installation in one file."""

    def __init__(self, url: str, clock: Callable[[], Instant] | None = None) -> None:
        """Touch nothing yet: the file is opened by the first verb. Tests give a clock, nobody else does."""
        self._location = Location(url)
        self._identity: Identity | None = None
        self._opening = threading.Lock()
        now = clock or _system_clock
        self._reader = Reader(self._connect, now)
        self._wake = Wake(self._location.path, self._version, self._location.group)
        self._writer = Writer(self._connect, now, self._wake.send)
        joining = Joining(self._location, now)
        self.jobs = SqliteJobs(self._writer, self._reader, joining)
        self.claims = SqliteClaims(self._writer, self._reader, joining)
        self.policies = SqlitePolicies(self._writer, self._reader)
        self.registry = SqliteRegistry(self._writer, self._reader, self._wake)
        self.dead = SqliteDead(self._reader)
        self.upkeep = SqliteUpkeep(self._writer, self._reader, self._migrate, self._plan, self._close)

    def _connect(self) -> Opened:
        """Open a connection; a new file gets its schema at once, an old one must be migrated by somebody.

        All connections of a store have the same file, whatever becomes of its name meanwhile.
        """
        with self._opening:
            file = connect(self._location, self._identity)
            try:
                if is_empty(file.db):
                    migrate(file.db)
                verify(file.db)
            except apsw.Error as error:
                file.close()
                raise translated(error, str(self._location.path)) from error
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
        """Work on the schema by a connection that does not ask which one it is."""

        def run() -> MigrateReply:
            file = connect(self._location, self._identity)
            try:
                return work(file.db)
            except apsw.Error as error:
                raise translated(error, str(self._location.path)) from error
            finally:
                file.close()

        return await asyncio.get_running_loop().run_in_executor(None, run)

    async def _close(self) -> None:
        await self._writer.close()
        await self._reader.close()
        self._wake.close()
        self._identity = None


def open_url(url: str, clock: StoreClock | None = None) -> SqliteStore:
    """Give the store of a URL; nothing is opened yet."""
    return SqliteStore(url, None if clock is None else clock.now)


def _system_clock() -> Instant:
    return time.time_ns() // 1_000
