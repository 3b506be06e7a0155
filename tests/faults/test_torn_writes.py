"""A write cut to a part of itself, or the power gone, at any step: what was acknowledged is there."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from fairlane.lab import ledger
from fairlane.model.errors import StoreError
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, seeded, times, verify
from tests.faults.deaths import Stage
from tests.faults.disk import Disk, Fault


async def test_a_process_that_dies_in_a_write_loses_nothing_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any write or sync, of the WAL or of the file in a checkpoint."""
    draw, stage = seeded(), Stage(tmp_path, monkeypatch)
    steps = await stage.prepare(draw)
    told: Counter[str] = Counter()
    for number in range(times(15)):
        fault: Fault = "torn" if number % 2 else "power"
        seed, at = draw.getrandbits(32), draw.randint(1, steps)
        print(f"{number}: {fault} at {at} of {steps}, seed {seed}")
        told += await stage.die(fault, at, random.Random(seed))
    print(f"{times(15)} deaths, first errors {told}")
    assert told.total() > times(15) * 0.6


async def test_a_process_that_dies_while_it_makes_the_file_leaves_one_that_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step of the schema: whoever opens the file next finds all of it or makes it."""
    steps = 1
    for at in itertools.count(1):
        file, records = tmp_path / f"{at}.db", list[ledger.Record]()
        disk = Disk(random.Random(at))
        disk.mount(monkeypatch)
        disk.fail("torn" if at % 2 else "power", at)
        actor = Actor(SqliteStore(f"sqlite:///{file}"), records.append)
        with suppress(StoreError):
            await actor.give(actor.new())
        steps = disk.steps
        await actor.store.upkeep.aclose()
        monkeypatch.undo()
        await verify(file, records)
        if not disk.is_dead:
            break
    assert steps > 30


@pytest.mark.parametrize(("options", "is_synced"), [("", True), ("?synchronous=normal", False)])
async def test_an_answer_waits_for_the_disk_unless_told_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, *, is_synced: bool
) -> None:
    """By default a commit is synced before it is answered; `synchronous=normal` does without, and says so."""
    syncs: list[str] = []
    disk = Disk(random.Random(1), checkpoint=1_000_000)  # a checkpoint syncs, too
    disk.mount(monkeypatch)
    monkeypatch.setattr(disk, "on_sync", syncs.append)
    store = SqliteStore(f"sqlite:///{tmp_path}/fairlane.db{options}")
    actor = Actor(store, list[ledger.Record]().append)
    await actor.give(actor.new())
    syncs.clear()
    for _ in range(10):
        await actor.give(actor.new())
    assert (len(syncs) >= 10) == is_synced, syncs
    await actor.store.upkeep.aclose()
