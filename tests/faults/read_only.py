"""A program: use a store while its file and folder are read-only, as a user whom that stops."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 (loaded late, when nobody may not read the library any more)
import os
import sys
from pathlib import Path

import pytest

from fairlane.lab import ledger
from fairlane.model.errors import StoreError
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, verify


def _allow(path: Path, mode: int) -> None:
    path.chmod(mode)


async def _error(file: Path) -> str:
    """Open a store and return the error that is due."""
    store = SqliteStore(f"sqlite:///{file}")
    with pytest.raises(StoreError, match=str(file)) as raised:
        await Actor(store).enqueue()
    await store.upkeep.aclose()
    return str(raised.value)


async def main(folder: Path) -> None:
    """Make things read-only one after the other."""
    file = folder / "fairlane.db"
    store = SqliteStore(f"sqlite:///{file}")
    records: list[ledger.Record] = []
    actor = Actor(store, records.append)
    await actor.give(actor.new())
    await actor.counts()

    # Under a running store: what it has open stays writable; whoever comes new is told.
    _allow(file, 0o444)
    _allow(folder, 0o555)
    await actor.give(actor.new())
    assert "cannot be written" in await _error(file)
    await actor.end(await actor.start(1))
    _allow(file, 0o644)
    _allow(folder, 0o755)
    await store.upkeep.aclose()
    assert len(await verify(file, records)) == 2

    # From the beginning: a file, then a folder in which the WAL cannot be made.
    _allow(file, 0o444)
    assert "cannot be written" in await _error(file)
    _allow(file, 0o644)
    _allow(folder, 0o555)
    assert "cannot be" in await _error(file)
    assert "cannot be created: Permission denied" in await _error(folder / "new.db")
    _allow(folder, 0o000)
    assert "ermission denied" in await _error(file)
    _allow(folder, 0o755)
    assert len(await verify(file, records)) == 2
    print("ok")


if __name__ == "__main__":
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    asyncio.run(main(Path(sys.argv[1])))
