"""Files that are not ours, not yet, not any more, or no files: one error that names path and remedy."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from fairlane.model.errors import SchemaTooNew, SchemaTooOld, StoreError
from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.sqlite import connection
from fairlane.store.sqlite.connection import APPLICATION_ID, DEVELOPMENT_ID
from fairlane.store.sqlite.location import Location
from fairlane.store.sqlite.migrating import NEWEST
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import ALL
from tests.faults.campaign import Actor

WAIT = WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=30 * SECOND)


def _newer(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE t (x)")
    db.pragma("application_id", APPLICATION_ID)
    db.pragma("user_version", 999)
    db.close()


def _older(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE t (x)")
    db.pragma("application_id", APPLICATION_ID)
    db.close()


def _of_development(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE turn (x)")
    db.pragma("application_id", DEVELOPMENT_ID)
    db.pragma("user_version", NEWEST)
    db.close()


def _foreign(file: Path) -> None:
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE invoice (id INTEGER PRIMARY KEY, total INTEGER)")
    db.execute("INSERT INTO invoice (total) VALUES (7)")
    db.commit()
    db.close()


def _text(file: Path) -> None:
    file.write_text("Dear diary,\n" * 500, encoding="utf-8")


def _folder(file: Path) -> None:
    file.mkdir()


def _damaged_header(file: Path) -> None:
    _foreign(file)
    data = bytearray(file.read_bytes())
    data[:16] = b"\0" * 16
    file.write_bytes(data)


def _cut_short(file: Path) -> None:
    _newer(file)
    file.write_bytes(file.read_bytes()[:700])


def _dangling_link(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere" / "file.db")


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


CASES: list[tuple[Callable[[Path], None], type[StoreError], str]] = [
    (_newer, SchemaTooNew, "upgrade Fairlane"),
    (_older, SchemaTooOld, "fairlane migrate"),
    (_of_development, SchemaTooOld, "use a new file"),
    (_foreign, StoreError, "give Fairlane a file of its own"),
    (_text, StoreError, "restore it from a backup"),
    (_folder, StoreError, "name a file in it"),
    (_damaged_header, StoreError, "restore it from a backup"),
    (_cut_short, StoreError, "restore it from a backup"),
    (_dangling_link, StoreError, "create it first"),
]


@pytest.mark.parametrize(("make", "kind", "remedy"), CASES, ids=[make.__name__ for make, _, _ in CASES])
async def test_a_file_that_cannot_be_used_is_one_clear_error_and_stays_as_it_is(
    make: Callable[[Path], None], kind: type[StoreError], remedy: str, tmp_path: Path
) -> None:
    """Writers and readers are refused, each time; no byte changes, and no other file is left behind."""
    file = tmp_path / "fairlane.db"
    make(file)
    before = file.read_bytes() if file.is_file() else None
    store = SqliteStore(f"sqlite:///{file}")
    actor = Actor(store)
    for verb in (actor.enqueue, actor.counts, actor.enqueue):
        with pytest.raises(StoreError) as raised:
            await verb()
        assert type(raised.value) is kind or kind is StoreError
        assert str(file) in str(raised.value)
        assert remedy in str(raised.value)
        assert not raised.value.retry_safe
    await store.upkeep.aclose()
    assert before is None or file.read_bytes() == before
    assert _names(tmp_path) == ["fairlane.db"]


async def test_a_missing_folder_is_one_clear_error(tmp_path: Path) -> None:
    """It is not made: a mistyped path would look like an empty store."""
    file = tmp_path / "nowhere" / "fairlane.db"
    store = SqliteStore(f"sqlite:///{file}")
    with pytest.raises(StoreError, match=r"no folder .*nowhere; create it first") as raised:
        await Actor(store).enqueue()
    assert str(file) in str(raised.value)
    await store.upkeep.aclose()
    assert not file.parent.exists()


async def test_a_refused_file_is_free_for_its_own_application_at_once(tmp_path: Path) -> None:
    """The mark that keeps other libraries off goes with the refusal, even before the store is closed."""
    file = tmp_path / "invoices.db"
    _foreign(file)
    store = SqliteStore(f"sqlite:///{file}")
    with pytest.raises(StoreError, match="another application"):
        await Actor(store).enqueue()
    db = sqlite3.connect(file)
    assert db.execute("SELECT total FROM invoice").fetchall() == [(7,)]
    db.close()
    await store.upkeep.aclose()


async def test_a_store_works_once_its_file_was_put_right(tmp_path: Path) -> None:
    """A verb that failed to open the file does not spoil the store."""
    file = tmp_path / "fairlane.db"
    _text(file)
    store = SqliteStore(f"sqlite:///{file}")
    actor = Actor(store)
    with pytest.raises(StoreError, match="restore it"):
        await actor.enqueue()
    file.unlink()
    await actor.enqueue()
    await store.upkeep.aclose()


def test_a_new_file_is_opened_while_others_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One has made it and is about to keep a log; SQLite does not ask the next one whether to wait."""
    file = tmp_path / "fairlane.db"
    other = apsw.Connection(str(file))
    other.execute("VACUUM; BEGIN IMMEDIATE")
    waits: list[int] = []

    def wait(tries: int) -> bool:
        waits.append(tries)
        other.close()
        return len(waits) < 10  # it is free after the first

    monkeypatch.setattr(connection, "busy_wait", lambda: wait)
    connection.connect(Location(f"sqlite:///{file}")).close()
    assert waits == [0]


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """As made by `touch`, or by a process that died before it had written anything."""
    file = tmp_path / "fairlane.db"
    file.touch()
    store = SqliteStore(f"sqlite:///{file}")
    await Actor(store).enqueue()
    await store.upkeep.aclose()


async def test_a_closed_store_opens_again_when_it_is_used_again(tmp_path: Path) -> None:
    """Closing lets go of everything and forgets nothing that is in the file."""
    store = SqliteStore(f"sqlite:///{tmp_path / 'fairlane.db'}")
    actor = Actor(store)
    for round_ in range(1, 4):
        await actor.enqueue()
        assert (await actor.states()).total() == round_
        await store.upkeep.aclose()
        await store.upkeep.aclose()


async def test_a_path_too_long_for_a_socket_is_served_by_looking(tmp_path: Path) -> None:
    """Addresses of Unix sockets end at 108 bytes; files may lie deeper."""
    folder = tmp_path / ("deep" * 20) / ("er" * 20)
    folder.mkdir(parents=True)
    store = SqliteStore(f"sqlite:///{folder / 'fairlane.db'}")
    actor = Actor(store)
    other = SqliteStore(f"sqlite:///{folder / 'fairlane.db'}")
    await other.upkeep.migrate()
    waiting = asyncio.ensure_future(store.registry.wait(WAIT))
    while not waiting.done():
        await Actor(other).enqueue()
    assert await waiting
    assert await actor.start(1)
    for one in (store, other):
        await one.upkeep.aclose()


async def test_whatever_is_asked_while_a_store_closes_is_answered(tmp_path: Path) -> None:
    """By the old connection or by a new one; nobody waits for ever."""
    actor = Actor(SqliteStore(f"sqlite:///{tmp_path / 'fairlane.db'}"))
    for _ in range(20):
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(actor.enqueue())
                group.create_task(actor.counts())
                group.create_task(actor.store.upkeep.aclose())
                group.create_task(actor.enqueue())
    assert (await actor.states()).total() == 120
    await actor.store.upkeep.aclose()
