"""Breakers and budgets: what proves that too much passed or was spent, and what proves nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.lab.history import Verdict, ViolationKind, check
from fairlane.lab.ledger import Attempted, Ceiling, Counted, Opened, Outage, Paid, Permitted, Released
from fairlane.model.lifecycle.states import Event, State
from tests.lab.history.histories import Recorder, work

OPENED = Opened(breaker="mail", at=100, until=200)
BUDGET = Ceiling(budget="ai", ceiling=10, estimate=4)


@pytest.fixture
def run() -> Recorder:
    """A recorder for a run."""
    return Recorder()


# ── breakers ─────────────────────────────────────────────────────────────────


def let_pass(
    run: Recorder, job: str, at: int, until: int | None, *, passed: bool | None = True, **of: Any
) -> None:
    """Record a job that passed the breaker and told how it went, or never told."""
    run.write(Attempted(**work(job)))
    run.write(Permitted(job=job, fence=10, breaker="mail", at=at, **of))
    if until is not None:
        run.write(Released(job=job, fence=10, breaker="mail", at=until, passed=passed, **of))
    run.find(job, State.RUNNING)


def judged(run: Recorder, *openings: Opened) -> Verdict:
    """Check the run after these openings."""
    return check([*(openings or (OPENED,)), *run.told()])


def test_who_passes_an_open_breaker_is_named(run: Recorder) -> None:
    """Nobody passes before its time, and then one."""
    let_pass(run, "a", 199, 250)
    (violation,) = judged(run).violations
    assert (violation.kind, violation.subject) == (ViolationKind.PASSED_OPEN, "mail")
    assert violation.description == "1 passed breaker mail while it was open"
    assert judged(run, Opened(breaker="mail", at=100, until=199)).ok


def test_a_handler_behind_an_open_breaker_must_not_start(run: Recorder) -> None:
    """Unless it may have been claimed before it opened."""
    run.enqueue("a", breaker="mail")
    run.start("a", 10, at=150)
    run.find("a", State.RUNNING)
    assert judged(run).kinds == {ViolationKind.PASSED_OPEN}
    assert judged(run, Opened(breaker="mail", at=100, until=200, slack=60)).ok
    assert judged(run, Opened(breaker="mail", tenant="globex", at=100, until=200)).ok
    assert judged(run, Opened(breaker="mail", tenant="acme", at=100, until=200)).kinds == {
        ViolationKind.PASSED_OPEN
    }


def test_the_probe_is_alone(run: Recorder) -> None:
    """A second permit while the first is held is one too many."""
    let_pass(run, "a", 200, 300)
    let_pass(run, "b", 299, 400)
    (violation,) = judged(run).violations
    assert (violation.kind, violation.subject) == (ViolationKind.PROBE_DOUBLED, "mail")
    assert violation.description == "2 had a permit of breaker mail at once, after 0 successes 1 may"
    assert [getattr(one, "job", None) for one in violation.records] == [None, "a", "b"]


def test_two_pass_after_the_first_has_succeeded_and_not_three(run: Recorder) -> None:
    """The ramp: 1, 2, 4, and so on."""
    let_pass(run, "a", 200, 300)
    let_pass(run, "b", 300, 500)
    let_pass(run, "c", 301, 500)
    assert judged(run).ok
    let_pass(run, "d", 302, 500)
    (violation,) = judged(run).violations
    assert violation.description == "3 had a permit of breaker mail at once, after 1 successes 2 may"
    assert judged(run, Opened(breaker="mail", at=100, until=200, ramp=1)).ok  # then it is closed


def test_a_probe_that_says_nothing_or_is_lost_is_followed_by_another(run: Recorder) -> None:
    """A permit ends with its claim."""
    let_pass(run, "a", 200, 300, passed=None)
    let_pass(run, "b", 300, None)
    run.now = 350
    run.reclaim("b", 10)
    let_pass(run, "c", 350, 400)
    assert judged(run).ok


def test_a_permit_without_a_known_end_proves_nothing(run: Recorder) -> None:
    """Its worker may have been killed, and its claim lost, while nobody wrote."""
    let_pass(run, "a", 200, None)
    let_pass(run, "b", 201, 400)
    assert judged(run).ok


def test_who_fails_ends_the_permits_of_others(run: Recorder) -> None:
    """The breaker is open again, and after a while another first one passes beside those of before."""
    let_pass(run, "a", 200, 210)
    let_pass(run, "b", 220, 900)
    let_pass(run, "c", 221, 230, passed=False)
    let_pass(run, "d", 400, 500)
    assert judged(run).ok
    let_pass(run, "e", 401, 500)
    let_pass(run, "f", 402, 500)
    assert judged(run).kinds == {ViolationKind.PROBE_DOUBLED}


def test_a_job_that_enters_twice_has_one_permit(run: Recorder) -> None:
    """A job that has a permit keeps it."""
    let_pass(run, "a", 200, 300)
    run.write(Permitted(job="a", fence=10, breaker="mail", at=250))
    assert judged(run).ok


def test_each_opening_begins_with_one(run: Recorder) -> None:
    """Successes before it count for nothing, and who passed then is nobody's neighbour."""
    let_pass(run, "a", 200, 300)
    let_pass(run, "b", 310, 900)
    let_pass(run, "c", 500, 600)
    again = Opened(breaker="mail", at=400, until=500)
    assert judged(run, OPENED, again).ok
    let_pass(run, "d", 501, 600)
    assert judged(run, OPENED, again).kinds == {ViolationKind.PROBE_DOUBLED}


