"""The benchmark of child processes runs real ones, and its report is what the page of it reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks import children
from benchmarks.figures import Figures, lines, play
from fairlane.lab.bench.report import Amount, Goal
from tools.proofs import figures_page
from tools.proofs.measurement import ROOT, Measurement


def test_children_are_measured_and_the_report_makes_a_page(tmp_path: Path) -> None:
    """A new child starts for a job that finds the other one busy, and all empty jobs end."""
    words = ["--only", "start", "--only", "throughput", "--jobs", "40", "--rounds", "1", "--json"]
    ran = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-m", "benchmarks.children", *words, "--folder", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = msgspec.json.decode(ran.stdout, type=Figures)
    values = {one.name: one.median for one in found.measures}
    assert all(value is not None and value > 0 for value in values.values())
    goals = {one.name for one in found.measures if one.goal is not None}
    assert goals == {"first job of a new child", "empty jobs of two children"}
    page = figures_page.page(
        Measurement("0" * 12, "python -m benchmarks.children", small=False, report=msgspec.Raw(ran.stdout)),
        "children",
        "Handlers in processes",
        "About.",
    )
    assert "## start" in page
    assert "| first job of a new child |" in page
    assert list(tmp_path.iterdir()) == []


def test_every_scenario_is_played_in_each_round_and_a_goal_is_held_to_the_median(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The spread is told beside it."""
    played: list[tuple[str, int]] = []

    def one(name: str, n: int) -> dict[str, Amount]:
        played.append((name, n))
        return {f"{name} takes": Amount((3, 9, 4)[n], "ms")}

    goals = {"a takes": Goal("at most 5 ms", 5), "b takes": Goal("at most 3 ms", 3)}
    found = play({name: lambda n, name=name: one(name, n) for name in "ab"}, goals, rounds=3)  # type: ignore[misc]
    assert played == [(name, n) for n in range(3) for name in "ab"]
    assert lines(found.measures) == [
        "a: a takes 4.00 ms (3.00 to 9.00), asked at most 5 ms: met",
        "b: b takes 4.00 ms (3.00 to 9.00), asked at most 3 ms: not met",
    ]
    assert "round 3 of 3: b" in capsys.readouterr().err


def test_every_goal_of_the_children_is_of_a_figure() -> None:
    """A renamed figure would lose its goal in silence."""
    found = {
        "first job of a new child",
        "empty jobs of two children",
        "two children against one",
        "memory after all jobs against a tenth",
    }
    assert children.GOALS.keys() == found
