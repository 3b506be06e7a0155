"""What a crash could leave behind: the file after each commit, seen from another connection (S50, S75)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from fairlane.model.retry.decision import AttemptResult
from fairlane.model.review import ReviewAction
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import (
    CANCELLED,
    HANDED_BACK,
    OPERATION,
    SNOOZED,
    SUCCEEDED,
    World,
    failed,
    ruined,
)
from tests.oracle.clock import DrivenClock

WRONG: Final = {
    "jobs in no home, or in two": """
        SELECT count(*) FROM body
        LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
        WHERE (live.state IS NOT NULL) + (history.state IS NOT NULL) + (dead.state IS NOT NULL) <> 1""",
    "dead jobs without a letter, or letters without one": """
        SELECT count(*) FROM dead FULL JOIN letter USING (seq)
        WHERE dead.seq IS NULL OR letter.seq IS NULL""",
    "deaths without an event": """
        SELECT (SELECT count(*) FROM letter)
            <> (SELECT coalesce(sum(count), 0) FROM pending_entry WHERE kind = 'dead_letter')""",
    "new runs that their letter does not know": """
        SELECT count(*) FROM body JOIN letter ON letter.id = body.parent_id
        WHERE letter.review <> 'reprocessed'""",
    "letters that run again without a job or an event": """
        SELECT count(*) FROM letter WHERE review = 'reprocessed' AND NOT (
          EXISTS (SELECT 1 FROM body WHERE parent_id = letter.id)
          AND EXISTS (SELECT 1 FROM pending_entry WHERE kind = 'job_dlq_reprocess_requested'))""",
    "decisions without an entry": """
        SELECT (SELECT count(*) FROM letter WHERE review <> 'pending')
            <> (SELECT count(*) FROM pending_entry WHERE journal = 'audit' AND kind = 'tests.steer')""",
}
"""What must not be found after any commit: each counts what is wrong."""


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[tuple[World, list[dict[str, int]]]]:
    """A store, and what was wrong after each commit."""
    clock, found = DrivenClock(), list[dict[str, int]]()
    store = SqliteStore(f"sqlite:///{tmp_path}/fairlane.db", clock.now)

    def look(event: dict[str, Any]) -> None:
        if event["sql"] == "COMMIT":
            with apsw.Connection(str(tmp_path / "fairlane.db"), flags=apsw.SQLITE_OPEN_READONLY) as other:
                counts = {name: other.execute(statement).get for name, statement in WRONG.items()}
                found.append({name: number for name, number in counts.items() if number})
            other.close()

    await store._writer.run(lambda tx: tx.db.trace_v2(apsw.SQLITE_TRACE_PROFILE, look))
    yield World(store, clock), found
    await store.upkeep.aclose()


async def test_after_every_commit_a_job_is_in_exactly_one_home(
    watched: tuple[World, list[dict[str, int]]],
) -> None:
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
    assert [one for one in found if one] == []


async def test_after_every_commit_a_decision_has_its_job_its_event_and_its_entry(
    watched: tuple[World, list[dict[str, int]]],
) -> None:
    """S60, S75, S76: whenever the process is killed, a letter, its new job and both journals agree."""
    world, found = watched
    jobs = await world.enqueue_many(6)
    await world.condemn(*(job.id for job in jobs[:3]))
    for claim in await world.claim(3):
        await world.settle(claim, ruined())
    letters = [letter.job for letter in await world.letters()]
    await world.reprocess(*map(world.again, letters[:3]), operation=OPERATION)
    actions: tuple[ReviewAction, ...] = ("resolve", "ignore", "discard")
    for action, job in zip(actions, letters[3:], strict=True):
        await world.review(action, job.id, operation=OPERATION)
    assert len(found) >= 8
    assert [one for one in found if one] == []
