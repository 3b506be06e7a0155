"""The pages of docs/proofs match the stored measurements, and every goal has its answer."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from fairlane.lab.bench.report import Amount, Goal, Measure, RoundResult, conclude
from tests.postgres.old_snapshot import Course, Courses, Pace
from tools.proofs import __main__ as command
from tools.proofs import measurement as keeping
from tools.proofs import snapshot_page, worker_page
from tools.proofs.bench_page import figures, report_of
from tools.proofs.goals import ProofGoal, sections_of
from tools.proofs.headline import BEGIN, END, replaced
from tools.proofs.index import count, index, met
from tools.proofs.measurement import PLOTS, PROOFS, ROOT, Measurement, read
from tools.proofs.pages import render
from tools.proofs.stores import STORES, Store, prefix, server_for
from tools.proofs.suite import PAGES, UNMEASURED, Page

GOALS = [(store, asked) for store in STORES for section in sections_of(store).values() for asked in section]
FILES = render()
KEPT = {page.name: found for page in PAGES if (found := read(page.name)) is not None}


def named(goal: tuple[Store, ProofGoal]) -> str:
    """Name a goal of a store."""
    return f"{goal[0]}: {goal[1].what}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep measurements elsewhere."""
    monkeypatch.setattr(keeping, "PROOFS", tmp_path)
    return tmp_path


def figure(name: str, value: float | None, goal: Goal | None, scenario: str = "claims") -> Measure:
    """Return one figure."""
    (one,) = conclude(
        scenario, [RoundResult({name: Amount(value, "ms")})], lambda _: {} if goal is None else {name: goal}
    )
    return one


# ── what is in the tree ──────────────────────────────────────────────────────


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_page_is_what_the_kept_measurement_says(file: Path) -> None:
    """No figure is typed by hand; `make proofs ARGS=--render` writes them again."""
    assert file.read_text(encoding="utf-8") == FILES[file]


def test_every_page_has_a_kept_measurement() -> None:
    """And there is none that no page shows."""
    measurement = {file.stem for file in PROOFS.glob("*.json")}
    assert measurement >= {page.name for page in PAGES if page.store == "sqlite"} - UNMEASURED
    assert {page.name for page in PAGES} - measurement >= UNMEASURED, "it is measured: take its name out"
    assert measurement <= {file.stem for file in PROOFS.glob("*.md")}


def test_every_picture_belongs_to_a_page() -> None:
    """No report names one that is not there, none is left of a report that is gone."""
    drawn = set()
    for page in PAGES:
        if page.name in KEPT and page.command[0] == "fairlane":
            drawn |= {ROOT / plot for plot in report_of(KEPT[page.name]).plots}
    assert set(PLOTS.rglob("*.svg")) == drawn


@pytest.mark.parametrize("goal", [goal for goal in GOALS if goal[1].page], ids=named)
def test_a_goal_that_names_a_page_is_answered_by_its_figures(goal: tuple[Store, ProofGoal]) -> None:
    """Otherwise a renamed figure would silently become 'not measured'."""
    store, asked = goal
    name = asked.page if asked.page == "peers" else prefix(store) + asked.page
    (page,) = [page for page in PAGES if page.name == name]
    # Peers of a store are measured with it, and a store as a whole or not at all.
    if prefix(store) + "throughput" not in KEPT or (asked.page == "peers" and KEPT[name].small):
        return
    if name in UNMEASURED:
        return
    assert asked.answers(page.figures(KEPT[name]))


@pytest.mark.parametrize("goal", [goal for goal in GOALS if not goal[1].page], ids=named)
def test_a_goal_that_is_not_measured_says_why(goal: tuple[Store, ProofGoal]) -> None:
    """Silence looks like success."""
    assert goal[1].why


