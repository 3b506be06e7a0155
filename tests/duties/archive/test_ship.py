"""What pruning removes is in the archive exactly once, whoever is killed where (S105)."""

from __future__ import annotations

import asyncio
import itertools
import stat
from pathlib import Path
from uuid import UUID

import fsspec
import pytest

from fairlane.app.archive_settings import ArchiveSettings
from fairlane.duties.archive.ship import Archive, ArchiveError
from fairlane.duties.prune import ARCHIVED_EVERY, BETWEEN, Prune
from fairlane.model.instants import DAY, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Succeeded
from fairlane.store.contract.history import BatchRequest
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import PruneRequest
from tests.contract.world import ALL, World
from tests.duties.archive.files import archived, files, parts, read_file
from tests.duties.journals.interrupted import InterruptedStore, KilledError, killed

KEEP = Retention(succeeded=DAY, cancelled=DAY, dead=DAY, results=DAY)
DAYS = 2 * DAY / SECOND


def settings(folder: Path, **values: str) -> ArchiveSettings:
    """Return an archive in a folder."""
    return ArchiveSettings(to=str(folder), **values)  # type: ignore[arg-type]


async def ended(world: World, number: int = 3) -> set[UUID]:
    """Let jobs end and their retention pass; return their ids."""
    ids = set()
    for state in itertools.islice(itertools.cycle((State.SUCCEEDED, State.CANCELLED, State.DEAD)), number):
        ids.add((await world.bring_to(state)).job.id)
    world.advance(DAYS)
    return ids


async def waiting(world: World) -> int:
    """Count the jobs that wait for the archive."""
    return await world.store.history.waiting(Request(scope=ALL))


async def test_what_a_pass_removes_is_in_a_file_that_says_all_of_it(world: World, tmp_path: Path) -> None:
    """S105: as it was when it was removed, readable by its owner alone."""
    await world.enqueue(tags=("a",), metadata=b'{"x":1}')
    await world.run(Succeeded(b'{"v":1,"result":5}'))
    (job,) = await world.find_all()
    world.advance(DAYS)
    pause = await Prune(KEEP, settings(tmp_path / "old"))(world.store)
    assert (pause, getattr(pause, "did", "")) == (ARCHIVED_EVERY, "1 succeeded removed, 1 archived")
    (file,) = files(tmp_path / "old")
    assert [one.job for one in read_file(file)] == [job]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert await waiting(world) == 0
    assert await world.states() == {}


async def test_without_compression_a_file_is_plain_lines(world: World, tmp_path: Path) -> None:
    """S105: grep reads it."""
    ids = await ended(world)
    await Prune(KEEP, settings(tmp_path, compress="none"))(world.store)
    (file,) = files(tmp_path)
    assert file.suffix == ".jsonl"
    assert set(archived(tmp_path)) == ids


async def test_a_pass_that_removes_nothing_writes_no_file(world: World, tmp_path: Path) -> None:
    """S105: nor one for results or keys alone."""
    await world.bring_to(State.SUCCEEDED)
    await Prune(KEEP, settings(tmp_path))(world.store)
    assert files(tmp_path) == []


async def test_a_leader_that_is_killed_anywhere_doubles_nothing(world: World, tmp_path: Path) -> None:
    """S105: before each of its calls of the store, in turn; the next one goes on."""
    ids: set[UUID] = set()
    for before in itertools.count():
        ids |= await ended(world)
        store = InterruptedStore(world.store, before, killed)
        try:
            await Prune(KEEP, settings(tmp_path))(store)
        except KilledError:
            assert set(archived(tmp_path)) <= ids
        else:
            break
    assert before > 4
    assert archived(tmp_path) == dict.fromkeys(ids, 1)
    assert await waiting(world) == 0


