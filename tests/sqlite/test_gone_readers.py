"""A read that nobody waits for any more ends at once: it must not hold up the reads behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlane.store.opening import open_store
from fairlane.store.sqlite.transaction import Transaction

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
PATIENCE = 60.0


async def test_a_read_whose_caller_has_gone_is_interrupted(tmp_path: Path) -> None:
    """The statement would run for ever; the next read is answered."""
    store: Any = open_store(f"sqlite:///{tmp_path}/fairlane.db")
    await store.upkeep.migrate()
    started, loop = asyncio.Event(), asyncio.get_running_loop()

    def endless(tx: Transaction) -> int:
        loop.call_soon_threadsafe(started.set)
        return int(next(tx.db.execute(ENDLESS))[0])

    reading = asyncio.ensure_future(store._reader.run(endless))
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    async with asyncio.timeout(PATIENCE):
        assert await store._reader.run(lambda tx: next(tx.db.execute("SELECT 7"))[0]) == 7
    await store.upkeep.aclose()
