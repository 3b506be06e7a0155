"""A store that was open in the parent is not used by a forked child, and the parent's is none the worse."""

from __future__ import annotations

from pathlib import Path

from tests.faults.processes import run_program


def test_a_forked_child_is_refused_clearly_and_leaves_the_parent_in_peace(tmp_path: Path) -> None:
    """An unopened or closed store may cross a fork; an open one may not, by whatever object."""
    assert run_program("forking", str(tmp_path / "fairlane.db")) == "ok"