def test_a_kept_measurement_says_of_what_and_on_what_it_is() -> None:
    """Commit, command, host, versions, settings with seed and rounds, and the value of every round."""
    for page in PAGES:
        if page.name not in KEPT:
            continue
        found = KEPT[page.name]
        assert re.match(r"[0-9a-f]{12}", found.commit)
        if page.command[0] == "fairlane":
            report = report_of(found)
            assert report.ok
            assert {"seed", "rounds"} <= set(report.settings)
            assert all(len(one.values) == report.settings["rounds"] for one in report.measures)
            assert f"--rounds {report.settings['rounds']}" in found.command


# ── how they are made ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "answer"), [((1, 2), True), ((1, 9), False), ((1, None), False), ((), None)]
)
def test_a_goal_is_met_if_all_its_figures_are(values: tuple[float | None, ...], answer: bool | None) -> None:
    """One that is not valid meets nothing; none at all is not measured."""
    asked = ProofGoal("what", "goal", "latency", "idle", "p.*")
    found = [figure(f"p{at}", value, Goal("", 5), "idle") for at, value in enumerate(values)]
    context = [figure("p99", 99, None, "idle"), figure("q", 99, Goal("", 5), "idle")]
    assert met(asked, {"latency": [*found, *context]}) is answer
    assert met(asked._replace(scenario=""), {"latency": [*found, *context]}) is answer
    assert met(asked._replace(scenario="another"), {"latency": found}) is None
    assert met(asked, {}) is None


def test_figures_of_scale_answer_for_what_has_grown_in_their_case() -> None:
    """More tenants, more jobs and what is held are three goals, whatever the sizes are."""
    names = {
        "smallest": "10 tenants, 1,000 jobs: p99",
        "tenants": "1,000 tenants, 1,000 jobs: p99",
        "backlog": "10 tenants, 20,000 jobs: p99",
        "held": "10 tenants, 1,000 jobs and 9,000 held by a pause: p99",
    }
    found = [figure(name, 1, Goal("", 5)) for name in names.values()]
    for kind, name in names.items():
        asked = ProofGoal("what", "goal", "scale", "claims", f"{kind} p99")
        assert [one.name for one in asked.answers(found)] == [name]


def test_beside_a_snapshot_only_what_must_stay_flat_has_a_goal_and_both_clocks_count() -> None:
    """Half of the speed by the clock is not flat, though the processor says so."""
    start, slower = Pace(10, 0.1, 1_000), Pace(10, 0.1, 500)
    ways = [Course("retries", 400, 60, start, slower), Course("gate", 400, 60, start, slower)]
    report = msgspec.Raw(msgspec.json.encode(Courses({"cores": 2}, tuple(ways))))
    measurement = Measurement("0" * 12, "python -m tests.postgres.old_snapshot", small=False, report=report)
    found = {(one.scenario, one.name): (one.median, one.met) for one in snapshot_page.figures(measurement)}
    assert found == {
        ("retries", snapshot_page.PROCESSOR): (100, True),
        ("retries", snapshot_page.CLOCK): (50, False),
        ("gate", snapshot_page.PROCESSOR): (100, None),
        ("gate", snapshot_page.CLOCK): (50, None),
    }
    row = "retries 1.0 400 1.00 1.00 10 10 0.100 0.100 100% 1,000 500 50% 80% **no**"
    assert f"| {' | '.join(row.split())} |" in snapshot_page.page(measurement, "postgres-snapshot")


def test_a_machine_that_is_slower_at_the_end_is_not_what_a_snapshot_costs() -> None:
    """The same work takes twice as long: so may the jobs."""
    start, end = Pace(10, 0.1, 1_000, same=2), Pace(10, 0.2, 500, same=4)
    course = Course("retries", 400, 60, start, end)
    assert (course.by_processor, course.by_clock, course.is_flat) == (1, 1, True)
    faster = Course("retries", 400, 60, start, Pace(10, 0.1, 1_000, same=1))
    assert (faster.by_processor, faster.by_clock, faster.is_flat) == (0.5, 0.5, False)


