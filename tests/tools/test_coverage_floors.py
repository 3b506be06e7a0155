"""Coverage is held to a floor for each part of the package, and a part below one is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.coverage_floors import FLOORS, Floor, lines, main
from tools.pages import ROOT


def summary(statements: int, run: int, branches: int, branches_run: int) -> dict[str, dict[str, int]]:
    """Return one file of a report."""
    return {
        "summary": {
            "num_statements": statements,
            "covered_lines": run,
            "num_branches": branches,
            "covered_branches": branches_run,
        }
    }


def report(folder: Path, files: dict[str, dict[str, dict[str, int]]], *, branches: bool = True) -> str:
    """Write a report as `coverage json` does."""
    file = folder / "coverage.json"
    file.write_text(json.dumps({"meta": {"branch_coverage": branches}, "files": files}), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: floor.part)
def test_every_pattern_of_a_part_meets_a_file(floor: Floor) -> None:
    """A file that was moved must not leave its floor unnoticed."""
    for pattern in floor.files:
        assert any(ROOT.glob(pattern)), pattern


@pytest.mark.parametrize(
    ("run", "branches_run", "is_met"), [(100, 100, True), (99, 100, False), (100, 99, False), (98, 98, False)]
)
def test_statements_and_branches_each_have_their_floor(run: int, branches_run: int, is_met: bool) -> None:
    """Neither makes up for the other."""
    files = {"src/fairlane/model/one.py": summary(100, run, 100, branches_run)}
    ((line, met),) = lines(files, [Floor("model", ("src/fairlane/model/*",), 100, 100)])
    assert met is is_met
    assert ("BELOW" in line) is not is_met


def test_files_of_a_part_are_counted_together() -> None:
    """A small file without a test does not pull down a large part, nor the other way round."""
    floor = Floor("queue", ("src/fairlane/store/*", "src/fairlane/app/*"), 95, 90)
    files = {
        "src/fairlane/store/sqlite/a.py": summary(95, 95, 90, 90),
        "src/fairlane/app/b.py": summary(5, 0, 10, 0),
        "src/fairlane/cli/c.py": summary(500, 0, 10, 0),
    }
    ((line, met),) = lines(files, [floor])
    assert met
    assert "2 files" in line


def test_a_part_without_files_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is neither passed in silence nor called covered."""
    code = main([report(tmp_path, {"src/fairlane/model/one.py": summary(1, 1, 0, 0)})])
    printed = capsys.readouterr().out
    assert code == 0
    assert "API        no files yet" in printed
    assert "model      100.0 % / 100.0 %" in printed


def test_a_part_below_its_floor_fails_the_command(tmp_path: Path) -> None:
    """`make test-all` ends with an error."""
    assert main([report(tmp_path, {"src/fairlane/worker/one.py": summary(100, 89, 0, 0)})]) == 1


def test_a_report_of_nothing_or_without_branches_fails(tmp_path: Path) -> None:
    """A run that measured nothing has shown nothing."""
    assert main([report(tmp_path, {})]) == 1
    one = {"src/fairlane/model/one.py": summary(1, 1, 0, 0)}
    assert main([report(tmp_path, one, branches=False)]) == 1
