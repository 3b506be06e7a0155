"""The history checker: what it accepts, and which violation it reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.lab.history import LedgerCounts, Reruns, Verdict, ViolationKind, check
from fairlane.lab.ledger import (
    Acknowledged,
    Attempted,
    Due,
    Fired,
    Reading,
    Stale,
    Torn,
)
from fairlane.model.lifecycle.states import Event, State
from tests.lab.history.histories import Recorder, lost_once, work

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "ledger.md"


@pytest.fixture
def run() -> Recorder:
    """A recorder for a run."""
    return Recorder()


def test_a_plain_run_is_kept_and_counted(run: Recorder) -> None:
    """One job, one attempt, one end, one home."""
    run.run("a")
    assert check(run.told(), drained=True) == Verdict(
        LedgerCounts(records=7, jobs=1, acknowledged_jobs=1, started=1, ended=1, settled=1, found=1),
        Reruns(),
        (),
    )


def test_a_second_start_after_a_lost_claim_is_counted_and_no_violation(run: Recorder) -> None:
    """At least once."""
    lost_once(run)
    verdict = check(run.told(), drained=True)
    assert verdict.ok
    assert verdict.reruns == Reruns(jobs=1, lost=1)
    assert verdict.counts.reclaimed == 1


@pytest.mark.parametrize(
    ("event", "reruns", "failures"),
    [
        (Event.RETRY, Reruns(jobs=1, retried=1), 1),
        (Event.SNOOZE, Reruns(jobs=1, snoozed=1), 0),
        (Event.HAND_BACK, Reruns(jobs=1, handed_back=1), 0),
        (None, Reruns(jobs=1, unexplained=1), 0),
    ],
)
def test_every_rerun_is_counted_by_what_ended_the_start_before(
    run: Recorder, event: Event | None, reruns: Reruns, failures: int
) -> None:
    """Without a recorded end it is unknown."""
    run.enqueue("a")
    run.start("a", 10)
    if event:
        run.settle("a", 10, event=event)
    run.start("a", 20, 2)
    run.settle("a", 20, 2)
    run.find("a", attempt=2, failures=failures)
    verdict = check(run.told())
    assert verdict.ok
    assert verdict.reruns == reruns


def test_the_number_of_a_claim_that_went_back_unstarted_is_given_again(run: Recorder) -> None:
    """S68: as often as it goes back; the job counts only what ran."""
    run.enqueue("a")
    run.give_back("a", 10)
    run.give_back("a", 20)
    run.start("a", 30)
    run.settle("a", 30)
    run.find("a", attempt=1)
    verdict = check(run.told(), drained=True)
    assert verdict.ok, verdict
    assert verdict.reruns == Reruns()


def test_a_worker_that_was_paused_may_start_what_was_handed_back_for_it(run: Recorder) -> None:
    """S68: its loop was blocked; its fence is stale by then."""
    run.enqueue("a")
    run.give_back("a", 10)
    run.start("a", 10)
    run.start("a", 20)
    run.settle("a", 20)
    run.find("a", attempt=1)
    assert check(run.told(), drained=True).ok


def test_a_paused_worker_may_start_what_it_lost_and_is_refused(run: Recorder) -> None:
    """Its handler runs without a claim: nothing can prevent that, and nothing comes of it."""
    run.enqueue("a")
    run.start("a", 10)
    run.reclaim("a", 10)
    run.reclaim("a", 20)  # claimed by a worker that was paused before it could start
    run.start("a", 30, 3)
    run.settle("a", 30, 3)
    run.start("a", 20, 2)
    run.write(Stale(job="a", fence=20, at=run.now), Stale(job="a", fence=10, at=run.now))
    run.find("a", attempt=3, crashes=2)
    verdict = check(run.told(), drained=True)
    assert verdict.violations == ()
    assert verdict.counts.stale == 2
    assert verdict.reruns == Reruns(jobs=1, lost=2)


def test_two_handlers_at_once_are_counted(run: Recorder) -> None:
    """The older one has lost its claim."""
    lost_once(run)
    run.leave("a", 10)
    assert check(run.told()).reruns == Reruns(jobs=1, lost=1, overlapped_jobs=1)


def test_a_handler_that_left_as_the_next_one_started_does_not_overlap_it(run: Recorder) -> None:
    """The same microsecond proves nothing, neither for handlers nor for a settlement sent in it."""
    run.enqueue("a")
    run.start("a", 10)
    run.start("a", 20, 2, at=50)
    run.now = 50
    run.leave("a", 10)
    run.now = 50
    run.settle("a", 10, event=Event.SNOOZE)
    run.find("a", State.RUNNING, attempt=2)
    verdict = check(run.told())
    assert verdict.violations == ()
    assert verdict.reruns == Reruns(jobs=1, snoozed=1)


def test_jobs_that_end_without_ever_starting_are_fine(run: Recorder) -> None:
    """Cancelled, condemned, handed back unstarted, expired unseen."""
    run.enqueue("asked")
    run.withdraw("asked")
    run.find("asked", State.CANCELLED, attempt=0)
    run.enqueue("condemned")
    run.withdraw("condemned", State.DEAD)
    run.find("condemned", State.DEAD, attempt=0)
    run.enqueue("expired")
    run.settle("expired", 10, event=Event.HAND_BACK)
    run.find("expired", State.CANCELLED, attempt=1)
    assert check(run.told(), drained=True).ok


def test_a_cancel_or_an_expiry_may_overrule_a_settlement(run: Recorder) -> None:
    """The store answers with the state that it made of it."""
    run.enqueue("asked")
    run.start("asked", 10)
    run.settle("asked", 10, event=Event.SNOOZE, state=State.CANCELLED)
    run.find("asked", State.CANCELLED)
    run.enqueue("late")
    run.start("late", 10)
    run.settle("late", 10, event=Event.RETRY, state=State.DEAD)
    run.find("late", State.DEAD, failures=1)
    assert check(run.told(), drained=True).ok


def test_an_enqueue_of_unknown_outcome_may_or_may_not_be_there(run: Recorder) -> None:
    """Neither is an accusation; an absent one is counted."""
    run.write(Attempted(**work("made")), Attempted(**work("unmade")))
    run.find("made", State.READY, attempt=0)
    verdict = check(run.told())
    assert verdict.ok
    assert verdict.counts.unknown_jobs == 1


def test_a_repeat_is_answered_with_the_first_job(run: Recorder) -> None:
    """It is no second creation."""
    run.run("a", key="fax-7")
    run.write(Acknowledged(**work("a", key="fax-7", created=False)))
    assert check(run.told()).ok


def test_a_slot_that_two_schedulers_fire_makes_one_job(run: Recorder) -> None:
    """The second is answered with the first one's job."""
    run.write(Due(**work("s", schedule="nightly", slot=60)))
    run.write(Fired(**work("s", schedule="nightly", slot=60)))
    run.write(Fired(**work("s", schedule="nightly", slot=60, created=False)))
    run.find("s", State.READY, attempt=0)
    assert check(run.told()).ok


