"""What is made of marks and rounds: verdicts, rates, ratios and goals, and the page that shows them."""

from __future__ import annotations

import doctest
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from benchmarks.peers import flood, marks, page, report, roster, speed
from benchmarks.peers.marks import Mark, MarksVerdict
from benchmarks.peers.protocol import MARK
from benchmarks.peers.report import PeerRow, PeersReport, SkippedPeer, against
from benchmarks.peers.roster import Peer, choose
from fairlane.lab.bench.report import Amount, Check, Measure, RoundResult

SQLITE = choose(["huey-sqlite"], ["sqlite"])


def rounds(values: Sequence[float], **more: float) -> list[RoundResult]:
    """Make rounds of which one figure is given and the others are 1."""
    names = (speed.DRAINED, speed.BULK, speed.PICKED_P50, speed.PICKED_P95, speed.ENQUEUE, speed.MEMORY)
    common = {name: Amount(more.get(name, 1), "") for name in names}
    return [RoundResult({**common, speed.DRAINED: Amount(value, "jobs/s")}) for value in values]


def find(measures: Sequence[Measure], scenario: str, name: str) -> Measure:
    """Return the one figure of this name."""
    (found,) = [one for one in measures if (one.scenario, one.name) == (scenario, name)]
    return found


@pytest.mark.parametrize("module", [flood, marks, page, report, roster], ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_hold(module: ModuleType) -> None:
    """The usual search for them leaves out this folder: drivers cannot be loaded here."""
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)


# ── marks ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ([0, 1, 2], MarksVerdict(0, 0, 0)),
        ([2, 0], MarksVerdict(1, 0, 0)),
        ([0, 1, 1, 2, 2, 2], MarksVerdict(0, 2, 0)),
        ([0, 1, 2, 3], MarksVerdict(0, 0, 1)),
        ([], MarksVerdict(3, 0, 0)),
        ([0, 0, 7], MarksVerdict(2, 1, 1)),
    ],
)
def test_marks_tell_lost_doubled_and_unknown_jobs_apart(numbers: list[int], verdict: MarksVerdict) -> None:
    """Three marks for three jobs are not enough: they must be of these jobs."""
    found = marks.judge([Mark(number, 0) for number in numbers], 3)
    assert (found, found.ok) == (verdict, verdict == (0, 0, 0))


def test_a_mark_that_is_half_written_is_not_read(tmp_path: Path) -> None:
    """A look at the file may come in between."""
    file = tmp_path / "marks"
    assert marks.read(file) == []
    file.write_bytes(MARK.pack(4, 9) + MARK.pack(5, 11)[:-1])
    assert marks.read(file) == [Mark(4, 9)]


def test_the_rate_counts_neither_the_start_of_the_worker_nor_jobs_that_came_after() -> None:
    """It begins at the first handler, wherever its mark is, and that job is not counted."""
    second = 10**9
    found = [Mark(1, 11 * second), Mark(0, 10 * second), Mark(2, 12 * second), Mark(3, 60 * second)]
    assert marks.rate(found, 3) == 1
    assert marks.rate([Mark(0, 5)], 1) == 0


def test_a_job_that_ran_twice_waited_for_its_first_run() -> None:
    """The first handler call counts."""
    assert marks.waits([Mark(1, 5_000), Mark(1, 9_000)], {1: 2_000}) == [3]


# ── ratios and goals ─────────────────────────────────────────────────────────


def test_the_ratio_is_taken_in_every_round_and_then_the_median() -> None:
    """A slow moment of the machine hits both sides of one round."""
    played = {
        **{peer.name: rounds([1, 1, 1]) for peer in SQLITE},
        "huey-sqlite": rounds([1, 2, 4]),
        "fairlane-sqlite": rounds([7, 10, 40]),
        "fairlane-sqlite-1000": rounds([9, 9, 9]),
        "fairlane-sqlite-100000": rounds([1, 1, 1]),
    }
    found = report.ratios(SQLITE, played)
    ratio = find(found, "huey-sqlite", speed.DRAINED)
    assert (ratio.values, ratio.median, ratio.low, ratio.high) == ((7, 5, 10), 7, 5, 10)
    assert find(found, "huey-sqlite, 1,000 tenants", speed.DRAINED).values == (9, 4.5, 2.25)
    assert find(found, "huey-sqlite, 100,000 tenants", speed.DRAINED).values == (1, 0.5, 0.25)


