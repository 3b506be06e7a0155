"""Many processes on one file: nobody is turned away, nothing runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import apsw
import pytest

from fairlane.lab import ledger
from fairlane.model.errors import StoreBusy
from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.opening import open_store
from fairlane.store.sqlite import connection
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import ALL, World
from tests.faults.campaign import Actor, recorded, times, verify
from tests.faults.processes import Start
from tests.oracle.clock import DrivenClock


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
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.2)
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


async def test_a_write_between_an_empty_claim_and_the_wait_is_not_missed(tmp_path: Path) -> None:
    """S56: the poll suffices alone; no hint gets through to a folder whose path is too long for a socket."""
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()
    clock = DrivenClock()
    ours = World(open_store(f"sqlite:///{folder}/f.db", clock=clock), clock)
    theirs = World(open_store(f"sqlite:///{folder}/f.db", clock=clock), clock)
    try:
        await ours.register("w1")
        assert await ours.claim() == []
        await theirs.enqueue()
        waited = ours.store.registry.wait(
            WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=30 * SECOND)
        )
        async with asyncio.timeout(10):
            assert await waited
    finally:
        await ours.store.upkeep.aclose()
        await theirs.store.upkeep.aclose()
