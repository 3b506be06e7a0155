"""The demonstration: the same arrivals twice, judged from outside, and nothing left behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlane.demo.arrivals import NOISY, QUIET, WORK, draw_up
from fairlane.demo.command import run_demo
from fairlane.demo.screen import COLUMNS, line, row, summary
from fairlane.model.instants import SECOND
from fairlane.model.ledger import Ended, Started
from fairlane.stage.arrivals import Arrival
from fairlane.stage.figures import Figures
from fairlane.stage.recorder import Recorder, Tail


def began(job: str, at: int, attempt: int = 1) -> Started:
    """A handler's first line."""
    return Started(job=job, attempt=attempt, fence=attempt, worker="w", pid=1, at=at)


def ended(job: str, at: int) -> Ended:
    """A handler's last line."""
    return Ended(job=job, attempt=1, fence=1, outcome="returned", at=at)


def test_a_seed_gives_the_same_arrivals_and_another_seed_others() -> None:
    """Both runs, and a run of tomorrow, meet the same work."""
    assert draw_up(7, 20) == draw_up(7, 20)
    assert draw_up(7, 20) != draw_up(8, 20)


def test_the_noisy_tenant_comes_first_and_every_quiet_one_comes_again_and_again() -> None:
    """Else there would be nothing to be fair about."""
    arrivals = draw_up(7, 20)
    assert arrivals == sorted(arrivals)
    assert {one.tenant for one in arrivals if one.at == 0} == {NOISY}
    for tenant in QUIET:
        assert len([one for one in arrivals if one == Arrival(one.at, tenant, 1, WORK)]) >= 7


def test_figures_follow_each_tenant_from_coming_to_done() -> None:
    """Waiting, running, done and the waits come from the records alone."""
    figures = Figures()
    figures.bring(NOISY, ["a", "b"], 0, 1)
    figures.bring("quiet-01", ["c"], 10_000, 10_001)
    figures.follow([began("a", 5_000), began("c", 22_000), ended("a", 30_000)])
    assert row(NOISY, figures.tallies[NOISY]) == (NOISY, "2", "1", "0", "1", "5 ms", "5 ms")
    assert row("quiet-01", figures.tallies["quiet-01"]) == ("quiet-01", "1", "0", "1", "0", "12 ms", "12 ms")
    assert len(row(NOISY, figures.tallies[NOISY])) == len(COLUMNS)
    assert figures.waits(without={NOISY}) == [12_000]


def test_a_second_start_of_a_job_is_no_second_wait() -> None:
    """That a job ran twice is for the checker to say."""
    figures = Figures()
    figures.bring("quiet-01", ["c"], 0, 1)
    figures.follow([began("c", 5_000), began("c", 90_000, attempt=2)])
    assert figures.waits(without={NOISY}) == [5_000]


def test_a_run_that_has_not_started_anything_shows_no_wait() -> None:
    """A dash, and not the best figure of all."""
    figures = Figures()
    figures.bring("quiet-01", ["c"], 0, 1)
    assert line(figures, 2 * SECOND).endswith("quiet:   1 waiting    0 done   quiet p95 -")


def test_both_runs_stand_side_by_side() -> None:
    """One column each, in words that people read."""
    fair, fifo = Figures(), Figures()
    for figures, wait in ((fair, 12_000), (fifo, 3 * SECOND)):
        figures.bring("quiet-01", ["c"], 0, 1)
        figures.follow([began("c", wait), ended("c", wait)])
    told = [re.split(r"\s{2,}", one.strip()) for one in summary([("fair", fair), ("fifo", fifo)])]
    assert told[0] == ["fair", "fifo"]
    assert told[2] == ["quiet tenants' wait p95", "12 ms", "3.0 s"]
    assert told[-1] == ["jobs done", "1", "1"]


def test_a_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    """A line that is being written is given when it is whole."""
    recorder = Recorder(tmp_path / "worker-1.jsonl")
    tail = Tail(tmp_path)
    recorder.write(began("a", 1))
    assert list(tail.look()) == [began("a", 1)]
    with (tmp_path / "worker-1.jsonl").open("ab") as file:
        file.write(b'{"e":"sta')
    assert list(tail.look()) == []
    recorder.close()


def test_the_demonstration_runs_is_judged_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two real worker processes on a real store, twice; quiet tenants wait less when turns are fair."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    said: list[str] = []
    assert run_demo(said.append, seconds=8, seed=7) == 0, "\n".join(said)
    text = "\n".join(said)
    assert "arrivals of seed 7" in text
    assert "lost 0, run twice 0, says the history checker:" in text
    assert text.count("kept: ") == 2
    fair, fifo = _p95(text)
    assert fair < fifo
    assert list(tmp_path.iterdir()) == []


def _p95(text: str) -> tuple[float, float]:
    (line_,) = [one for one in text.splitlines() if "wait p95" in one]
    first, second = re.findall(r"([\d.]+) (ms|s)\b", line_)
    return tuple(float(number) * (1_000 if unit == "s" else 1) for number, unit in (first, second))  # type: ignore[return-value]


def test_a_worker_that_cannot_start_is_told_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was made is gone, unless it is to be kept."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.executable", "/bin/ls")
    said: list[str] = []
    assert run_demo(said.append, seconds=8, seed=7, keep=True) == 1
    assert "ended with code 2:\n" in "\n".join(said)
    assert "/bin/ls: " in "\n".join(said)
    assert said[-1] == f"kept: {next(tmp_path.iterdir())}"