@pytest.mark.parametrize(
    ("ours", "tuned"),
    [
        ("fairlane-sqlite", "fairlane-sqlite-tuned"),
        ("fairlane-sqlite-100", "fairlane-sqlite-tuned-100"),
        ("fairlane-sqlite-1000", "fairlane-sqlite-tuned-1000"),
        ("fairlane-sqlite-plain", "fairlane-sqlite-tuned-plain"),
        ("fairlane-sqlite-queues", "fairlane-sqlite-tuned-queues"),
    ],
)
def test_fairlane_as_it_comes_is_compared_with_its_own_tuned_speed(ours: str, tuned: str) -> None:
    """Four fifths of it are the goal; what is tuned is compared with nobody else."""
    played = {peer.name: rounds([1]) for peer in SQLITE} | {ours: rounds([8]), tuned: rounds([10])}
    found = report.ratios(SQLITE, played)
    ratio = find(found, tuned, speed.DRAINED)
    assert (ratio.values, ratio.met) == ((0.8,), True)
    played[ours] = rounds([7.9])
    assert not find(report.ratios(SQLITE, played), tuned, speed.DRAINED).met
    compared = {one.scenario for one in found if one.scenario.startswith("huey")}
    assert compared == {against("huey-sqlite", tenants) for tenants in (1, 100, 1_000, 100_000)}


@pytest.mark.parametrize(
    ("peer", "tenants", "drained", "bulk"),
    [
        ("huey-sqlite", 1, 6, 10),
        ("pgqueuer-100", 1, 1.5, 1),
        ("pgqueuer-100", 100, 1.2, None),
        ("pgqueuer-100", 1_000, 1, None),
        ("pgqueuer-100", 100_000, 1, None),
        ("rq", 1, 6, 4),
        ("rq", 100, 6, None),
        ("rq", 1_000, 6, None),
    ],
)
def test_a_ratio_has_the_goal_of_its_store_and_of_so_many_tenants(
    peer: str, tenants: int, drained: float, bulk: float | None
) -> None:
    """Just enough meets it, a little less does not."""
    peers = choose([peer], ["sqlite", "postgres", "redis"])
    for reached in (drained, drained - 0.01):
        played = {one.name: rounds([1 if one.name == peer else reached]) for one in peers}
        ratio = find(report.ratios(peers, played), against(peer, tenants), speed.DRAINED)
        assert ratio.met is (reached == drained)
    in_bulk = find(report.ratios(peers, played), against(peer, tenants), speed.BULK)
    assert (in_bulk.goal and in_bulk.goal.limit) == bulk


def test_a_store_that_fairlane_does_not_support_yet_has_figures_but_no_ratios() -> None:
    """Peers are then only measured."""
    alone = [peer for peer in SQLITE if not peer.is_ours]
    assert report.ratios(alone, {"huey-sqlite": rounds([5])}) == []
    assert (
        find(report.own_measures(alone, {"huey-sqlite": rounds([5])}), "huey-sqlite", speed.DRAINED).median
        == 5
    )


def test_goals_on_latency_and_memory_are_for_fairlane_alone() -> None:
    """What a peer takes is context."""
    played = {peer.name: rounds([1], **{speed.MEMORY: 51, speed.ENQUEUE: 10}) for peer in SQLITE}
    found = report.own_measures(SQLITE, played)
    met = {one.name: one.met for one in found if one.scenario == "fairlane-sqlite" and one.goal}
    assert met == {speed.PICKED_P95: True, speed.ENQUEUE: True, speed.MEMORY: False}
    assert [one for one in found if one.scenario == "huey-sqlite" and one.goal] == []


