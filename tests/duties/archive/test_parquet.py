"""An archive of Parquet files: as whole and as exactly once as lines, and read by others (S105, S116)."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlane import Fairlane, ImportResult
from fairlane.app.history import parquet
from fairlane.app.history.importing import take_jobs
from fairlane.duties.archive.ship import Archive
from fairlane.duties.command import run_scheduler
from fairlane.duties.prune import ARCHIVED_EVERY, Prune
from fairlane.model.errors import ConfigError
from fairlane.model.finished_job import finished_job
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import Succeeded
from fairlane.store.contract.upkeep import PruneRequest
from fairlane.worker.worker import WorkerRuntime
from tests.app.world import World as Apps
from tests.contract.world import ALL, World
from tests.duties.archive.files import files, parts
from tests.duties.archive.test_ship import KEEP, ended, settings, waiting
from tests.duties.journals.interrupted import InterruptedStore, KilledError, killed


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all files."""
    return [row for path in files(folder) for row in pq.read_table(path).to_pylist()]


async def finished(world: World) -> list[Any]:
    """Return all jobs whole, newest enqueue first; all of them have ended."""
    found = []
    for job in await world.find_all():
        letter = await world.letter(job.id) if job.state is State.DEAD else None
        found.append(finished_job(job, None if letter is None else letter.review))
    return found


@pytest.mark.parametrize("compress", ["gzip", "none"])
async def test_what_a_pass_removes_is_a_row_and_comes_back(
    world: World, tmp_path: Path, compress: str
) -> None:
    """S105, S116: with columns to search by; everything else is in its line, exact."""
    await world.enqueue(tags=("a",), metadata=b'{"x":1}', payload=b"\xff\x00")
    await world.run(Succeeded('{"v":1,"result":"\N{SNOWMAN}"}'.encode()))
    await ended(world, 4)
    before = await finished(world)
    duty = Prune(KEEP, settings(tmp_path, format="parquet", compress=compress))
    assert await duty(world.store) == ARCHIVED_EVERY
    (file,) = files(tmp_path)
    assert file.suffix == ".parquet"
    jobs = {str(one.job.id): one.job for one in before}
    for row in rows(tmp_path):
        job = jobs.pop(row["id"])
        assert (row["tenant"], row["task"], row["state"]) == (job.tenant, job.task, job.state)
        assert row["settled_at"].timestamp() == cast("int", job.settled_at) / SECOND
        assert tuple(row["tags"]) == job.tags
        assert row["review"] == ("pending" if job.state is State.DEAD else None)
    assert not jobs
    assert await take_jobs(world.store, file, ALL) == ImportResult(restored=5, known=0)
    assert await finished(world) == before


async def test_a_leader_that_is_killed_anywhere_doubles_no_row(world: World, tmp_path: Path) -> None:
    """S105: before each of its calls of the store; the next one may write lines, and doubles nothing."""
    ids: set[UUID] = set()
    formats = itertools.cycle(("parquet", "jsonl"))
    for before in itertools.count():
        ids |= await ended(world)
        archive = settings(tmp_path, format=next(formats), compress="none")
        try:
            await Prune(KEEP, archive)(InterruptedStore(world.store, before, killed))
        except KilledError:
            continue
        break
    assert before > 4
    await Archive(archive).ship(world.store)
    lines = [path for path in files(tmp_path) if path.suffix == ".jsonl"]
    found = [line for path in lines for line in path.read_bytes().splitlines()]
    packed = [path for path in files(tmp_path) if path.suffix == ".parquet"]
    found += [line for path in packed for line in pq.read_table(path).column("line").to_pylist()]
    assert len(found) == len(ids)
    assert all(sum(str(id) in str(line) for line in found) == 1 for id in ids)
    assert await waiting(world) == 0
    assert parts(tmp_path) == []


async def test_a_batch_is_in_one_file_whatever_the_format_was(world: World, tmp_path: Path) -> None:
    """S105: a leader is killed between its file and the store; the next one has other settings."""
    ids = await ended(world)
    await world.store.upkeep.prune(PruneRequest(scope=ALL, retention=KEEP, is_archived=True))
    first = Archive(settings(tmp_path, format="parquet"))
    with pytest.raises(KilledError):
        await first.ship(InterruptedStore(world.store, 1, killed))  # it has read the batch, and written
    assert await waiting(world) == len(ids)
    await Archive(settings(tmp_path)).ship(world.store)
    assert await waiting(world) == 0
    assert [path.suffix for path in files(tmp_path)] == [".parquet"]
    assert {UUID(row["id"]) for row in rows(tmp_path)} == ids


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"x": [1]}, "without a column `line` of texts: no file of Fairlane"),
        ({"line": [1]}, "without a column `line` of texts"),
        ({"line": ["{}"]}, "line 1: format: is None"),
        ({"line": pa.array([None], pa.string())}, None),
    ],
)
async def test_another_parquet_file_is_refused(table: Any, says: str | None) -> None:
    """S116: nothing is stored. A row without a line is an empty one."""
    file = io.BytesIO()
    pq.write_table(pa.table(table), file)
    await _refused(file, says)


async def test_a_damaged_parquet_file_is_refused(world: World, tmp_path: Path) -> None:
    """S116: cut off at its end."""
    await ended(world)
    await Prune(KEEP, settings(tmp_path, format="parquet"))(world.store)
    (file,) = files(tmp_path)
    await _refused(io.BytesIO(file.read_bytes()[:-9]), "is a Parquet file that is damaged")


async def _refused(file: io.BytesIO, says: str | None) -> None:
    file.seek(0)
    app = Apps().app()
    try:
        if says is None:
            assert await app.history.aimport_from(file) == ImportResult(restored=0, known=0)
            return
        with pytest.raises(ValueError, match=says):
            await app.history.aimport_from(file)
    finally:
        await app.aclose()


async def test_without_pyarrow_it_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S105: by a worker, before anything is claimed or removed; one without duties may start."""
    monkeypatch.setattr(parquet, "is_possible", lambda: False)
    app = Apps().app(config={"archive": {"to": str(tmp_path), "format": "parquet"}})
    says = r"archive\.format: it is 'parquet', which needs pyarrow: install fairlane\[parquet\]"
    with pytest.raises(ConfigError, match=says):
        WorkerRuntime(app)
    WorkerRuntime(app, duties=False)
    with pytest.raises(ValueError, match=r"is a Parquet file; install fairlane\[parquet\] to read it"):
        await app.history.aimport_from(io.BytesIO(b"PAR1PAR1"))
    await app.aclose()


def test_a_scheduler_without_pyarrow_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S105: as a worker."""
    monkeypatch.setattr(parquet, "is_possible", lambda: False)
    app = Fairlane(
        f"sqlite:///{tmp_path}/jobs.db", config={"archive": {"to": str(tmp_path), "format": "parquet"}}
    )
    with pytest.raises(ConfigError, match=r"archive\.format"):
        run_scheduler(app)
    app.close()