async def test_a_file_that_was_half_written_is_written_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S105: until it is whole it has no name of its own, and nothing leaves the store."""
    ids = await ended(world)
    duty = Prune(KEEP, settings(tmp_path))

    def cut(*_: object) -> None:
        message = "no space left"
        raise OSError(message)

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr("os." + name, cut)
            with pytest.raises(ArchiveError, match=r"archive\.to = .* cannot be written: no space left"):
                await duty(world.store)
        assert await waiting(world) == len(ids)
        assert parts(tmp_path) == []
    await duty(world.store)
    assert archived(tmp_path) == dict.fromkeys(ids, 1)


async def test_history_waits_while_the_archive_cannot_be_written(world: World, tmp_path: Path) -> None:
    """S105: what was being moved waits, nothing else is removed, and all goes when it can be written."""
    first = await ended(world)
    (tmp_path / "old").write_text("a file, no folder")
    duty = Prune(KEEP, settings(tmp_path / "old"))
    with pytest.raises(ArchiveError, match="cannot be written"):
        await duty(world.store)
    later = await ended(world)
    for _ in range(2):
        with pytest.raises(ArchiveError):
            await duty(world.store)
    assert await waiting(world) == len(first)
    assert {job.id for job in await world.find_all()} == later
    (tmp_path / "old").unlink()
    await duty(world.store)
    assert archived(tmp_path / "old") == dict.fromkeys(first | later, 1)


async def test_several_leaders_at_once_write_each_job_once(world: World, tmp_path: Path) -> None:
    """S105: they write the same file, or another one."""
    ids: set[UUID] = set()
    for _ in range(3):
        ids |= await ended(world, 6)
        duties = [Prune(KEEP, settings(tmp_path)) for _ in range(3)]
        await asyncio.gather(*(duty(world.store) for duty in duties))
    await Archive(settings(tmp_path)).ship(world.store)
    assert archived(tmp_path) == dict.fromkeys(ids, 1)


async def test_a_leader_that_wakes_up_late_changes_no_file(world: World, tmp_path: Path) -> None:
    """S105: it has read a batch, another one has finished it, and then it writes."""
    await ended(world)

    async def overtaken() -> None:
        await Archive(settings(tmp_path)).ship(world.store)

    for before in range(2, 6):
        other = InterruptedStore(world.store, before, overtaken)
        await Prune(KEEP, settings(tmp_path))(other)
        await ended(world)
    await Prune(KEEP, settings(tmp_path))(world.store)
    assert set(archived(tmp_path).values()) == {1}
    assert await world.states() == {}


async def test_a_batch_that_is_finished_while_it_is_read_is_left_alone(world: World, tmp_path: Path) -> None:
    """S105: what came of its first page would be half a file."""
    ids = await ended(world, 150)
    archive = Archive(settings(tmp_path))

    async def overtaken() -> None:
        await Archive(settings(tmp_path)).ship(world.store)
        for path in files(tmp_path):
            path.rename(tmp_path / "moved.jsonl.gz")

    await world.store.upkeep.prune(_request())
    store = InterruptedStore(world.store, 1, overtaken)
    assert await archive.ship(store) == 0
    assert archived(tmp_path) == dict.fromkeys(ids, 1)


async def test_many_jobs_go_in_small_passes_and_few_files(world: World, tmp_path: Path) -> None:
    """S105: a pass is small, the next follows at once, and a file has what several have removed."""
    ids = await ended(world, 1_050)
    duty = Prune(KEEP, settings(tmp_path))
    pauses = [await duty(world.store) for _ in range(11)]
    assert pauses == [*[BETWEEN] * 10, ARCHIVED_EVERY]
    assert [len(read_file(file)) for file in files(tmp_path)] == [1_000, 50]
    assert archived(tmp_path) == dict.fromkeys(ids, 1)


async def test_a_url_is_written_through_fsspec(world: World) -> None:
    """S105: any file system that it knows; here its memory."""
    memory = fsspec.filesystem("memory")
    ids = await ended(world)
    duty = Prune(KEEP, ArchiveSettings(to="memory://jobs/old", compress="none"))
    await duty(world.store)
    names = [name for name in memory.find("/jobs/old") if name.endswith(".jsonl")]
    assert len(names) == len(memory.find("/jobs/old")) == 1
    assert len(memory.cat_file(names[0]).splitlines()) == len(ids)
    memory.rm("/jobs", recursive=True)


@pytest.mark.parametrize("url", ["nosuch://place/jobs", "ftp:///"])
async def test_a_url_that_cannot_be_reached_fails_the_duty_and_nothing_else(world: World, url: str) -> None:
    """S105: in one sentence, with the setting; no password is shown."""
    await ended(world)
    duty = Prune(KEEP, ArchiveSettings(to=url.replace("://", "://ann:hunter2@")))
    with pytest.raises(ArchiveError) as refused:
        await duty(world.store)
    assert "hunter2" not in str(refused.value)
    assert await waiting(world) == 3


async def test_without_an_archive_batches_of_before_wait(world: World, tmp_path: Path) -> None:
    """S105: somebody has taken the setting away; nothing is thrown away, and pruning goes on."""
    ids = await ended(world)
    await world.store.upkeep.prune(_request())
    await ended(world)
    await Prune(KEEP)(world.store)
    assert await world.states() == {}
    assert await waiting(world) == 3
    batch = await world.store.history.next_batch(BatchRequest(scope=ALL))
    assert batch is not None
    assert {one.job.id for one in batch.jobs} == ids


def _request() -> PruneRequest:
    return PruneRequest(scope=ALL, retention=KEEP, is_archived=True)
