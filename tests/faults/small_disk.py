"""A program: fill a real, small file system to the brim, free some space, and go on."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fairlane.lab import ledger
from fairlane.model.errors import StoreUnavailable
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import payload
from tests.faults.campaign import Actor, verify

BODY = payload(text="x" * 20_000)


async def main(folder: Path) -> None:
    """Fill it several times, each time with less in the way."""
    file = folder / "fairlane.db"
    ballast = [folder / f"ballast{number}" for number in range(5)]
    for one in ballast:
        one.write_bytes(b"\1" * 300_000)
    records: list[ledger.Record] = []
    store = SqliteStore(f"sqlite:///{file}")
    actor = Actor(store, records.append)
    for one in ballast:
        full = await _fill(actor)
        assert "disk is full" in full, full
        assert str(file) in full, full
        await actor.counts()  # reading needs no space
        one.unlink()
        await actor.give(actor.new())
        await actor.end(await actor.start(3))
    await store.upkeep.aclose()
    jobs = {str(job.id) for job in await verify(file, records)}
    assert jobs == {one.job for one in records if isinstance(one, ledger.Acknowledged)}
    print("ok")


async def _fill(actor: Actor) -> str:
    while True:
        try:
            await actor.give(actor.new(payload=BODY))
        except StoreUnavailable as error:
            return str(error)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
