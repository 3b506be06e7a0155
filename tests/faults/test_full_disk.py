"""A full or failing disk at any write: a clear error, nothing half done, and all is well once mended."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from fairlane.model.errors import EnqueueUnknown, StoreUnavailable
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.campaign import Actor, seeded, times
from tests.faults.disk import Disk, Fault
from tests.faults.failing import NEVER, fail_at_random
from tests.faults.processes import run_program


@pytest.mark.parametrize("fault", ["full", "io"])
async def test_a_store_outlives_a_disk_that_fails(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each scene fails by itself with a clear error, none hangs, and the same store goes on afterwards."""
    failures = await fail_at_random(fault, times(10), tmp_path / "fairlane.db", monkeypatch, seeded())
    assert failures > times(10) * 0.5


async def test_a_disk_that_cannot_be_read_is_one_clear_error_for_readers_and_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is left waiting, and the same store goes on afterwards."""
    disk = Disk(random.Random(1))
    disk.mount(monkeypatch)
    file = tmp_path / "fairlane.db"
    actor, other = (Actor(SqliteStore(f"sqlite:///{file}")) for _ in range(2))
    await actor.enqueue()
    await actor.counts()
    for _ in range(2):
        await other.enqueue()  # what the first one knows is old now: it must read
        disk.is_unreadable = True
        for verb in (actor.counts, actor.enqueue, actor.start):
            with pytest.raises((StoreUnavailable, EnqueueUnknown), match=f"{file}: could not be read"):
                await verb()
        disk.is_unreadable = False
        await actor.enqueue()
    assert (await actor.states()).total() == 5
    for one in (actor, other):
        await one.store.upkeep.aclose()


async def test_a_new_file_on_a_full_disk_is_one_clear_error_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever step of making the schema; the last step is a sync, which needs no space."""
    disk = Disk(random.Random(1), checkpoint=NEVER)
    disk.mount(monkeypatch)
    first = SqliteStore(f"sqlite:///{tmp_path / 'first.db'}")
    await Actor(first).enqueue()
    steps = disk.steps
    await first.upkeep.aclose()
    for at in range(1, steps):
        file = tmp_path / f"{at}.db"
        actor = Actor(SqliteStore(f"sqlite:///{file}"))
        disk.fail("full", at)
        with pytest.raises(StoreUnavailable, match=f"{file}: the disk is full"):
            await actor.enqueue()
        disk.mend()
        await actor.enqueue()
        await actor.store.upkeep.aclose()
    assert steps > 30


def test_a_store_outlives_a_file_system_that_is_really_full(tmp_path: Path) -> None:
    """Three megabytes in a mount of its own, which only the program sees."""
    shell = f"mount -t tmpfs -o size=3m tmpfs {tmp_path}"
    if subprocess.run(["unshare", "-m", "sh", "-c", shell], check=False, capture_output=True).returncode:  # noqa: S603, S607 (a question to the machine)
        pytest.skip("this user may not mount a small file system")
    before = ("unshare", "-m", "sh", "-c", f'{shell} && exec "$0" "$@"')
    assert run_program("small_disk", str(tmp_path), before=before) == "ok"