def test_torn_ends_are_counted(run: Recorder) -> None:
    """They prove nothing."""
    run.run("a")
    verdict = check([*run.told(), Torn(size=3), Torn(size=5)])
    assert verdict.ok
    assert verdict.counts.torn == 2


def test_several_readings_add_up(run: Recorder) -> None:
    """One for each part of a campaign."""
    run.run("a")
    run.run("b")
    assert check([*run.records, Reading(hot=0, history=1, dead=0), Reading(hot=0, history=1, dead=0)]).ok


# ── the verdict ──────────────────────────────────────────────────────────────


def test_a_verdict_tells_people_what_is_broken_in_bounded_space(run: Recorder) -> None:
    """A run that lost everything does not fill the screen; the verdict itself has it all."""
    for number in range(25):
        run.enqueue(f"job-{number:02}")
    verdict = check(run.told())
    first, second, *_, last = str(verdict).splitlines()
    assert len(verdict.violations) == 25
    assert first.startswith("broken 25 times: 51 records of 25 jobs, 25 acknowledged, 0 starts")
    assert second == "  lost: job job-00 was acknowledged, and is in no home"
    assert last == "  and 5 more"
    assert str(verdict).count("\n") == 21


def test_the_page_explains_every_kind() -> None:
    """A reader of a violation looks there for what proves it."""
    page = PAGE.read_text(encoding="utf-8")
    assert [kind.value for kind in ViolationKind if f"| `{kind}` |" not in page] == []
