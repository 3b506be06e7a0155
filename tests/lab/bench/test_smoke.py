"""Every scenario in small, with real worker processes: it runs, is checked, and leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairlane.cli.exits import Exit
from fairlane.cli.main import cli
from fairlane.lab.bench.environment import BenchEnvironment
from fairlane.lab.bench.held_jobs import HOLDS
from fairlane.lab.bench.report import Amount, Check, RoundResult, conclude
from fairlane.lab.bench.scenario import BenchResult, BenchSettings, RoundRunner
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.plan import RunPlan
from fairlane.lab.workload.run import WorkloadRun
from fairlane.lab.workload.worker_processes import RunError
from tests.processes.conftest import wait_for


def measured(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """Run a benchmark to its end and return its report."""
    ran = CliRunner().invoke(cli, ["bench", *arguments, "--rounds", "1", "--folder", str(tmp_path), "--json"])
    assert ran.exit_code == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    assert report["ok"]
    assert all(check["history"] == check["expected"] for check in report["checks"])
    return report


def goals(report: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the figures that have a goal."""
    return {(one["scenario"], one["name"]) for one in report["measures"] if one["goal"] is not None}


def test_throughput_counts_what_went_in_and_out(tmp_path: Path) -> None:
    """Plain and async handlers without a ledger, and a run with one, each on its own."""
    report = measured(tmp_path, "throughput", "--jobs", "60", "--tenants", "5,100000", "--processes", "1")
    assert {one["scenario"] for one in report["measures"]} == {"async", "plain", "with ledger"}
    assert {check["case"] for check in report["checks"] if check["scenario"] == "async"} == {
        "1 process, 5 tenants",
        "1 process, 60 tenants",  # there are no more tenants than jobs
    }
    assert all(one["median"] > 0 for one in report["measures"])
    assert [check["verdict"] is None for check in report["checks"]] == [True] * 4 + [False]
    assert list(tmp_path.iterdir()) == []


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    """As many ordinary workers as are asked for."""
    sizes = ["--jobs", "40", "--seconds", "0.3", "--processes", "2", "--plot", str(tmp_path / "plots")]
    report = measured(tmp_path, "latency", *sizes)
    assert goals(report) == {("enqueue", "p99"), ("idle pick-up", "p95")}
    assert report["settings"]["processes"] == [2]
    drawn = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert drawn == ["idle-pick-up.svg", "pick-up-at-half-load.svg"]
    assert sorted(Path(plot).name for plot in report["plots"]) == drawn


@pytest.mark.parametrize(
    ("scenario", "cases", "with_goals"),
    [
        ("flood", ["alone", "fair", "fifo"], {"fair p95", "fair p99", "still backlogged"}),
        ("names", ["alone", "fair"], {"fair p95", "fair p99", "still backlogged"}),
        ("tiny", ["alone", "fair"], {"fair p95", "fair p99", "still backlogged"}),
        ("weights", ["all backlogged"], {"share error", "Jain's index"}),
        ("seconds", ["cost in jobs", "cost in seconds"], {"off an equal share of slots, cost in seconds"}),
        (
            "returning",
            ["one backlogged"],
            {"the backlogged one's share of its due", "still backlogged"},
        ),
        ("headroom", ["alone", "headroom 0", "headroom 1"], {"headroom 1 p99"}),
        ("held", ["alone", "full gate", "paused task"], {"full gate p95", "paused task p95"}),
        ("reweighed", ["raised while it runs"], {"new share after"}),
    ],
)
def test_a_scenario_of_fairness_is_played_and_judged(
    tmp_path: Path, scenario: str, cases: list[str], with_goals: set[str]
) -> None:
    """Every run keeps a ledger that the history checker is content with."""
    report = measured(tmp_path, "fairness", "--only", scenario, "--seconds", "0.4", "--slots", "4")
    assert [check["case"] for check in report["checks"]] == cases
    assert all(check["verdict"].startswith("kept: ") for check in report["checks"])
    assert goals(report) == {(scenario, name) for name in with_goals}


@pytest.mark.parametrize(
    ("scenario", "with_goals", "name", "least"),
    [
        # Without its priority the flood would overtake nobody; a point is worth six seconds.
        (
            "priority",
            {"low waits longer than high by"},
            "low went behind jobs that came later by",
            3,
        ),
        # Without its minimum share the second queue would have nothing of any hundred.
        (
            "strict",
            {"bulk's least share of 100 starts", "contested turns"},
            "bulk's least share of 100 starts",
            10,
        ),
    ],
)
def test_what_goes_first_is_contested_for_as_long_as_it_takes_to_see_its_bound(
    tmp_path: Path, scenario: str, with_goals: set[str], name: str, least: float
) -> None:
    """The bound is reached, so that a figure within it says something."""
    report = measured(tmp_path, "fairness", "--only", scenario, "--seconds", "0.4", "--slots", "4")
    (check,) = report["checks"]
    assert check["verdict"].startswith("kept: ")
    assert goals(report) == {(scenario, one) for one in with_goals}
    (found,) = [one["median"] for one in report["measures"] if one["name"] == name]
    assert found >= least


def test_many_claimers_find_something_as_long_as_there_is_something(tmp_path: Path) -> None:
    """Each with a connection of its own, through the contract."""
    report = measured(tmp_path, "fairness", "--only", "claimers", "--seconds", "0.2")
    found = {one["name"]: one["median"] for one in report["measures"]}
    assert goals(report) == {("claimers", "empty claims beside a backlog")}
    assert found["empty claims beside a backlog"] == 0
    assert found["claims"] >= 4 * 32 + 32  # a job each four times, and the one that found nothing


