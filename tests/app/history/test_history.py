"""Finished jobs in files: written as they are stored, taken back as they were (S116)."""

from __future__ import annotations

import gzip
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlane import ExportResult, Fairlane, ImportResult, State, TenantMismatch
from fairlane.app.history import importing
from fairlane.app.history.importing import MAX_LINE
from fairlane.model.finished_job import finished_job
from fairlane.model.history_line import read_line, write_line
from fairlane.model.instants import SECOND
from fairlane.model.retry.decision import Succeeded
from tests.app.world import World, note
from tests.contract.world import World as Verbs
from tests.contract.world import ruined


class Scene(World):
    """An application, and the verbs to move its jobs."""

    def __init__(self) -> None:
        """Share the store."""
        super().__init__()
        self.moves = Verbs(self.oracle, self.clock)
        self.main = self.app()

    async def fill(self) -> list[Any]:
        """Let jobs of two tenants end in each way, the last of them reviewed; return them whole."""
        for tenant in ("acme", "globex"):
            await self.moves.enqueue(tenant, tags=("x",))
            await self.moves.run(Succeeded(b'{"v":1,"result":1}'))
            waiting = await self.moves.enqueue(tenant)
            await self.moves.cancel(waiting.id)
            await self.moves.enqueue(tenant)
            dead = await self.moves.run(ruined())
            self.clock.advance(1)
        await self.moves.review("resolve", dead.id, note="fine")
        await self.moves.enqueue()
        return await self.finished()

    async def finished(self) -> list[Any]:
        """Return all that has ended, newest enqueue first."""
        ended = frozenset((State.SUCCEEDED, State.CANCELLED, State.DEAD))
        jobs = await self.moves.find_all(states=ended)
        letters = [await self.moves.letter(job.id) for job in jobs]
        return [
            finished_job(job, None if letter is None else letter.review)
            for job, letter in zip(jobs, letters, strict=True)
        ]

    async def audited(self, kind: str) -> list[Any]:
        """Return what the audit says of both ends of an action."""
        return [one.body for one in await self.moves.appended("audit") if one.kind == kind]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """An empty store in memory."""
    made = Scene()
    yield made
    for app in made.apps:
        await app.aclose()


def lines(text: str) -> list[Any]:
    """Read an export."""
    return [read_line(line.encode()) for line in text.splitlines()]


async def test_an_export_has_all_that_has_ended_as_it_is_stored(scene: Scene) -> None:
    """S116: whole, nothing redacted, nothing of what lives; audited."""
    before = await scene.fill()
    out = io.StringIO()
    assert await scene.main.history.aexport(out) == ExportResult(written=6, cursor=None)
    assert lines(out.getvalue()) == before
    begin, end = await scene.audited("history.export")
    assert b'"step":"begin"' in begin
    assert b'"written":6' in end


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"tenant": "acme"}, 3),
        ({"state": [State.DEAD]}, 2),
        ({"tag": "x", "tenant": "globex"}, 1),
        ({"queue": "other"}, 0),
    ],
)
async def test_filters_choose(scene: Scene, filters: Any, count: int) -> None:
    """S116: those of `find`."""
    await scene.fill()
    assert (await scene.main.history.aexport(io.StringIO(), **filters)).written == count


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
async def test_an_export_in_parts_has_each_job_once(scene: Scene, limit: int) -> None:
    """S116: it goes on at the cursor."""
    before = await scene.fill()
    out, cursor = io.StringIO(), None
    while True:
        part = await scene.main.history.aexport(out, limit=limit, cursor=cursor)
        assert part.written <= limit
        cursor = part.cursor
        if cursor is None:
            break
    assert lines(out.getvalue()) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"state": [State.READY]}, "state: ready is not over; only succeeded, cancelled and dead"),
        ({"limit": 0}, "limit is 0"),
        ({"cursor": "x"}, "is not a cursor"),
    ],
)
async def test_a_wrong_option_is_refused(scene: Scene, options: Any, says: str) -> None:
    """S116: in one sentence."""
    with pytest.raises(ValueError, match=says):
        await scene.main.history.aexport(io.StringIO(), **options)


