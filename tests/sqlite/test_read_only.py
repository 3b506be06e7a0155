"""A store on a file system that is mounted read-only: every command says so in one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.store.sqlite.location import access_problem

STORY = """
set -e
mount -t tmpfs none {folder}
{fairlane} --url sqlite:///{folder}/fairlane.db migrate
mount -o remount,ro {folder}
for words in 'jobs count' 'migrate' 'pause queue default --note x' 'doctor --problems'; do
  {fairlane} --url sqlite:///{folder}/fairlane.db $words 2>&1 || true
done
{fairlane} --url sqlite:///{folder}/new.db migrate 2>&1 || true
"""


def _can_mount() -> bool:
    unshare = shutil.which("unshare")
    if os.getuid() != 0 or unshare is None:
        return False
    words = (unshare, "-m", "mount", "-t", "tmpfs", "none", "/mnt")
    return subprocess.run(words, check=False, capture_output=True).returncode == 0  # noqa: S603 (as it stands)


@pytest.mark.skipif(not _can_mount(), reason="only root can mount something, in a namespace of its own")
def test_every_command_says_that_the_file_system_is_read_only(tmp_path: Path) -> None:
    """Also commands that only read: SQLite writes its list of readers into the same folder."""
    story = STORY.format(folder=tmp_path, fairlane=f"{sys.executable} -m fairlane")
    done = subprocess.run(("unshare", "-m", "sh", "-c", story), check=True, capture_output=True, text=True)  # noqa: S603, S607 (our own text)
    first, *lines = done.stdout.splitlines()
    assert first.startswith("Created the store")
    messages = [line for line in lines if str(tmp_path) in line]
    why = "its file system is read-only, and SQLite writes beside the file even to read it"
    assert messages[:3] == [f"Error: {tmp_path}/fairlane.db: cannot be opened; {why}"] * 3
    assert f"{tmp_path}/fairlane.db cannot be read and written: {why}." in messages[3]
    assert messages[-1].startswith(
        f"Error: {tmp_path}/new.db cannot be created: Read-only file system; choose a folder"
    )
    assert "Traceback" not in done.stdout + done.stderr


def test_nothing_hinders_a_usual_file(tmp_path: Path) -> None:
    """And it claims nothing about a missing file."""
    (tmp_path / "x.db").touch()
    assert [access_problem(name) for name in (str(tmp_path / "x.db"), "/nowhere/at/all.db", "")] == [
        "",
        "",
        "",
    ]