def test_a_backlog_of_any_size_may_wait_while_a_weight_is_raised_and_is_left(tmp_path: Path) -> None:
    """The run ends by its time: what was not reached is neither waited for nor missed."""
    sizes = ["--seconds", "0.3", "--slots", "2", "--backlog", "3000"]
    report = measured(tmp_path, "fairness", "--only", "reweighed", *sizes)
    (check,) = report["checks"]
    assert (check["jobs"], report["settings"]["backlog"]) == (3_000, [3_000])
    assert 0 < check["history"] < 3_000
    assert check["verdict"].startswith("kept: ")


def test_rounds_that_share_a_store_begin_with_the_same_weights(tmp_path: Path) -> None:
    """Otherwise the second round would start with the raised weight."""
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    assert CliRunner().invoke(cli, ["bench", "dedicate", "--url", url]).exit_code == 0
    words = ["fairness", "--only", "reweighed", "--seconds", "0.6", "--slots", "4", "--rounds", "2", "--json"]
    ran = CliRunner().invoke(cli, ["bench", *words, "--url", url])
    assert ran.exit_code == 0, ran.stderr
    (before,) = [one for one in json.loads(ran.stdout)["measures"] if one["name"] == "share error before"]
    assert max(before["values"]) < 20  # ten to one would be 41


def test_as_many_jobs_are_held_as_are_asked_for(tmp_path: Path) -> None:
    """Behind the gate, and behind the pause."""
    report = measured(tmp_path, "fairness", "--only", "held", "--seconds", "0.3", "--backlog", "70")
    assert [check["jobs"] - check["expected"] for check in report["checks"]] == [0, 70, 70]


def test_scale_claims_from_every_case(tmp_path: Path) -> None:
    """Tenants, backlog, and all that can hold jobs."""
    report = measured(tmp_path, "scale", "--jobs", "5", "--tenants", "5,10", "--backlog", "50,100")
    assert [check["case"] for check in report["checks"]] == [
        "5 tenants, 50 jobs",
        "10 tenants, 50 jobs",
        "5 tenants, 100 jobs",
        *(f"5 tenants, 50 jobs and 100 held by a {hold}" for hold in HOLDS),
    ]
    assert {check["history"] for check in report["checks"]} == {50}
    # All against the first, the slowest claims of each, enqueues where only jobs grow, what is held.
    assert len(goals(report)) == 4 * 7 + 8 + 6 + 5
    held = {one["median"] for one in report["measures"] if one["name"].endswith("claimed of what is held")}
    assert held == {0}


async def test_a_run_that_takes_too_long_is_ended_with_its_workers(tmp_path: Path) -> None:
    """No worker is left when a benchmark has timed out."""
    plan = RunPlan(url=f"sqlite:///{tmp_path / 'fairlane.db'}", folder=str(tmp_path / "run"))
    run = WorkloadRun(plan, processes=1, timeout=0)
    with pytest.raises(RunError, match="not finished after 0 s"):
        await run.execute([], backlog=[Arrival(0, "acme", 1, 3_600_000_000)])
    assert list((tmp_path / "run").glob("usage-*.json")) == []  # it was ended, it did not end


def test_a_benchmark_that_is_told_to_stop_takes_its_workers_along(tmp_path: Path) -> None:
    """SIGTERM leaves neither a process nor a file."""
    words = ["fairness", "--only", "headroom", "--seconds", "600", "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "fairlane", "bench", *words]
    with subprocess.Popen(command) as bench:  # noqa: S603 (our own program)
        children = Path(f"/proc/{bench.pid}/task/{bench.pid}/children")
        try:
            # The log is there a moment before the worker is.
            wait_for(lambda: any(tmp_path.glob("*/run-*/worker-0.log")) and bool(children.read_text()))
            (worker,) = map(int, children.read_text().split())
        finally:
            bench.terminate()
        assert bench.wait(60) == Exit.INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_missing_in_history_make_a_check_bad(tmp_path: Path) -> None:
    """However content the checker is."""
    settings = BenchSettings(environment=BenchEnvironment(tmp_path), say=print, rounds=1, seed=1)
    runner = RoundRunner(settings, "async", 0)
    runner.note("lost one", 10, 10, 9, None)
    runner.note("broken", 10, 10, 10, "broken 1 times", is_kept=False)
    runner.note("well", 10, 10, 10, None)
    assert [check.ok for check in runner.checks] == [False, False, True]


def test_a_bad_check_is_shown_and_makes_the_command_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure of a run that lost a job is no figure."""
    bad = Check(scenario="async", case="x", round=1, jobs=5, expected=5, history=4, verdict=None, ok=False)
    found = conclude("async", [RoundResult({"drained": Amount(7, "jobs/s")})])

    async def lossy(_: BenchSettings, only: tuple[str, ...]) -> BenchResult:
        return BenchResult(found, [bad])

    monkeypatch.setattr("fairlane.lab.bench.throughput.throughput", lossy)
    ran = CliRunner().invoke(cli, ["bench", "throughput"])
    assert ran.exit_code == 1
    assert "1 runs with 5 jobs checked, 1 bad" in ran.stdout
    assert ran.stdout.splitlines()[-1].split()[:5] == ["async", "x", "1", "5", "4"]


@pytest.mark.parametrize("text", ["0", "x", "1,,2", "65", ""])
def test_numbers_that_mean_nothing_are_refused(text: str) -> None:
    """With what is allowed."""
    ran = CliRunner().invoke(cli, ["bench", "throughput", "--processes", text])
    assert (ran.exit_code, "whole numbers from 1 to 64" in ran.stderr) == (2, True)
