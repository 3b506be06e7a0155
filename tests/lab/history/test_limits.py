"""Limits, rates and outages: where the checker needs the clock, and how careful it is with it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.lab.history import Reruns, Verdict, ViolationKind, check
from fairlane.lab.ledger import Acknowledged, Attempted, Bound, Outage
from fairlane.model.lifecycle.states import Event, State
from tests.lab.history.histories import Recorder, work

RUNNING = Bound(limit=2, queue="mail", tenant="acme")


@pytest.fixture
def run() -> Recorder:
    """A recorder for a run."""
    return Recorder()


def hold(run: Recorder, job: str, start: int, end: int | None, **fields: Any) -> None:
    """Record a job that held its claim from start to end, or without a known end."""
    run.enqueue(job, **fields)
    run.start(job, 10, at=start)
    if end is not None:
        run.now = end
        run.settle(job, 10)
    run.find(job)


def judged(run: Recorder, *bounds: Bound) -> Verdict:
    """Check the run under these limits."""
    return check([*bounds, *run.told()])


# ── held at once ─────────────────────────────────────────────────────────────


def test_a_running_limit_that_is_exceeded_is_refused_with_the_holders(run: Recorder) -> None:
    """Three at once, two allowed."""
    for number, job in enumerate("abc"):
        hold(run, job, 100 + number, 200)
    (violation,) = judged(run, RUNNING).violations
    assert (violation.kind, violation.subject) == (ViolationKind.LIMIT_EXCEEDED, "queue mail, tenant acme")
    assert violation.description == (
        "3 claims of queue mail, tenant acme were held at once, the limit is 2; 1 in all"
    )
    assert [getattr(record, "job", None) for record in violation.records] == ["a", "b", "c", None]


def test_the_first_excess_is_the_proof_and_all_are_counted(run: Recorder) -> None:
    """The proof stays small, whatever happened after."""
    for number, job in enumerate("abcde"):
        hold(run, job, 100 + number, 200)
    (violation,) = judged(run, RUNNING).violations
    assert violation.description.endswith("; 3 in all")
    assert len(violation.records) == 4


def test_a_full_limit_is_no_excess(run: Recorder) -> None:
    """A claim made in the same instant in which another one ended is not held at the same time."""
    hold(run, "a", 100, 200)
    hold(run, "b", 100, 300)
    hold(run, "c", 200, 300)
    hold(run, "d", 300, 400)
    assert judged(run, RUNNING).ok


@pytest.mark.parametrize("other", [{"queue": "bulk"}, {"tenant": "globex"}])
def test_a_limit_counts_only_its_own_queue_and_tenant(run: Recorder, other: dict[str, str]) -> None:
    """Limits are per queue and tenant."""
    hold(run, "a", 100, 200)
    hold(run, "b", 100, 200)
    hold(run, "c", 100, 200, **other)
    assert judged(run, RUNNING).ok
    assert judged(run, Bound(limit=2, task="send")).kinds == {ViolationKind.LIMIT_EXCEEDED}


def test_a_gate_counts_over_all_queues_and_leaves_out_jobs_without_it(run: Recorder) -> None:
    """A gate is one for all workers."""
    hold(run, "a", 100, 200, gate="browser")
    hold(run, "b", 150, 250, gate="other")
    hold(run, "c", 150, 250)
    assert judged(run, Bound(limit=1, gate="browser"), Bound(limit=1, gate="browser", queue="mail")).ok
    hold(run, "d", 199, 250, gate="browser", queue="bulk")
    assert (
        judged(run, Bound(limit=1, gate="browser"), Bound(limit=1, gate="browser", queue="mail"))
        .violations[0]
        .subject
        == "gate browser"
    )


def test_a_job_is_counted_once_by_each_bound(run: Recorder) -> None:
    """A job without a gate is not of a queue's gate, and so not twice of the queue."""
    hold(run, "a", 100, 200)
    assert judged(run, Bound(limit=1, queue="mail"), Bound(limit=1, queue="mail", gate="browser")).ok


def test_a_lost_claim_counts_until_it_is_reclaimed(run: Recorder) -> None:
    """Its worker is dead; the store does not know that yet."""
    run.enqueue("a")
    run.start("a", 10, at=100)
    run.now = 300
    run.reclaim("a", 10)
    run.find("a", State.READY, crashes=1)
    hold(run, "b", 200, 400)
    assert judged(run, Bound(limit=1, queue="mail")).kinds == {ViolationKind.LIMIT_EXCEEDED}


