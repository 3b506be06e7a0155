"""What an inspection says of a SQLite file: its settings, and whether its pages are whole."""

from __future__ import annotations

from pathlib import Path

import apsw

from fairlane.model.scope import Scope
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.opening import open_store
from tests.contract.world import World
from tests.oracle.clock import DrivenClock

ALL = Scope.all()


async def inspect(url: str, at_most: int = 60_000_000) -> Inspection:
    """Open the file, look into it, close it."""
    store = open_store(url)
    try:
        return await store.upkeep.inspect(InspectRequest(scope=ALL, at_most=at_most))
    finally:
        await store.upkeep.aclose()


async def filled(path: Path) -> None:
    """Make a file of many pages."""
    store = open_store(f"sqlite:///{path}")
    try:
        await World(store, DrivenClock()).enqueue_many(1000, payload=b"x" * 2000)
    finally:
        await store.upkeep.aclose()


async def test_settings_are_told_in_sqlites_words(tmp_path: Path) -> None:
    """S56: durable unless the URL says otherwise."""
    full = (await inspect(f"sqlite:///{tmp_path}/a.db")).settings
    assert (full["journal_mode"], full["synchronous"], full["schema"] > "0") == ("wal", "full", True)
    assert full["sqlite"] == apsw.sqlite_lib_version()
    assert int(full["bytes"]) > 4096
    assert (await inspect(f"sqlite:///{tmp_path}/a.db?synchronous=normal")).settings[
        "synchronous"
    ] == "normal"


async def test_a_page_that_rotted_is_found(tmp_path: Path) -> None:
    """Only where somebody looks: verbs that do not touch the page go on."""
    path = tmp_path / "a.db"
    await filled(path)
    assert (await inspect(f"sqlite:///{path}")).damage == ()
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    found = await inspect(f"sqlite:///{path}")
    assert found.damage
    assert found.is_checked


async def test_a_check_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """And the connection goes on as before."""
    path = tmp_path / "a.db"
    await filled(path)
    found = await inspect(f"sqlite:///{path}", at_most=0)
    assert (found.damage, found.is_checked) == ((), False)
    assert found.tasks == ("noop",)
