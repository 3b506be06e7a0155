"""Where benchmarks may run: in their own files, in a store dedicated to them, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fairlane import Fairlane
from fairlane.cli.main import cli
from fairlane.lab.bench.environment import host
from fairlane.testing import dedicate as dedicate_to_tests


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store that does not exist yet."""
    return f"sqlite:///{tmp_path / 'theirs.db'}"


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["bench", *arguments])


def enqueue(url: str) -> None:
    """Enqueue somebody's job into a store."""
    with Fairlane(url, config={}) as app:
        app.task(name="theirs")(_theirs).using(tenant="acme").enqueue()


def _theirs() -> None: ...


def counts(url: str) -> dict[str, int]:
    """Count the jobs of a store by state."""
    with Fairlane(url, config={}) as app:
        return {state.value: jobs for state, jobs in app.jobs.count().items() if jobs}


def test_a_store_with_jobs_is_neither_used_nor_dedicated(url: str) -> None:
    """It contains jobs."""
    enqueue(url)
    for command in (["latency", "--jobs", "1"], ["dedicate"]):
        ran = run(*command, "--url", url)
        assert ran.exit_code == 1
    assert "the store holds jobs" in ran.stderr
    assert counts(url) == {"ready": 1}


def test_an_empty_store_is_not_used_before_it_is_dedicated(url: str) -> None:
    """Its owner may not have started yet."""
    assert CliRunner().invoke(cli, ["migrate", "--url", url]).exit_code == 0
    ran = run("throughput", "--jobs", "1", "--url", url)
    assert (ran.exit_code, "fairlane bench dedicate" in ran.stderr) == (1, True)
    assert counts(url) == {}


def test_a_store_for_tests_is_not_one_for_benchmarks(url: str) -> None:
    """Two who both think it is theirs would find each other's jobs."""
    asyncio.run(dedicate_to_tests(url))
    assert run("scale", "--jobs", "1", "--url", url).exit_code == 1
    assert "the store is for tests" in run("dedicate", "--url", url).stderr


def test_a_store_that_is_not_there_is_not_made_by_measuring(url: str, tmp_path: Path) -> None:
    """A typing error must not leave a file."""
    assert run("latency", "--jobs", "1", "--url", url).exit_code == 4
    assert list(tmp_path.iterdir()) == []


def test_dedicating_needs_a_store_that_is_named_on_the_command_line(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the environment names is the application's."""
    monkeypatch.setenv("FAIRLANE_URL", url)
    assert run("dedicate").exit_code == 5


def test_a_dedicated_store_is_used_again_and_again_and_nothing_waits_in_it(url: str) -> None:
    """Every case has a queue of its own there, so that the second time finds nothing of the first."""
    assert json.loads(run("dedicate", "--url", url, "--json").stdout) == {"purpose": "benchmarks"}
    sizes = ["--jobs", "3", "--tenants", "2,4", "--backlog", "10,20", "--rounds", "1", "--seed", "1"]
    for _ in range(2):
        ran = run("scale", *sizes, "--url", url, "--json")
        assert ran.exit_code == 0, ran.stderr
        report: dict[str, Any] = json.loads(ran.stdout)
        assert report["ok"]
        assert report["store"]["where"] == "one dedicated store"
    assert "ready" not in counts(url)


def test_the_environments_store_is_left_alone(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --url a file of its own is measured, whatever FAIRLANE_URL says."""
    monkeypatch.setenv("FAIRLANE_URL", url)
    sizes = ["--jobs", "1", "--tenants", "2", "--backlog", "10", "--rounds", "1"]
    ran = run("scale", *sizes, "--folder", str(tmp_path), "--json")
    assert json.loads(ran.stdout)["store"]["where"] == "files of its own"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_room_is_refused_before_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk would hurt more than the benchmark."""
    room = shutil.disk_usage(tmp_path)._replace(free=10_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: room)
    ran = run("scale", "--jobs", "1", "--tenants", "2", "--backlog", "10", "--folder", str(tmp_path))
    assert (ran.exit_code, "10,000 bytes free" in ran.stderr) == (1, True)


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="this system has no such choice")
@pytest.mark.parametrize(
    ("policy", "priority"), [("SCHED_OTHER", "normal"), ("SCHED_IDLE", "normal"), ("SCHED_RR", "real-time")]
)
def test_a_report_says_whether_it_ran_before_everything_else(
    monkeypatch: pytest.MonkeyPatch, policy: str, priority: str
) -> None:
    """A figure taken at real-time priority while other work runs is not that of a quiet machine."""
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: getattr(os, policy))
    assert host()["priority"] == priority
