"""The comparison of two commits runs the package of each, and compares them pair by pair."""

from __future__ import annotations

from pathlib import Path

from benchmarks.commits import AGAINST, ROOT, Tree, extract, pair


def test_a_pair_is_two_runs_of_the_same_work(tmp_path: Path) -> None:
    """A tree against itself: the ratio is that of both figures, whichever was first."""
    before_tree, after_tree = (Tree(name, ROOT / "src", None) for name in ("before", "after"))
    found = pair(before_tree, after_tree, "async", 200, str(tmp_path), 1)
    before, after = (found[f"processor time of a job, {name}"].value for name in ("before", "after"))
    assert before is not None
    assert after is not None
    assert found[AGAINST].value == after / before
    assert found["drained, before"].unit == "jobs/s"


def test_each_tree_runs_its_own_package(tmp_path: Path) -> None:
    """The environment has this tree installed; the other one comes before it."""
    (tmp_path / "fairlane").mkdir()
    (tmp_path / "fairlane" / "__init__.py").write_text("")
    (tmp_path / "fairlane" / "__main__.py").write_text("import sys; print('other', *sys.argv[1:])")
    assert Tree("before", tmp_path, None).run("version") == b"other version\n"


def test_the_package_of_a_commit_is_written_into_a_folder(tmp_path: Path) -> None:
    """As it is in that commit, whatever the tree has now."""
    assert (extract("HEAD", tmp_path) / "fairlane" / "__init__.py").is_file()
