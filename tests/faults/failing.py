"""Let a disk fail under a store that lives on, again and again, and look at what the store says and keeps."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fairlane.lab import ledger
from fairlane.model.errors import EnqueueUnknown, StoreUnavailable
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, RealClock, verify
from tests.faults.disk import Disk, Fault
from tests.faults.scenes import SCENES, play

NEVER = 1_000_000
"""Checkpoint so seldom. SQLite keeps it to itself when one fails, but a disk in Python cannot be so discreet:
the commit before it would seem to have failed. The really full file system below has its checkpoints."""


async def fail_at_random(
    fault: Fault, number: int, file: Path, patch: pytest.MonkeyPatch, draw: random.Random
) -> int:
    """Let the disk fail at random steps; return how often it did. Everything works afterwards."""
    disk = Disk(draw, checkpoint=NEVER if fault == "full" else 12)
    disk.mount(patch)
    records: list[ledger.Record] = []
    store = SqliteStore(f"sqlite:///{file}", clock=(clock := RealClock()).now)
    actor = Actor(store, records.append, clock)
    await play(actor, draw)
    disk.steps = failures = 0
    await play(actor, draw)
    steps = disk.steps
    for _ in range(number):
        disk.fail(fault, at=draw.randint(1, steps))
        errors = await play(actor, draw)
        disk.mend()
        failures += bool(disk.failures)
        disk.failures = 0
        for error in errors:
            assert isinstance(error, StoreUnavailable | EnqueueUnknown), error
            assert error.retry_safe is isinstance(error, StoreUnavailable)
            assert str(file) in str(error)
        if fault == "full":
            assert not any(isinstance(error, EnqueueUnknown) for error in errors)
    assert await play(actor, draw) == []
    await store.upkeep.aclose()
    jobs = await verify(file, records)
    _nothing_refused_is_there(records, actor, {str(job.id) for job in jobs})
    print(f"{failures} failures over {number} runs of {len(SCENES)} scenes, {len(jobs)} jobs")
    return failures


def _nothing_refused_is_there(records: list[ledger.Record], actor: Actor, found: set[str]) -> None:
    """What failed with any error but "unknown" did not happen."""
    sent = {one.job for one in records if isinstance(one, ledger.Attempted)}
    kept = {one.job for one in records if isinstance(one, ledger.Acknowledged)}
    assert kept <= found
    assert found <= sent - (sent - kept - actor.unknown)