def test_a_flood_may_cost_fairlanes_quiet_tenants_little_and_must_have_been_contested() -> None:
    """A run whose flood was over before the last quiet job came proves nothing."""

    def played(flooded: float, backlogged: float) -> Mapping[str, list[RoundResult]]:
        amounts = {flood.ALONE: 10, flood.FLOODED: flooded, flood.BACKLOGGED: backlogged}
        played = RoundResult({name: Amount(value, "") for name, value in amounts.items()})
        return {peer.name: [played] for peer in SQLITE if peer.flooded}

    for flooded, backlogged in ((30, 1), (31, 1), (30, 0)):
        found = report.fairness(SQLITE, played(flooded, backlogged))
        assert find(found, "fairlane-sqlite", flood.FLOODED).met is (flooded <= 30)
        assert find(found, "huey-sqlite", flood.FLOODED).met is None
        assert find(found, "huey-sqlite", flood.BACKLOGGED).met is bool(backlogged)


# ── what is shown ────────────────────────────────────────────────────────────


def a_report(*, ok: bool = True) -> PeersReport:
    """Make a report of two peers, one left out."""
    peers = [peer for peer in SQLITE if peer.tenants == 1 and (peer.is_compared or not peer.is_ours)]
    played = {"fairlane-sqlite": rounds([5_000, 7_000]), "huey-sqlite": rounds([1_000, 1_000])}
    quiet = {flood.ALONE: Amount(4, "ms"), flood.FLOODED: Amount(30, "ms"), flood.BACKLOGGED: Amount(1, "")}
    return PeersReport(
        host={"cores": 2},
        stores={"sqlite": {"server": "a file", "durability": "full"}},
        settings={"rounds": 2},
        peers=tuple(_row(peer) for peer in peers),
        left_out=(SkippedPeer("rq", "not installed: no such version"),),
        measures=tuple(report.own_measures(peers, played)),
        ratios=tuple(report.ratios(peers, played)),
        fairness=tuple(report.fairness(peers, {"fairlane-sqlite": [RoundResult(quiet)]})),
        checks=(_check(ok=ok),),
        seconds=9.0,
        ok=ok,
    )


def _row(peer: Peer) -> PeerRow:
    return PeerRow(
        name=peer.name,
        store=peer.store,
        tenants=1,
        jobs=2_000,
        versions={"x": "1.2.3", "python": "3"},
        settings="8 threads",
    )


def _check(*, ok: bool) -> Check:
    return Check(
        scenario="speed",
        case="huey-sqlite",
        round=2,
        jobs=500,
        expected=500,
        history=500 - (not ok),
        verdict="all once" if ok else "1 lost, 0 twice, 0 unknown",
        ok=ok,
    )


def test_the_page_shows_figures_ratios_with_goals_floods_and_who_was_left_out() -> None:
    """Every cell comes from the report."""
    shown = "\n".join(page.render(a_report()))
    assert "- sqlite: a file; full" in shown
    assert "| fairlane-sqlite 1.2.3 | 2,000 | 6,000 (5,000–7,000) |" in shown
    assert (
        "| sqlite | huey-sqlite | 1 | 6.0 (5.0–7.0) | at least 6× | yes | 1.0 (1.0–1.0) | at least 10× | no |"
        in shown
    )
    assert "| sqlite | fairlane-sqlite | 4.0 (4.0–4.0) | 30.0 (30.0–30.0) |" in shown
    assert "at most 1.5 × alone, or alone + 20 ms | no | yes |" in shown
    assert "| rq | not installed: no such version |" in shown
    assert "every job ran exactly once" in shown


def test_a_terminal_shows_the_same_cells_in_columns() -> None:
    """Heads and cells begin in the same place."""
    lines = page.text(a_report()).splitlines()
    head = next(line for line in lines if line.startswith("peer  "))
    first = lines[lines.index(head) + 1]
    for title, cell in (("drained", "6,000 ("), ("settings", "8 threads")):
        assert head.index(title) == first.index(cell)


def test_a_bad_check_is_named_and_nothing_is_said_to_have_run_once() -> None:
    """Figures of such a run mean nothing, so the reader must see it."""
    for shown in (page.text(a_report(ok=False)), "\n".join(page.render(a_report(ok=False)))):
        assert "bad: huey-sqlite in round 2: 1 lost, 0 twice, 0 unknown" in shown
        assert "exactly once" not in shown


def test_a_report_comes_back_from_its_json_as_it_was() -> None:
    """The page is made from the file."""
    before = a_report()
    after = msgspec.json.decode(msgspec.json.encode(before), type=PeersReport)
    assert page.render(after) == page.render(before)