def test_an_idle_worker_is_not_charged_for_leaving() -> None:
    """It makes that call only because it was stopped."""
    asked = {"claim": 0.5, "wait": 0.5, "leave": 9.0}
    idle = {
        "cpu_percent": 0.4,
        "pss_mb": 24.0,
        "asked_per_s": asked,
        "connections": 2,
        "connections_busy": 101,
    }
    report = msgspec.json.encode({"host": {}, "idle, duties": idle})
    measurement = Measurement("c", "command", small=False, report=msgspec.Raw(report))
    found = worker_page.figures(measurement)
    listening = {one.name: one.median for one in worker_page.figures(measurement, "postgres")}
    assert listening["queries"] == 0.5
    assert {one.name: (one.median, one.met) for one in found} == {
        "memory": (24.0, True),
        "processor": (0.4, True),
        "queries": (1.0, True),
        "connections": (2, True),
        "connections while busy": (101, False),
    }


def test_the_index_counts_what_is_met_and_shows_the_limit() -> None:
    """Without stored measurements, no goal is met."""
    for store in STORES:
        goals = len([goal for goal in GOALS if goal[0] == store])
        assert count({}, store) == f"0 goals met, 0 not met, {goals} not measured"
    text = index({}, {"latency": [figure("p95", 12, Goal("at most 10 ms", 10), "idle pick-up")]})
    assert "| p95: 12.00 ms (≤ 10.00) | **no** |" in text
    assert "not in the kept runs" in text


def test_the_readme_keeps_what_stands_around_its_figures() -> None:
    """And one without a place for them is not touched."""
    text = replaced(f"before\n{BEGIN}\nold\n{END}\nafter\n", {}, {})
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    with pytest.raises(ValueError, match="no place for figures"):
        replaced("no marks", {}, {})


def test_a_benchmark_is_kept_with_its_command_and_commit(folder: Path) -> None:
    """The command is what a reader may repeat, without where files went."""
    words = ("fairlane", "bench", "fairness", "--only", "claimers")
    small = "--seconds 0.2 --rounds 1"
    page = Page("claimers", words, "--seconds 1", small, ("--json",), lambda _: "", figures)
    assert command.measure(page, folder, small=True)
    found = read("claimers")
    assert found is not None
    assert found.command == "fairlane bench fairness --only claimers --seconds 0.2 --rounds 1"
    assert {one.scenario for one in figures(found)} == {"claimers"}
    assert [file.name for file in folder.iterdir()] == ["claimers.json"]


def test_a_quick_look_is_called_one_wherever_its_figures_stand() -> None:
    """Small sizes make small figures, or good ones by chance."""
    for page in PAGES:
        if page.name not in KEPT:
            continue
        found = KEPT[page.name]
        for small in (True, False):
            one = msgspec.structs.replace(found, small=small)
            figures = {page.name: page.figures(one)}
            readme = replaced(f"{BEGIN}{END}", {page.name: one}, figures)
            for text in (page.render(one), index({page.name: one}, figures), readme):
                assert ("A quick look" in text) is small


def test_a_benchmark_that_fails_leaves_what_was_kept_before(folder: Path) -> None:
    """A figure of a bad run is no figure."""
    keeping.write("broken", Measurement("c", "old", small=False, report=msgspec.Raw(b"{}")))
    words = ("fairlane", "bench", "latency")
    page = Page("broken", words, "--jobs 0", "--jobs 0", ("--json",), lambda _: "", figures)
    assert not command.measure(page, folder)
    found = read("broken")
    assert found is not None
    assert found.command == "old"


def test_a_server_of_ones_own_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variable is gone then: Fairlane's own programs refuse variables that they do not know."""
    monkeypatch.setenv("FAIRLANE_PROOFS_REDIS_URL", "redis://here")
    with server_for("redis") as url:
        assert url == "redis://here"
    assert "FAIRLANE_PROOFS_REDIS_URL" not in os.environ
