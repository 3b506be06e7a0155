"""The demo: the same arrivals twice, checked from outside, nothing left behind."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fairlane.lab.demo.arrivals import NOISY, QUIET, WORK, make_arrivals
from fairlane.lab.demo.command import run_demo
from fairlane.lab.demo.picture import DrawnRun, draw
from fairlane.lab.demo.screen import COLUMNS, line, row, summary
from fairlane.lab.ledger import Ended, Started
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.recorder import LedgerReader, Recorder
from fairlane.lab.workload.stats import RunStats
from fairlane.model.instants import SECOND


def began(job: str, at: int, attempt: int = 1) -> Started:
    """The record of a handler's start."""
    return Started(job=job, attempt=attempt, fence=attempt, worker="w", pid=1, at=at)


def ended(job: str, at: int) -> Ended:
    """The record of a handler's end."""
    return Ended(job=job, attempt=1, fence=1, outcome="returned", at=at)


def test_a_seed_gives_the_same_arrivals_and_another_seed_others() -> None:
    """Both runs, and a run of tomorrow, meet the same work."""
    assert make_arrivals(7, 20) == make_arrivals(7, 20)
    assert make_arrivals(7, 20) != make_arrivals(8, 20)


def test_the_noisy_tenant_comes_first_and_every_quiet_one_comes_again_and_again() -> None:
    """Otherwise there would be no contention."""
    arrivals = make_arrivals(7, 20)
    assert arrivals == sorted(arrivals)
    assert {one.tenant for one in arrivals if one.at == 0} == {NOISY}
    for tenant in QUIET:
        assert len([one for one in arrivals if one == Arrival(one.at, tenant, 1, WORK)]) >= 7


def test_figures_follow_each_tenant_from_coming_to_done() -> None:
    """Waiting, running, done and the waits come from the records alone."""
    run_stats = RunStats()
    run_stats.add_enqueued(NOISY, ["a", "b"], 0, 1)
    run_stats.add_enqueued("quiet-01", ["c"], 10_000, 10_001)
    run_stats.add_records([began("a", 5_000), began("c", 22_000), ended("a", 30_000)])
    assert row(NOISY, run_stats.tenants[NOISY]) == (NOISY, "2", "1", "0", "1", "5 ms", "5 ms")
    assert row("quiet-01", run_stats.tenants["quiet-01"]) == (
        "quiet-01",
        "1",
        "0",
        "1",
        "0",
        "12 ms",
        "12 ms",
    )
    assert len(row(NOISY, run_stats.tenants[NOISY])) == len(COLUMNS)
    assert run_stats.waits(without={NOISY}) == [12_000]


def test_a_second_start_of_a_job_is_no_second_wait() -> None:
    """That a job ran twice is for the checker to say."""
    run_stats = RunStats()
    run_stats.add_enqueued("quiet-01", ["c"], 0, 1)
    run_stats.add_records([began("c", 5_000), began("c", 90_000, attempt=2)])
    assert run_stats.waits(without={NOISY}) == [5_000]


def test_a_run_that_has_not_started_anything_shows_no_wait() -> None:
    """A dash, and not the best figure of all."""
    run_stats = RunStats()
    run_stats.add_enqueued("quiet-01", ["c"], 0, 1)
    assert line(run_stats, 2 * SECOND).endswith("quiet:   1 waiting    0 done   quiet p95 -")


def test_both_runs_stand_side_by_side() -> None:
    """One column each, in words that people read."""
    fair, fifo = RunStats(), RunStats()
    for run_stats, wait in ((fair, 12_000), (fifo, 3 * SECOND)):
        run_stats.add_enqueued("quiet-01", ["c"], 0, 1)
        run_stats.add_records([began("c", wait), ended("c", wait)])
    told = [re.split(r"\s{2,}", one.strip()) for one in summary([("fair", fair), ("fifo", fifo)])]
    assert told[0] == ["fair", "fifo"]
    assert told[2] == ["quiet tenants' wait p95", "12 ms", "3.0 s"]
    assert told[-1] == ["jobs done", "1", "1"]


def test_a_picture_shows_a_dot_for_each_quiet_job_and_each_runs_wait() -> None:
    """The same for the same runs; the noisy tenant's jobs are an area, not dots."""
    fair, fifo = RunStats(), RunStats()
    for stats, wait in ((fair, 12_000), (fifo, 3 * SECOND)):
        stats.add_enqueued(NOISY, ["a", "b"], 0, 1)
        stats.add_enqueued("quiet-01", ["c"], SECOND, SECOND + 1)
        stats.add_records([began("a", 1), began("b", 2), began("c", SECOND + wait)])
        stats.add_records([ended("a", 3), ended("b", 4), ended("c", SECOND + wait)])
    runs = [DrawnRun("fair", 0, fair, is_fair=True), DrawnRun("in order", 0, fifo, is_fair=False)]
    picture = draw(runs)
    assert picture == draw(runs)
    assert picture.count("<circle") == 2
    assert ">12 ms</text>" in picture
    assert ">3.0 s</text>" in picture
    assert "One tenant enqueues 2 jobs at once." in picture
    assert "prefers-color-scheme: dark" in picture


def test_a_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    """A line that is being written is given when it is whole."""
    recorder = Recorder(tmp_path / "worker-1.jsonl")
    reader = LedgerReader(tmp_path)
    recorder.write(began("a", 1))
    assert list(reader.read_new()) == [began("a", 1)]
    with (tmp_path / "worker-1.jsonl").open("ab") as file:
        file.write(b'{"e":"sta')
    assert list(reader.read_new()) == []
    recorder.close()


def test_the_demonstration_runs_is_judged_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two real worker processes on a real store, twice; quiet tenants wait less when turns are fair."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    picture = tmp_path / "demo.svg"
    printed: list[str] = []
    assert run_demo(printed.append, seconds=8, seed=7, svg=picture) == 0, "\n".join(printed)
    text = "\n".join(printed)
    assert "arrivals (seed 7)" in text
    assert "The history checker: 0 jobs lost, 0 run twice." in text
    assert text.count("kept: ") == 2
    fair, fifo = _p95(text)
    assert fair < fifo
    assert list(tmp_path.iterdir()) == [picture]
    assert ET.parse(picture).getroot().tag.endswith("svg")  # noqa: S314 (our own file)


def _p95(text: str) -> tuple[float, float]:
    (line_,) = [one for one in text.splitlines() if "wait p95" in one]
    first, second = re.findall(r"([\d.]+) (ms|s)\b", line_)
    return tuple(float(number) * (1_000 if unit == "s" else 1) for number, unit in (first, second))  # type: ignore[return-value]


def test_a_worker_that_cannot_start_is_told_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is removed, unless `keep` is set."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.executable", "/bin/ls")
    printed: list[str] = []
    assert run_demo(printed.append, seconds=8, seed=7, keep=True) == 1
    assert "ended with code 2:\n" in "\n".join(printed)
    assert "/bin/ls: " in "\n".join(printed)
    assert printed[-1] == f"kept: {next(tmp_path.iterdir())}"
