"""What a crash could leave behind: the file after each commit, seen from another connection (S50)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from fairlane.model.retry.decision import AttemptResult
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, World, failed, ruined
from tests.oracle.clock import DrivenClock

HOMELESS: Final = """
SELECT count(*) FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE (live.state IS NOT NULL) + (history.state IS NOT NULL) + (dead.state IS NOT NULL) <> 1
"""


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[tuple[World, list[int]]]:
    """A store, and how many jobs were in no table or in two, after each commit."""
    clock, found = DrivenClock(), list[int]()
    store = SqliteStore(f"sqlite:///{tmp_path}/fairlane.db", clock.now)

    def look(event: dict[str, Any]) -> None:
        if event["sql"] == "COMMIT":
            with apsw.Connection(str(tmp_path / "fairlane.db"), flags=apsw.SQLITE_OPEN_READONLY) as other:
                found.append(other.execute(HOMELESS).get)
            other.close()

    await store._writer.run(lambda tx: tx.db.trace_v2(apsw.SQLITE_TRACE_PROFILE, look))
    yield World(store, clock), found
    await store.upkeep.aclose()


async def test_after_every_commit_a_job_is_in_exactly_one_home(watched: tuple[World, list[int]]) -> None:
    """However attempts end, and whenever the process is killed, no job is lost or doubled."""
    world, found = watched
    endings: list[AttemptResult] = [SUCCEEDED, ruined(), failed(), CANCELLED, SNOOZED, HANDED_BACK]
    await world.enqueue_many(len(endings) + 2)
    claims = await world.claim(len(endings))
    verdicts = [world.verdict(claim, ending) for claim, ending in zip(claims, endings, strict=True)]
    await world.settle_reply(*verdicts)
    waiting = [job.id for job in await world.find_all() if job.settled_at is None]
    await world.cancel(*waiting)
    assert len(found) >= 4
    assert set(found) == {0}