def test_the_breaker_of_a_tenant_is_its_own(run: Recorder) -> None:
    """With `per = "tenant"` each has one probe."""
    let_pass(run, "a", 200, 300, tenant="acme")
    let_pass(run, "b", 201, 300, tenant="globex")
    both = [Opened(breaker="mail", tenant=name, at=100, until=200) for name in ("acme", "globex")]
    assert judged(run, *both).ok
    let_pass(run, "c", 202, 300, tenant="globex")
    (violation,) = judged(run, *both).violations
    assert violation.description.startswith("2 had a permit of breaker mail of globex at once")


def test_an_outage_may_take_a_permit_with_its_claim(run: Recorder) -> None:
    """Claims need not be durable (S36)."""
    let_pass(run, "a", 200, 300)
    let_pass(run, "b", 290, 400)
    assert check([OPENED, Outage(at=250, until=260), *run.told()]).ok


# ── budgets ──────────────────────────────────────────────────────────────────


def spend(run: Recorder, job: str, start: int, end: int | None, paid: int = 0, **fields: Any) -> None:
    """Record a job that ran under the budget and reported what it spent, or still runs."""
    run.enqueue(job, budget="ai", **fields)
    run.start(job, 10, at=start)
    run.write(Paid(job=job, fence=10, total=paid, at=start))
    if end is not None:
        run.now = end
        run.settle(job, 10, spent=paid)
    run.find(job, State.SUCCEEDED if end is not None else State.RUNNING)


def bounded(run: Recorder, *ceilings: Ceiling) -> Verdict:
    """Check the run under these ceilings."""
    return check([*(ceilings or (BUDGET,)), *run.told()])


def test_reservations_beyond_the_ceiling_are_found(run: Recorder) -> None:
    """Three times four is more than ten."""
    for number, job in enumerate("abc"):
        spend(run, job, 100 + number, 200)
    (violation,) = bounded(run).violations
    assert (violation.kind, violation.subject) == (ViolationKind.CEILING_EXCEEDED, "ai")
    assert violation.description == (
        "12 of budget ai was reserved and spent when job c ran, the ceiling is 10"
    )
    assert [getattr(one, "job", None) for one in violation.records] == ["a", "b", "c", None]


