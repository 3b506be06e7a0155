"""The parts of a supervisor that need no worker: endings, orphans, memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.runtime.exits import REPLACE, STORE_GONE
from fairlane.supervisor.endings import Consequence, Ending, consequence, memory_kills
from tests.supervisor.conftest import Shop, wait_for

KB_PER_MB = 1024


@pytest.mark.parametrize(
    ("code", "was_ready", "was_any_ready", "follows"),
    [
        (0, True, True, Consequence.REPLACED),
        (0, False, True, Consequence.CRASHED),
        (REPLACE, True, True, Consequence.REPLACED),
        (REPLACE, False, False, Consequence.CRASHED),
        (2, False, False, Consequence.FINAL),
        (5, False, False, Consequence.FINAL),
        (5, False, True, Consequence.MISCONFIGURED),
        (STORE_GONE, False, False, Consequence.FINAL),
        (STORE_GONE, False, True, Consequence.CRASHED),
        (STORE_GONE, True, True, Consequence.FINAL),
        (70, True, True, Consequence.CRASHED),
        (-9, True, True, Consequence.CRASHED),
    ],
)
def test_what_follows_from_an_end(
    code: int, was_ready: bool, was_any_ready: bool, follows: Consequence
) -> None:
    """The table of the how-to page."""
    assert consequence(Ending(code), was_ready=was_ready, was_any_ready=was_any_ready) is follows


def test_memory_kills_are_read_from_the_control_group_or_else_from_the_machine(tmp_path: Path) -> None:
    """The group's own count is exact; without it, that of the machine is."""
    assert memory_kills(tmp_path) == 0
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/vmstat").write_text("nr_free_pages 7\noom_kill 5\n")
    assert memory_kills(tmp_path) == 5
    (tmp_path / "proc/self/cgroup").write_text("0::/shop.service\n")
    group = tmp_path / "sys/fs/cgroup/shop.service"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("oom 3\noom_kill 2\n")
    assert memory_kills(tmp_path) == 2


def test_orphans_are_collected_and_own_processes_are_not() -> None:
    """In a process of its own: other tests have children too."""
    program = """
import os, sys, time
from fairlane.supervisor.orphans import reap_orphans
orphan = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], os.environ)
os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
own = os.posix_spawn(sys.executable, [sys.executable, "-c", "raise SystemExit(3)"], os.environ)
os.waitid(os.P_PID, own, os.WEXITED | os.WNOWAIT)
reap_orphans({own})
try:
    os.waitpid(orphan, os.WNOHANG)
except ChildProcessError:
    print("collected", os.waitstatus_to_exitcode(os.waitpid(own, 0)[1]))
reap_orphans(set())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert ran.stdout == "collected 3\n"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read as Linux shows it")
def test_a_supervisor_is_small_and_imports_no_application(shop: Shop) -> None:
    """Less than 20 MB of its own, and none of the worker's modules."""
    command = shop.start()
    command.serving(1)
    wait_for(lambda: len(command.pids()) == 1)
    lines = Path(f"/proc/{command.popen.pid}/smaps_rollup").read_text("ascii").splitlines()
    (kilobytes,) = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    assert kilobytes < 20 * KB_PER_MB
    mapped = Path(f"/proc/{command.popen.pid}/maps").read_text("utf-8")
    assert "apsw" not in mapped