def test_a_claim_of_unknown_end_is_left_out(run: Recorder) -> None:
    """Its end is unknown; the verdict counts such claims."""
    hold(run, "a", 100, None)
    hold(run, "b", 110, 200)
    verdict = judged(run, Bound(limit=1, queue="mail"))
    assert verdict.ok
    assert verdict.counts.unended == 1


def test_a_claim_that_is_found_running_was_held_until_the_end(run: Recorder) -> None:
    """If the row is of the same attempt."""
    for attempt, ok in ((2, True), (1, False)):
        one = Recorder()
        one.enqueue("a")
        one.start("a", 10, at=100)
        one.find("a", State.RUNNING, attempt=attempt)
        hold(one, "b", 200, 300)
        assert judged(one, Bound(limit=1, queue="mail")).ok is ok


def test_a_handler_that_started_after_its_claim_was_reclaimed_holds_nothing(run: Recorder) -> None:
    """Its worker was paused in between."""
    run.enqueue("a")
    run.now = 100
    run.reclaim("a", 10)
    run.start("a", 10, at=250)
    run.find("a", State.READY, crashes=1)
    hold(run, "b", 200, 300)
    assert judged(run, Bound(limit=1, queue="mail")).ok


def test_a_claim_that_settled_when_it_was_stale_counts_for_no_limit(run: Recorder) -> None:
    """One fault, one name."""
    run.enqueue("a")
    run.start("a", 10, at=100)
    run.start("a", 20, 2, at=110)
    run.now = 120
    run.settle("a", 10, event=Event.SNOOZE)
    run.settle("a", 20, 2)
    run.find("a", attempt=2)
    assert judged(run, Bound(limit=1, queue="mail")).kinds == {ViolationKind.STALE_ACCEPTED}


def test_a_lowered_limit_interrupts_nothing_but_stops_new_starts(run: Recorder) -> None:
    """From 3 to 1 at 150."""
    bounds = [
        Bound(limit=3, queue="mail", until=150),
        Bound(limit=1, queue="mail", from_at=150, slack=10),
    ]
    for number, job in enumerate("abc"):
        hold(run, job, 100 + number, 300)
    hold(run, "d", 155, 160)  # may have been claimed before 150
    assert judged(run, *bounds).ok
    assert judged(run, Bound(limit=1, queue="mail", from_at=103, until=155)).ok
    hold(run, "e", 161, 170)
    assert judged(run, *bounds).kinds == {ViolationKind.LIMIT_EXCEEDED}


def test_a_job_that_nobody_enqueued_is_under_no_limit(run: Recorder) -> None:
    """Its queue and tenant are unknown."""
    hold(run, "a", 100, 200)
    run.start("x", 10, at=120)
    assert judged(run, Bound(limit=1, queue="mail")).kinds == {ViolationKind.UNEXPECTED}


# ── rates ────────────────────────────────────────────────────────────────────


def paced(run: Recorder, *starts: int) -> Recorder:
    """Start one job at each of these times."""
    for number, at in enumerate(starts):
        hold(run, f"job-{number}", at, None)
    return run


@pytest.mark.parametrize(
    ("burst", "slack", "starts", "ok"),
    [
        (1, 0, (0, 10, 20, 30), True),
        (1, 0, (0, 9), False),
        (1, 0, (0, 100, 109), False),
        (2, 0, (0, 0, 10, 20), True),
        (2, 0, (0, 0, 9), False),
        (3, 0, (0, 0, 0, 10), True),
        (3, 0, (0, 0, 0, 9), False),
        (2, 0, (0, 0, 30, 30), True),
        (1, 4, (4, 10, 24, 30), True),
        (1, 4, (4, 9), False),
    ],
)
def test_starts_are_held_to_the_rate_with_its_burst_and_slack(
    run: Recorder, burst: int, slack: int, starts: tuple[int, ...], ok: bool
) -> None:
    """One in ten microseconds; the slack is what a start may be late."""
    bound = Bound(limit=3, per=30, burst=burst, slack=slack, queue="mail", from_at=-slack)
    verdict = judged(paced(run, *starts), bound)
    assert verdict.kinds == (set() if ok else {ViolationKind.RATE_EXCEEDED})


def test_a_rate_that_is_exceeded_is_told_with_the_first_and_the_last_start(run: Recorder) -> None:
    """And how often in all."""
    (violation,) = judged(paced(run, 0, 50, 55, 61, 99), Bound(limit=1, per=10, task="send")).violations
    assert violation.description == (
        "2 starts of task send in 5 us, the rate is 1 in 10 us with a burst of 1; 2 in all"
    )
    assert [getattr(record, "at", None) for record in violation.records] == [50, 55, None]


