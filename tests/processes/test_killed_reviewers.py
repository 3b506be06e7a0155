"""SIGKILL while somebody acts on all dead letters: asked for again, each letter is done once (S75, S60)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pytest

from fairlane import Fairlane, State
from fairlane.duties.journals.seal_audit import SealAudit
from tests.acceptance.conftest import PLACES
from tests.faults.campaign import seeded
from tests.invariants import check
from tests.servers.postgres import MEMORY

ROOT: Final = Path(__file__).parents[2]
LETTERS: Final = 1_000
PASSES: Final = LETTERS // 200
KILLED_AFTER: Final = (1, 2)
"""The passes after which one reviewer after the other is killed; the last one is not."""

STEPS: Final = 2_000
"""Turns of the event loop: some milliseconds, as long as a pass takes."""


class Scene(NamedTuple):
    """An application, and where its store is."""

    app: Fairlane
    place: str

    async def review(self, verb: str, kill_after: int | None = None, steps: int = 0) -> None:
        """Let a process act on all letters that await a decision, and kill it in the middle of a pass.

        However long the kill takes: it begins no pass after that one.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.processes.reviewer", self.place, verb),
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL if kill_after is None else pipe,
            stdout=pipe,
        )
        assert process.stdout is not None
        if kill_after is not None:
            assert process.stdin is not None
            for _ in range(kill_after):
                await process.stdout.readexactly(1)
                process.stdin.write(b".")
            await process.stdin.drain()
            for _ in range(steps):
                await asyncio.sleep(0)
            process.kill()
        await process.stdout.read()
        assert await process.wait() == (0 if kill_after is None else -9)

    async def audited(self, kind: str) -> list[Any]:
        """Return the details of the audit's entries of a kind, oldest first."""
        return [dict(one.details) for one in reversed((await self.app.audit.afind(kind=kind)).items)]


@pytest.fixture(params=sorted(PLACES))
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """A thousand dead letters of two tenants; the store's books balance at the end."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as place:
            app = Fairlane(place, config={})
            await app.client.store.upkeep.migrate()
            task = app.task(name="print")(lambda number: None)
            jobs = await app.aenqueue_many(
                task.using(tenant=("acme", "globex")[number % 2]).bind(number) for number in range(LETTERS)
            )
            await app.jobs.acondemn(*(job.id for job in jobs), reason="no paper")
            await SealAudit(app.client.settings.audit)(app.client.store)  # of what waits, not all is shown
            try:
                yield Scene(app, place)
                await check(app.client.store)
            finally:
                await app.aclose()


async def test_whoever_runs_all_again_after_a_kill_runs_each_once(scene: Scene) -> None:
    """Wherever the one before was killed. The audit has a beginning for each, and an end for the last."""
    draw = seeded()
    for after in KILLED_AFTER:
        await scene.review("reprocess", after, draw.randrange(STEPS))
    await scene.review("reprocess")
    letters = [letter async for letter in scene.app.dead.aeach()]
    runs = {letter.id: letter.new_job for letter in letters}
    assert len(runs) == LETTERS
    jobs = [job async for job in scene.app.jobs.aeach(state=[State.READY])]
    assert sorted((job.parent_id, job.id) for job in jobs) == sorted(runs.items())
    steps = [one["step"] for one in await scene.audited("dead.reprocess_all")]
    assert steps == [*["begin"] * len(KILLED_AFTER), "begin", "end"]


async def test_whoever_resolves_all_after_a_kill_decides_about_each_once(scene: Scene) -> None:
    """No letter has two notes of it, and what the audit says of the matches goes down."""
    draw = seeded()
    await scene.review("resolve", PASSES // 2, draw.randrange(STEPS))
    await scene.review("resolve")
    assert (await scene.app.dead.acount())["resolved"] == LETTERS
    assert {len(letter.notes) async for letter in scene.app.dead.aeach()} == {1}
    first, second, end = await scene.audited("dead.resolve_all")
    assert first["matches"] == LETTERS > second["matches"] >= end["result"]["done"]
