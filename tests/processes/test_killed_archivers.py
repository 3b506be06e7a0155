"""SIGKILL while finished jobs are archived: each of them is in one file, once (S105)."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from uuid import UUID

import pytest

from fairlane import Fairlane, Task
from tests.acceptance.conftest import PLACES
from tests.duties.archive.files import archived
from tests.faults.campaign import seeded
from tests.invariants import check
from tests.servers.postgres import MEMORY

ROOT: Final = Path(__file__).parents[2]
JOBS: Final = 150
STEPS: Final = 400
"""Turns of the event loop: up to some milliseconds, in which files are written and jobs removed."""


class Scene(NamedTuple):
    """An application, where its store is, and the archive."""

    app: Fairlane
    task: Task[[int], None]
    place: str
    folder: Path

    async def archive(self, kill_after: int, steps: int) -> bool:
        """Let a process archive what has ended, and kill it after so many calls; return whether it ended."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.processes.archiver", self.place, str(self.folder)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        said = await process.stdout.read(kill_after)
        while said and len(said) < kill_after:
            more = await process.stdout.read(kill_after - len(said))
            if not more:
                break
            said += more
        for _ in range(steps):
            await asyncio.sleep(0)
        if process.returncode is None and len(said) == kill_after:
            process.kill()
        await process.stdout.read()
        assert await process.wait() in {0, -9}
        return process.returncode == 0

    async def end_jobs(self) -> set[UUID]:
        """Let jobs of two tenants end, and return their ids."""
        tenants = ("acme", "globex")
        jobs = await self.app.aenqueue_many(
            self.task.using(tenant=tenants[number % 2]).bind(number) for number in range(JOBS)
        )
        ids = {job.id for job in jobs}
        await self.app.jobs.acancel(*ids, reason="no paper")
        return ids


def printed(number: int) -> None:
    """Print a page."""


@pytest.fixture(params=sorted(PLACES))
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """An empty store; its books balance at the end."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as place:
            app = Fairlane(place, config={})
            await app.client.store.upkeep.migrate()
            task = app.task(name="print")(printed)
            try:
                yield Scene(app, task, place, Path(folder) / "archive")
                await check(app.client.store)
            finally:
                await app.aclose()


async def test_who_archives_after_a_kill_archives_each_job_once(scene: Scene) -> None:
    """Wherever the ones before were killed: before each call of the store in turn, and some time later."""
    draw = seeded()
    ids: set[UUID] = set()
    for kill_after in itertools.count(1):
        ids |= await scene.end_jobs()
        if await scene.archive(kill_after, draw.randrange(STEPS)) and kill_after > 5:
            break
        assert set(archived(scene.folder)) <= ids
    while set(archived(scene.folder)) != ids:  # a pass removes some of them
        assert await scene.archive(10_000, 0)
    assert archived(scene.folder) == dict.fromkeys(ids, 1)
    assert [job async for job in scene.app.jobs.aeach()] == []