def test_a_rate_counts_only_starts_that_were_claimed_under_it(run: Recorder) -> None:
    """Those before it began, or within the slack of that, may have had another."""
    bound = Bound(limit=1, per=100, queue="mail", from_at=50, until=200, slack=10)
    assert judged(paced(run, 0, 1, 58, 59, 60, 200, 201), bound).ok


def test_an_interval_may_be_rounded_either_way(run: Recorder) -> None:
    """Three in ten is one in 3.33: no store can do that in whole microseconds."""
    assert judged(paced(run, 0, 3, 6, 9), Bound(limit=3, per=10, queue="mail")).ok


# ── outages ──────────────────────────────────────────────────────────────────


def test_an_outage_may_lose_a_claim_with_its_number_but_not_its_fence(run: Recorder) -> None:
    """Claims need not be durable; the fence comes from the clock."""
    run.enqueue("a")
    run.start("a", 10, 1, at=100)
    run.start("a", 20, 2, at=110)
    run.start("a", 30, 1, at=200)
    run.now = 210
    run.settle("a", 30, 1)
    run.find("a", attempt=1)
    outage = Outage(at=120, until=150)
    verdict = check([outage, *run.told()])
    assert verdict.violations == ()
    assert verdict.reruns == Reruns(jobs=1, unexplained=2)
    assert check([Outage(at=90, until=99), *run.told()]).kinds == {
        ViolationKind.FENCE_REUSED,
        ViolationKind.MISCOUNTED,
    }


def test_an_outage_excuses_only_a_number_given_before_it_and_again_after(run: Recorder) -> None:
    """Not one that was given twice before the store died, however long the attempts went on."""
    run.enqueue("a")
    run.start("a", 10, at=100)
    run.start("a", 20, at=110)
    run.now = 190
    run.leave("a", 10)
    run.leave("a", 20)
    run.find("a", State.RUNNING)
    assert check([Outage(at=120, until=150), *run.told()]).kinds == {ViolationKind.ATTEMPT_REUSED}
    assert check([Outage(at=110, until=150), *run.told()]).ok
    assert check([Outage(at=90, until=100), *run.told()]).ok


@pytest.mark.parametrize(("at", "ok"), [(89, False), (90, True), (120, True), (121, False)])
def test_the_stated_durability_reaches_so_far_back_and_until_the_store_served_again(
    run: Recorder, at: int, ok: bool
) -> None:
    """Of several outages any one excuses."""
    run.write(Acknowledged(**work("a", at=at)))
    outages = [Outage(at=10, until=20, loses=10), Outage(at=100, until=120, loses=10)]
    assert check([*outages, *run.told()]).ok is ok


def test_what_was_accepted_within_the_stated_durability_may_be_gone(run: Recorder) -> None:
    """An acknowledgement, a start, a settlement, a reclaim and a cancel, each too short before the end."""
    run.write(Acknowledged(**work("gone", at=95)))
    run.start("gone", 10, at=96)
    run.enqueue("again")
    run.start("again", 10, at=80)
    run.now = 94
    run.settle("again", 10)
    run.start("again", 20, 2, at=150)
    run.now = 155
    run.settle("again", 20, 2)
    run.find("again", attempt=2)
    run.write(Acknowledged(**work("back")))
    run.start("back", 10, at=80)
    run.now = 95
    run.reclaim("back", 10)
    run.withdraw("back")
    run.now = 160
    run.settle("back", 10)
    run.find("back")
    told = run.told()
    verdict = check([Outage(at=100, until=120, loses=10), *told])
    assert verdict.violations == ()
    assert verdict.counts.forgiven == 4
    assert check([Outage(at=100, until=120), *told]).kinds >= {
        ViolationKind.LOST,
        ViolationKind.RAN_AGAIN,
        ViolationKind.STALE_ACCEPTED,
    }


def test_what_was_accepted_before_that_must_be_there(run: Recorder) -> None:
    """Durability is stated, and is held to."""
    run.write(Acknowledged(**work("a", at=89)))
    run.start("b", 10, at=89)
    run.write(Attempted(**work("b", at=89)))
    verdict = check([Outage(at=100, until=120, loses=10), *run.told()])
    assert [(one.kind, one.subject) for one in verdict.violations] == [
        (ViolationKind.LOST, "a"),
        (ViolationKind.LOST, "b"),
    ]
