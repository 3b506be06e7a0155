"""The file is deleted, replaced or made read-only under a running store: a clear error, no silent loss."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from fairlane.lab import ledger
from fairlane.model.errors import StoreError, StoreGone, StoreUnavailable
from fairlane.store.sqlite import file_guard
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, RealClock, verify
from tests.faults.processes import run_program


def _open(file: Path) -> tuple[Actor, list[ledger.Record]]:
    records: list[ledger.Record] = []
    return Actor(SqliteStore(f"sqlite:///{file}"), records.append), records


async def _make(file: Path, jobs: int) -> list[ledger.Record]:
    """Make a store with so many jobs, and close it."""
    actor, records = _open(file)
    await actor.give(*(actor.new() for _ in range(jobs)))
    await actor.store.upkeep.aclose()
    return records


def _replace(file: Path, other: Path) -> None:
    """Put another file in its place, as it should be done: without the old one's WAL."""
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()
    other.replace(file)


def _copy(file: Path, folder: Path) -> Path:
    """Copy a file and its WAL as they are, as if the machine had stopped here."""
    folder.mkdir()
    for path in file.parent.glob(f"{file.name}*"):
        if path.is_file():
            shutil.copy(path, folder)
    return folder / file.name


def _size_of_log(file: Path) -> int:
    return Path(f"{file}-wal").stat().st_size


async def _refuses(actor: Actor, file: Path) -> None:
    for verb in (actor.enqueue, actor.counts, actor.start, actor.promote):
        with pytest.raises(StoreError, match="deleted or") as raised:
            await verb()
        assert str(file) in str(raised.value)
        assert not raised.value.retry_safe


@pytest.mark.parametrize("is_empty", [False, True])
async def test_no_new_file_is_made_beside_the_log_of_one_that_was_moved_away(
    is_empty: bool, tmp_path: Path
) -> None:
    """Two files would share the log, and moved back, the old one would be lost: it stays whole."""
    file, away = tmp_path / "fairlane.db", tmp_path / "away.db"
    actor, records = _open(file)
    await actor.give(*(actor.new() for _ in range(5)))
    if is_empty:
        with closing(apsw.Connection(str(file))) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert bool(_size_of_log(file)) is not is_empty
    file.rename(away)
    other, _ = _open(file)
    with pytest.raises(StoreError, match=r"missing, but its log fairlane\.db-wal is there.*put it back"):
        await other.enqueue()
    assert not file.exists()
    await other.store.upkeep.aclose()
    away.rename(file)
    await actor.store.upkeep.aclose()
    await verify(file, records)


@pytest.mark.parametrize("has_read", [True, False])
async def test_nothing_is_acknowledged_into_a_deleted_file(has_read: bool, tmp_path: Path) -> None:
    """Whether the reading connection is open by then or not; and no empty file takes its place."""
    file = tmp_path / "fairlane.db"
    actor, _ = _open(file)
    await actor.enqueue()
    if has_read:
        await actor.counts()
    file.unlink()
    await _refuses(actor, file)
    assert not file.exists()
    await actor.store.upkeep.aclose()


async def test_nothing_is_acknowledged_into_a_file_deleted_in_the_middle_of_a_verb(tmp_path: Path) -> None:
    """The store asks its clock inside the transaction; that is when the file goes."""
    file = tmp_path / "fairlane.db"
    losing: list[Path] = []

    def clock() -> int:
        while losing:
            losing.pop().unlink()
        return RealClock().now()

    actor = Actor(SqliteStore(f"sqlite:///{file}", clock=clock))
    await actor.enqueue()
    losing.append(file)
    with pytest.raises(StoreError, match="deleted or replaced"):
        await actor.enqueue()
    assert not losing
    await actor.store.upkeep.aclose()


async def test_a_file_that_cannot_be_looked_at_is_away_and_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers wait for a disk or a right that may come back; they end for a file that was deleted."""

    def refuse(path: Path) -> file_guard.FileId:
        raise PermissionError(13, f"no way to {path.name}")

    file = tmp_path / "fairlane.db"
    actor, _ = _open(file)
    await actor.enqueue()
    with monkeypatch.context() as patch:
        patch.setattr(file_guard, "identity_of", refuse)
        with pytest.raises(StoreUnavailable, match="cannot be looked at"):
            await actor.enqueue()
    await actor.enqueue()
    file.unlink()
    with pytest.raises(StoreGone):
        await actor.enqueue()
    await actor.store.upkeep.aclose()


async def test_a_file_that_comes_back_is_used_again(tmp_path: Path) -> None:
    """Moved away and back it is the same file, and nothing was written to it meanwhile."""
    file = tmp_path / "fairlane.db"
    actor, records = _open(file)
    await actor.give(actor.new())
    await actor.counts()
    file.rename(tmp_path / "elsewhere.db")
    await _refuses(actor, file)
    (tmp_path / "elsewhere.db").rename(file)
    await actor.give(actor.new())
    await actor.store.upkeep.aclose()
    assert len(await verify(file, records)) == 2


async def test_a_store_neither_writes_to_nor_spoils_the_file_that_replaced_its_own(tmp_path: Path) -> None:
    """Closing it must not delete the WAL of the new file, in which another store's jobs may be."""
    file = tmp_path / "fairlane.db"
    old, _ = _open(file)
    await old.enqueue()
    await old.counts()
    records = await _make(tmp_path / "backup.db", 3)
    _replace(file, tmp_path / "backup.db")
    await _refuses(old, file)

    new, more = _open(file)
    await new.give(new.new(), new.new())
    await old.store.upkeep.aclose()
    await new.give(new.new())
    copy = _copy(file, tmp_path / "copy")
    await new.store.upkeep.aclose()
    for place in (copy, file):
        assert len(await verify(place, [*records, *more])) == 6


async def test_a_file_overwritten_with_rubbish_is_an_error_and_no_end_of_the_process(tmp_path: Path) -> None:
    """What SQLite still has in memory may be answered; whoever opens the file hears what it is."""
    file = tmp_path / "fairlane.db"
    await _make(file, 50)
    file.write_bytes(os.urandom(file.stat().st_size))
    actor, _ = _open(file)
    for verb in (actor.enqueue, actor.counts):
        with pytest.raises(StoreError, match="damaged or no SQLite file"):
            await verb()
    await actor.store.upkeep.aclose()


def test_a_file_or_folder_made_read_only_is_a_clear_error() -> None:
    """Root may write anywhere, so the program becomes nobody first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.getuid() == 0:
            os.chown(folder, 65534, 65534)
        assert run_program("read_only", name) == "ok"
        folder.chmod(0o700)
