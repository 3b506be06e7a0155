"""One SQLite library per process and file: the standard library's is refused while a store is open.

Another process may open the file with whatever it likes: locks tell processes apart. Not seen is an `ATTACH`
of the file by a connection to another file, of which Python gives no sign.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane.lab import ledger
from fairlane.model.errors import StoreError
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, verify


def _same(file: Path) -> str:
    return str(file)


def _as_bytes(file: Path) -> bytes:
    return os.fsencode(file)


def _symlink(file: Path) -> Path:
    link = file.with_name("symlink.db")
    link.symlink_to(file)
    return link


def _hard_link(file: Path) -> Path:
    link = file.with_name("hardlink.db")
    os.link(file, link)
    return link


def _roundabout(file: Path) -> str:
    return str(file.parent / ".." / file.parent.name / file.name)


def _uri(file: Path) -> str:
    return f"{file.as_uri()}?mode=ro"


NAMES: list[Callable[[Path], str | bytes | Path]] = [
    _same,
    _as_bytes,
    _symlink,
    _hard_link,
    _roundabout,
    _uri,
]


@pytest.mark.parametrize("name", NAMES, ids=[name.__name__ for name in NAMES])
async def test_the_standard_library_is_refused_while_a_store_is_open(
    name: Callable[[Path], str | bytes | Path], tmp_path: Path
) -> None:
    """By any name that leads to the file; a connection that was refused has not touched it."""
    file = tmp_path / "fairlane.db"
    store = SqliteStore(f"sqlite:///{file}")
    records: list[ledger.Record] = []
    actor = Actor(store, records.append)
    await actor.give(actor.new())
    other = name(file)
    with pytest.raises(StoreError, match=r"fairlane\.db belongs to Fairlane"):
        sqlite3.connect(other, uri=name is _uri)
    await actor.give(actor.new())
    await store.upkeep.aclose()

    db = sqlite3.connect(other, uri=name is _uri)
    assert db.execute("SELECT count(*) FROM body").fetchall() == [(2,)]
    db.close()
    await verify(file, records)


async def test_a_store_is_refused_while_the_standard_library_has_its_file_open(tmp_path: Path) -> None:
    """And is welcome as soon as the other connection is closed."""
    file = tmp_path / "fairlane.db"
    store = SqliteStore(f"sqlite:///{file}")
    actor = Actor(store)
    await actor.enqueue()
    await store.upkeep.aclose()
    db = sqlite3.connect(file)
    db.execute("SELECT count(*) FROM body").fetchall()
    for verb in (actor.enqueue, actor.counts):
        with pytest.raises(StoreError, match=r"fairlane\.db is already open in this process") as raised:
            await verb()
        assert "Close the other connection" in str(raised.value)
    db.close()
    await actor.enqueue()
    await store.upkeep.aclose()


async def test_two_stores_share_a_file_until_the_last_is_closed(tmp_path: Path) -> None:
    """Our own library may open it as often as it likes; both begin at once on a new file."""
    file = tmp_path / "fairlane.db"
    stores = [SqliteStore(f"sqlite:///{file}") for _ in range(4)]
    actors = [Actor(store) for store in stores]
    async with asyncio.TaskGroup() as group:
        for actor in actors:
            group.create_task(actor.enqueue())
            group.create_task(actor.counts())
    assert (await actors[0].states()).total() == 4
    for store in stores:
        with pytest.raises(StoreError, match="belongs to Fairlane"):
            sqlite3.connect(file)
        await store.upkeep.aclose()
    sqlite3.connect(file).close()


async def test_other_files_are_nobody_elses_business(tmp_path: Path) -> None:
    """Only the store's own file is refused to the standard library."""
    store = SqliteStore(f"sqlite:///{tmp_path / 'fairlane.db'}")
    await Actor(store).enqueue()
    for name in (":memory:", "", str(tmp_path / "application.db")):
        sqlite3.connect(name).close()
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(tmp_path / "nowhere" / "application.db")
    await store.upkeep.aclose()


async def test_another_process_may_read_the_file_with_the_standard_library(tmp_path: Path) -> None:
    """And see what was committed, while the store goes on."""
    file = tmp_path / "fairlane.db"
    records: list[ledger.Record] = []
    store = SqliteStore(f"sqlite:///{file}")
    actor = Actor(store, records.append)
    await actor.give(actor.new(), actor.new())
    program = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM body'))"
    done = subprocess.run(  # noqa: ASYNC221, S603 (our own program, and nothing else happens)
        [sys.executable, "-c", program, str(file)], check=True, capture_output=True
    )
    assert done.stdout.strip() == b"(2,)"
    await actor.give(actor.new())
    await store.upkeep.aclose()
    await verify(file, records)