@pytest.mark.parametrize("packed", [False, True])
async def test_an_import_brings_back_what_an_export_has_written(
    scene: Scene, tmp_path: Path, *, packed: bool
) -> None:
    """S116: into another store, plain or gzip; again, it changes nothing."""
    before = await scene.fill()
    file = tmp_path / "jobs.jsonl"
    await scene.main.history.aexport(file)
    if packed:
        file.write_bytes(gzip.compress(file.read_bytes()))
    other = Scene()
    assert await other.main.history.aimport_from(file) == ImportResult(restored=6, known=0)
    assert await other.finished() == before
    assert await other.main.history.aimport_from(str(file)) == ImportResult(restored=0, known=6)
    assert await other.finished() == before
    assert await other.moves.claim(5) == []
    entries = await other.audited("history.import")
    assert [b'"restored":6' in one for one in entries] == [False, True, False, False]
    await other.main.aclose()


async def test_a_job_that_is_twice_in_a_file_comes_back_once(scene: Scene) -> None:
    """S116: and empty lines are nothing."""
    one, *_ = await scene.fill()
    await scene.moves.prune(succeeded=0, cancelled=0, dead=0, dead_reviewed=0, results=0)
    file = io.BytesIO(write_line(one) + b"\n \n" + write_line(one))
    assert await scene.main.history.aimport_from(file) == ImportResult(restored=1, known=1)


async def test_more_jobs_than_one_request_takes_come_back(scene: Scene) -> None:
    """S116: in batches, by number and by size."""
    small = [await _ended(scene) for _ in range(501)]
    large = [await _ended(scene, payload=b'"' + b"x" * 6_000_000 + b'"') for _ in range(4)]
    await scene.moves.prune(succeeded=0, cancelled=0, dead=0, dead_reviewed=0, results=0)
    file = io.BytesIO(b"".join(map(write_line, [*small, *large])))
    assert (await scene.main.history.aimport_from(file)).restored == 505


async def _ended(scene: Scene, **values: Any) -> Any:
    job = await scene.moves.enqueue(**values)
    await scene.moves.cancel(job.id)
    return finished_job(await scene.moves.get(job.id), None)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"{}\n", "line 3: format: is None; this version reads 1"),
        (b'{"format":1}\n', "line 3: Object missing required field `id`"),
        (b"x" * (MAX_LINE + 1), "line 3: is longer than 67,108,864 bytes"),
    ],
)
async def test_a_wrong_line_is_named_and_nothing_is_stored(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, bad: bytes, says: str
) -> None:
    """S116: not even the batches that stand before it."""
    monkeypatch.setattr(importing, "MAX_RESTORED", 1)
    one, two, *_ = await scene.fill()
    other = Scene()
    with pytest.raises(ValueError, match=says):
        await other.main.history.aimport_from(io.BytesIO(write_line(one) + write_line(two) + bad))
    assert await other.finished() == []
    await other.main.aclose()


async def test_a_damaged_file_is_refused(scene: Scene) -> None:
    """S116: cut, or with a flipped byte; nothing of it is stored."""
    whole = gzip.compress(b"".join(map(write_line, await scene.fill())))
    other = Scene()
    for data in (whole[:-20], whole[:100] + b"\0\0" + whole[102:]):
        with pytest.raises(ValueError, match="line"):
            await other.main.history.aimport_from(io.BytesIO(data))
    assert await other.finished() == []
    await other.main.aclose()


@pytest.mark.parametrize(
    ("source", "says"), [(5, "source: is of type int"), (io.StringIO("x"), "open it for bytes")]
)
async def test_what_is_no_file_of_bytes_is_refused(scene: Scene, source: Any, says: str) -> None:
    """S116: with what to give instead."""
    with pytest.raises(ValueError, match=says):
        await scene.main.history.aimport_from(source)


async def test_inside_a_tenant_there_is_no_history_of_all(scene: Scene) -> None:
    """S9: it is for operators."""
    with scene.main.tenant("acme"):
        with pytest.raises(TenantMismatch):
            await scene.main.history.aexport(io.StringIO())
        with pytest.raises(TenantMismatch):
            await scene.main.history.aimport_from(io.BytesIO())


def test_plain_callers_have_both(scene: Scene, tmp_path: Path) -> None:
    """Without await."""
    app: Fairlane = scene.main
    app.task(name="work")(note).using(tenant="acme", expires_in=SECOND)
    assert app.history.export(tmp_path / "none.jsonl").written == 0
    assert app.history.import_from(tmp_path / "none.jsonl") == ImportResult(restored=0, known=0)
