"""Many processes on one file: nobody is turned away, nothing runs twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import apsw
import pytest

from fairlane.model import ledger
from fairlane.model.errors import StoreBusy
from fairlane.store.sqlite import connect
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, recorded, times, verify
from tests.faults.processes import Start


async def test_eleven_processes_run_every_job_exactly_once(tmp_path: Path, start: Start) -> None:
    """One enqueues, eight claim, two tidy up; the file is new, and all of them open it at once."""
    file, number = tmp_path / "fairlane.db", times(40) * 10
    roles = ["enqueue", *["work"] * 8, *["tidy"] * 2]
    children = [start(role, file, number) for role in roles]
    for child in children:
        child.begin()
    for child in children:
        child.end()
    records = recorded(child.ledger for child in children)
    jobs = await verify(file, records, drained=True)
    starts = Counter(one.job for one in records if isinstance(one, ledger.Started))
    assert len(jobs) == number
    assert starts == {str(job.id): 1 for job in jobs}


async def test_a_write_storm_by_two_processes_turns_nobody_away(tmp_path: Path, start: Start) -> None:
    """Neither gets an error within the bounded wait, and both are served."""
    file, number = tmp_path / "fairlane.db", times(400)
    children = [start("storm", file, number) for _ in range(2)]
    for child in children:
        child.begin()
    for child in children:
        child.end()
    jobs = await verify(file, recorded(child.ledger for child in children))
    assert len(jobs) == 2 * number


async def test_a_write_that_never_ends_makes_others_busy_for_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers are told that a repeat is safe, readers go on, and all is well when it ends after all."""
    monkeypatch.setattr(connect, "BUSY_SECONDS", 0.2)
    file = tmp_path / "fairlane.db"
    records: list[ledger.Record] = []
    actor = Actor(SqliteStore(f"sqlite:///{file}"), records.append)
    await actor.give(actor.new())
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    for verb in (actor.enqueue, actor.start, actor.promote):
        with pytest.raises(StoreBusy, match=str(file)) as raised:
            await verb()
        assert raised.value.retry_safe
        assert (await actor.states()).total() == 1
    other.close()
    await actor.give(actor.new())
    await actor.store.upkeep.aclose()
    await verify(file, records)
