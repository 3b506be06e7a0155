"""Let a process die at a step of its disk, on a copy of a file with a past, and look at what is left."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from fairlane.lab import ledger
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, RealClock, verify
from tests.faults.disk import Disk, Fault
from tests.faults.scenes import play


class Stage:
    """A file with a past, of which every death gets a copy."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = patch
        self._past: list[ledger.Record] = []
        self._clock = RealClock()

    async def prepare(self, draw: random.Random) -> int:
        """Fill the file; count the steps of a run that does not die."""
        model = self._folder / "model.db"
        store = SqliteStore(f"sqlite:///{model}", clock=self._clock.now)
        assert await play(Actor(store, self._past.append, self._clock), draw) == []
        await store.upkeep.aclose()
        disk, actor = self._open(self._copy(), [], draw)
        assert await play(actor, draw) == []
        steps = disk.steps
        await actor.store.upkeep.aclose()
        self._patch.undo()
        return steps

    async def die(self, fault: Fault, at: int, draw: random.Random) -> Counter[str]:
        """Die at one step; the file is then as it must be."""
        file = self._copy()
        records = list(self._past)
        disk, actor = self._open(file, records, draw)
        disk.fail(fault, at)
        errors = await play(actor, draw)
        await actor.store.upkeep.aclose()
        self._patch.undo()
        assert disk.is_dead or not errors  # a checkpoint may die without a word
        found = {str(job.id) for job in await verify(file, records)}
        assert found <= _acknowledged(records) | actor.unknown
        return Counter(type(error).__name__ for error in errors[:1])

    def _copy(self) -> Path:
        file = self._folder / "fairlane.db"
        for name in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            name.unlink(missing_ok=True)
        return Path(shutil.copy(self._folder / "model.db", file))

    def _open(self, file: Path, records: list[ledger.Record], draw: random.Random) -> tuple[Disk, Actor]:
        disk = Disk(draw)
        disk.mount(self._patch)
        store = SqliteStore(f"sqlite:///{file}", clock=self._clock.now)
        return disk, Actor(store, records.append, self._clock)


def _acknowledged(records: list[ledger.Record]) -> set[str]:
    return {one.job for one in records if isinstance(one, ledger.Acknowledged)}
