"""A store's files belong to their owner, and to a group if the URL says so, and to nobody else (S56)."""

from __future__ import annotations

import asyncio
import grp
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlane.model.errors import ConfigError
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.contract.upkeep import CensusRequest
from fairlane.store.sqlite import wake
from fairlane.store.sqlite.location import Location
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import ALL

OWN = grp.getgrgid(os.getegid()).gr_name
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach."""
    with TemporaryDirectory() as name:
        yield Path(name)


def share(folder: Path, group: int) -> None:
    """Let a group create files in a folder, which then belong to the group."""
    os.chown(folder, -1, group)
    folder.chmod(0o2770)


async def add(store: SqliteStore) -> None:
    """Wait briefly for a hint, which creates the socket."""
    await store.registry.wait(WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=1))


def modes(file: Path) -> dict[str, int]:
    """Return the modes of the file, its log, the folder of sockets and the socket in it."""
    sockets = Path(f"{file}.wake")
    (socket,) = sockets.iterdir()
    logs = {end: Path(f"{file}-{end}") for end in ("wal", "shm")}
    paths = {"file": file, **logs, "folder": sockets, "socket": socket}
    assert {*file.parent.iterdir()} == {file, *logs.values(), sockets}  # and there is nothing else
    assert {path.stat().st_gid for path in paths.values()} == {os.getegid()}
    return {name: stat.S_IMODE(path.stat().st_mode) for name, path in paths.items()}


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ("", {"file": 0o600, "wal": 0o600, "shm": 0o600, "folder": 0o700, "socket": 0o600}),
        (f"?group={OWN}", {"file": 0o660, "wal": 0o660, "shm": 0o660, "folder": 0o770, "socket": 0o660}),
    ],
)
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
async def test_files_and_sockets_are_for_their_owner_or_for_a_group(
    folder: Path, options: str, allowed: dict[str, int], umask: int
) -> None:
    """S56: nobody else may use them, whatever the umask; without a group it is the owner alone."""
    file = folder / "fairlane.db"
    before = os.umask(umask)
    try:
        store = SqliteStore(f"sqlite:///{file}{options}")
        await add(store)
        found = modes(file)
        await store.upkeep.aclose()
    finally:
        os.umask(before)
    assert found == allowed


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
async def test_a_file_that_is_there_keeps_its_mode(folder: Path, mode: int) -> None:
    """Somebody chose it; `fairlane doctor` comments on it."""
    file = folder / "fairlane.db"
    file.touch()
    file.chmod(mode)
    store = SqliteStore(f"sqlite:///{file}")
    await store.upkeep.census(CensusRequest(scope=ALL))
    assert stat.S_IMODE(file.stat().st_mode) == mode
    await store.upkeep.aclose()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_log_is_the_groups_too_where_the_folder_does_not_pass_it_on(folder: Path) -> None:
    """A user's files get the user's first group, which the other users are not in."""
    group = next(one for one in grp.getgrall() if one.gr_gid not in {0, 65534})
    folder.chmod(0o777)
    url = f"sqlite:///{folder}/fairlane.db?group={group.gr_name}"
    shown = enqueue_as_nobody(url, group.gr_gid, "groups").splitlines()
    made = ("fairlane.db", "fairlane.db-shm", "fairlane.db-wal")
    assert shown == [f"{name} 660 {group.gr_gid}" for name in made] + ["ok"]


def test_an_unknown_group_is_refused() -> None:
    """The message says what is wrong and lists the user's groups."""
    with pytest.raises(ConfigError, match=rf"no group 'nobodies-own'.*{OWN}"):
        Location("sqlite:///x.db?group=nobodies-own")


def test_a_group_of_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root could give it a file, so this runs as another user."""
    others = next(one for one in grp.getgrall() if one.gr_gid not in {os.getegid(), *os.getgroups()})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConfigError, match=f"not in group '{others.gr_name}'"):
        Location(f"sqlite:///x.db?group={others.gr_name}")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("is_shared", [True, False])
async def test_another_user_of_the_group_wakes_a_worker(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_shared: bool
) -> None:
    """S56: the hint itself gets through, and only with the group; polling is disabled here."""
    monkeypatch.setattr(wake, "POLL_SECONDS", 3600)
    group = next(one for one in grp.getgrall() if one.gr_gid not in {0, 65534})
    share(folder, group.gr_gid)
    shared = f"sqlite:///{folder}/fairlane.db?group={group.gr_name}"
    store = SqliteStore(shared)
    await store.upkeep.census(CensusRequest(scope=ALL))
    waiting = SqliteStore(shared if is_shared else f"sqlite:///{folder}/fairlane.db")
    await add(waiting)
    before = waiting._wake._hints._received.total()
    assert await asyncio.to_thread(enqueue_as_nobody, shared, group.gr_gid) == "ok"
    for _ in range(20):  # the datagram is in the socket by now; let the event loop receive it
        await asyncio.sleep(0)
    assert (waiting._wake._hints._received.total() > before) is is_shared
    for one in (store, waiting):
        await one.upkeep.aclose()


def enqueue_as_nobody(url: str, group: int, *more: str) -> str:
    """Run the other user's program and return its output."""
    command = (sys.executable, "-m", "tests.sqlite.other_user", url, str(group), *more)
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)  # noqa: S603 (our own program)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
