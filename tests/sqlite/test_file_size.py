"""The file and its log stay within bounds while jobs come and go, with or without readers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from fairlane.model.policy.retention import Retention
from fairlane.store.contract.upkeep import PruneRequest
from fairlane.store.opening import open_store
from fairlane.store.sqlite.checkpoints import LOG_STEP_PAGES, MAX_LOG_PAGES
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock

PAGE = 4096
BATCH = 500
READING_SECONDS = 0.05
"""Longer than a commit, so that every commit meets a reader that began before the last one."""


class Place:
    """A store's file, and the size of it and its log."""

    def __init__(self, file: Path) -> None:
        """Open the store on it."""
        self.file = file
        clock = DrivenClock()
        self.store = open_store(f"sqlite:///{file}", clock=clock)
        self.world = World(self.store, clock)

    @property
    def log_size(self) -> int:
        """The current size of the write-ahead log."""
        log = Path(f"{self.file}-wal")
        return log.stat().st_size if log.exists() else 0

    @property
    def size(self) -> int:
        """The current size of the file."""
        return self.file.stat().st_size

    async def put(self, batches: int, tenants: int = 1) -> None:
        """Enqueue many jobs."""
        for _ in range(batches):
            await self.world.send(
                *(self.world.new(f"t{n % tenants}", payload=b"x" * 500) for n in range(BATCH))
            )

    async def finish_all(self) -> None:
        """Run every job."""
        while claims := await self.world.claim(BATCH):
            await self.world.settle_reply(*(self.world.verdict(claim) for claim in claims))

    async def prune(self) -> None:
        """Delete all finished jobs, in as many passes as it takes."""
        request = PruneRequest(scope=ALL, retention=Retention(succeeded=0))
        while (await self.store.upkeep.prune(request)).is_partial:
            pass


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    """A new file."""
    place = Place(tmp_path / "fairlane.db")
    yield place
    await place.store.upkeep.aclose()


async def test_rounds_of_work_use_the_same_space_again(place: Place) -> None:
    """A round leaves nothing behind: the tenth is not larger than the second."""
    sizes = []
    for _ in range(10):
        await place.put(4, tenants=7)
        await place.finish_all()
        await place.prune()
        sizes.append(place.size + place.log_size)
    assert max(sizes[2:]) <= 1.2 * max(sizes[:2]) + PAGE * LOG_STEP_PAGES


async def test_a_burst_is_given_back_to_the_disk(place: Place) -> None:
    """Prune returns the space of a burst, a part per pass, until little is free."""
    await place.put(20)
    await place.finish_all()
    db = apsw.Connection(str(place.file))
    await place.prune()
    full = db.pragma("page_count")
    after_one = full
    for passes in range(1, 50):
        await place.prune()
        now = db.pragma("page_count")
        assert after_one - now <= 1_000, f"pass {passes} held everybody up"
        if now == after_one:
            break
        after_one = now
    assert now < full / 2
    assert db.pragma("freelist_count") <= now / 4 + 1
    db.close()


async def test_a_file_of_before_is_still_pruned(place: Place) -> None:
    """A file that cannot return space reuses it; pruning it is no error."""
    db = apsw.Connection(str(place.file))
    db.pragma("auto_vacuum", "none")
    db.execute("CREATE TABLE t (x); DROP TABLE t")
    db.close()
    await place.put(8)
    await place.finish_all()
    await place.prune()
    size = place.size
    await place.put(8)
    await place.finish_all()
    assert place.size <= 1.1 * size


async def test_a_log_that_nobody_adds_to_is_cut(place: Place) -> None:
    """Soon after the last write the log takes no space."""
    await place.put(2)
    assert place.log_size > 0
    async with asyncio.timeout(30):
        while place.log_size:  # noqa: ASYNC110 (a file tells nobody of its size)
            await asyncio.sleep(0.05)
    assert len(await place.world.find_all(page=BATCH)) == 2 * BATCH


class Readers(threading.Thread):
    """Reads without a gap: the next transaction begins before the last one ends."""

    def __init__(self, file: Path) -> None:
        """Open two connections."""
        super().__init__(daemon=True)
        self._connections = [apsw.Connection(str(file)) for _ in range(2)]
        self.stopped = threading.Event()
        self.readings = 0

    def run(self) -> None:
        """Read on both in turn until stopped."""
        old, new = self._connections
        self._begin(old)
        while not self.stopped.wait(READING_SECONDS):
            self._begin(new)
            old.execute("COMMIT")
            old, new = new, old
            self.readings += 1
        for db in self._connections:
            db.close()

    def _begin(self, db: apsw.Connection) -> None:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM meta").fetchall()


async def test_the_log_stays_short_under_readers_that_come_and_go(place: Place) -> None:
    """Although some reader is active at every instant, the log restarts."""
    await place.put(1)
    readers = Readers(place.file)
    readers.start()
    longest = written = 0
    before = place.log_size
    while written < 2 * MAX_LOG_PAGES * PAGE:
        await place.put(1, tenants=BATCH)
        written += abs(place.log_size - before)
        before = place.log_size
        longest = max(longest, before)
        assert longest <= 1.5 * MAX_LOG_PAGES * PAGE
    readers.stopped.set()
    readers.join()
    assert readers.readings > 1
