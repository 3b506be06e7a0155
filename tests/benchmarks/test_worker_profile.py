"""The profile of a worker: its page is made of its figures, and its timers count each moment once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.worker_meter import START
from benchmarks.worker_profile import ProfileCase, fill, run_once
from benchmarks.worker_profile_page import PAGE, RESULT, Column, ProfileResult, page
from tests.stores import MEMORY

ROOT = Path(__file__).parents[2]
NEVER_ZERO = ("loop: handler started", "loop: arguments decoded", "store: claim, SQLite", "store: commit")


def test_the_page_is_made_of_the_figures() -> None:
    """No number is typed by hand."""
    found = msgspec.json.decode(RESULT.read_bytes(), type=ProfileResult)
    assert PAGE.read_text(encoding="utf-8") == page(found)


def test_the_whole_is_shown_with_its_spread_and_small_parts_are_left_out() -> None:
    """The median, the lowest and the highest round; nothing that would read 0.0."""
    column = Column("1 tenant", {"loop: start": 2.0, "store: claim": 3.04, "dust": 0.01}, [9.0, 7.0, 12.0])
    shown = page(ProfileResult(10, 3, {"cores": "2"}, (column,)))
    assert "| loop: start | 2.0 |" in shown
    assert "| **all, timed** | **5** |" in shown
    assert "| **9** (7 to 12) |" in shown
    assert "dust" not in shown


def test_no_moment_is_counted_twice() -> None:
    """Every thread's time is some part's or its rest; none is left that no thread has spent."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        file = Path(folder) / "full.db"
        fill(str(file), 300, 3, "async")
        spent = run_once(file, ProfileCase("small"), 300, is_timed=True)
    assert all(spent[part] > 0 for part in NEVER_ZERO)
    assert min(spent.values()) >= 0
    assert spent[START] < 0.1 * sum(spent.values())


def test_the_command_prints_a_table_of_parts_by_case() -> None:
    """As it is run by people."""
    words = [sys.executable, "-m", "benchmarks.worker_profile", "--jobs", "200", "--rounds", "1"]
    ran = subprocess.run(  # noqa: S603 (our own program)
        [*words, "--only", "2 processes"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "| part | 2 processes |" in ran.stdout
    assert "loop: handler started" in ran.stdout
    assert json.loads(RESULT.read_bytes())["jobs"] != 200