def test_what_is_given_back_makes_room_and_what_is_spent_does_not(run: Recorder) -> None:
    """A job that has ended counts what it spent, but no more than it had surely reserved."""
    spend(run, "a", 100, 150, paid=2)
    spend(run, "b", 150, None)
    spend(run, "c", 151, 200, paid=90)
    assert bounded(run).ok
    spend(run, "d", 200, 250)
    assert bounded(run).kinds == {ViolationKind.CEILING_EXCEEDED}


def test_a_ceiling_holds_for_its_time_and_its_tenant(run: Recorder) -> None:
    """In another period, or for another tenant, there is room of its own."""
    spend(run, "a", 100, 900)
    spend(run, "b", 110, 900)
    spend(run, "c", 120, 900, tenant="globex")
    assert bounded(run, Ceiling(budget="ai", ceiling=10, estimate=4, from_at=101)).ok
    assert bounded(run, Ceiling(budget="ai", ceiling=10, estimate=4, from_at=90, slack=11)).ok
    assert bounded(run, Ceiling(budget="ai", ceiling=10, estimate=4, until=120)).ok
    assert bounded(run, Ceiling(budget="ai", ceiling=10, estimate=4, tenant="acme")).ok
    (violation,) = bounded(run, Ceiling(budget="ai", ceiling=7, estimate=4, tenant="acme")).violations
    assert "of budget ai of acme was reserved" in violation.description


def counted(run: Recorder, spent: int, task: str = "send") -> Verdict:
    """Check the run after a reading of what was spent."""
    row = Counted(budget="ai", tenant="acme", task=task, spent=spent)
    return check([BUDGET, row, *run.told()])


def test_spend_is_counted_once(run: Recorder) -> None:
    """Neither more than was spent, nor less than was accepted."""
    spend(run, "a", 100, 200, paid=3)
    assert counted(run, 3).ok
    (violation,) = counted(run, 6).violations
    assert (violation.kind, violation.subject) == (ViolationKind.SPEND_DOUBLED, "ai")
    assert violation.description == ("6 of budget ai is counted for send of acme, but it has spent 3 at most")
    (violation,) = counted(run, 2).violations
    assert (violation.kind, violation.subject) == (ViolationKind.SPEND_LOST, "ai")
    assert violation.description.endswith("but 3 was reported and accepted")


def test_spend_of_a_task_is_not_counted_for_another(run: Recorder) -> None:
    """What is missing here is too much there."""
    spend(run, "a", 100, 200, paid=3)
    assert counted(run, 3, task="else").kinds == {ViolationKind.SPEND_DOUBLED, ViolationKind.SPEND_LOST}


def test_a_claim_that_others_ended_may_count_its_estimate(run: Recorder) -> None:
    """Its handler may have spent that; it may also have spent more, or nothing (S113)."""
    run.enqueue("a", budget="ai")
    run.start("a", 10)
    run.reclaim("a", 10)
    run.start("a", 20, 2)
    run.settle("a", 20, 2, Event.FAIL)
    run.find("a", State.DEAD, attempt=2, failures=1, crashes=1)
    assert counted(run, 0).ok
    assert counted(run, 8).ok  # nobody has written what the second one reported
    assert counted(run, 9).kinds == {ViolationKind.SPEND_DOUBLED}
    run.write(Paid(job="a", fence=10, total=7, at=run.now))
    assert counted(run, 11).ok


def test_a_claim_that_nobody_has_written_may_count_its_estimate(run: Recorder) -> None:
    """The duty that took it back was killed; the job counts its attempt."""
    run.enqueue("a", budget="ai")
    run.find("a", State.READY, attempt=1, crashes=1)
    assert counted(run, 4).ok
    assert counted(run, 5).kinds == {ViolationKind.SPEND_DOUBLED}


def test_without_a_reading_of_a_budget_nothing_is_said_of_its_spend(run: Recorder) -> None:
    """A ledger of before has none."""
    spend(run, "a", 100, 200, paid=3)
    assert bounded(run).ok
