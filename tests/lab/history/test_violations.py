"""Broken histories: each must be reported, and with the right kind."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlane.lab.history import Reruns, ViolationKind, check
from fairlane.lab.ledger import Acknowledged, Attempted, Due, Fired, Reading, Record, Stale
from fairlane.model.lifecycle.states import Event, Home, State
from tests.lab.history.histories import Recorder, lost_once, work


@pytest.fixture
def run() -> Recorder:
    """A recorder for a run."""
    return Recorder()


def broken(history: list[Record], kind: ViolationKind, subject: str = "a", *, drained: bool = False) -> str:
    """Expect exactly one violation; return its description."""
    verdict = check(history, drained=drained)
    assert [(one.kind, one.subject) for one in verdict.violations] == [(kind, subject)]
    assert not verdict.ok
    assert set(verdict.violations[0].records) <= set(history)
    return verdict.violations[0].description


def test_an_acknowledged_job_in_no_home_is_lost(run: Recorder) -> None:
    """The first promise."""
    run.enqueue("a")
    assert broken(run.told(), ViolationKind.LOST) == "job a was acknowledged, and is in no home"


def test_a_job_that_ran_and_is_in_no_home_is_lost_though_nobody_heard_of_it(run: Recorder) -> None:
    """It was accepted, or no handler would have had it."""
    run.write(Attempted(**work("a")))
    run.start("a", 10)
    assert (
        broken(run.told(), ViolationKind.LOST)
        == "job a ran, though nobody knew it was accepted, and is in no home"
    )


def test_a_job_of_a_repeat_must_be_there_too(run: Recorder) -> None:
    """The store confirmed the job to the second caller."""
    run.write(Attempted(**work("a")), Acknowledged(**work("a", created=False)))
    broken(run.told(), ViolationKind.LOST)


@pytest.mark.parametrize("place", [Home.HOT, Home.HISTORY])
def test_a_job_in_two_homes_or_twice_in_one_is_doubled(run: Recorder, place: Home) -> None:
    """An append-only home can hold it twice."""
    run.run("a")
    run.find("a", State.SUCCEEDED if place is Home.HISTORY else State.RUNNING)
    assert broken(run.told(), ViolationKind.DOUBLED_HOME, drained=True).endswith(f"in history and {place}")


@pytest.mark.parametrize("sign", ["found", "started", "repeat"])
def test_a_job_that_nobody_enqueued_is_unexpected(run: Recorder, sign: str) -> None:
    """Whatever shows it."""
    if sign == "found":
        run.find("a", State.READY, attempt=0)
    elif sign == "started":
        run.start("a", 10)
    else:
        run.write(Acknowledged(**work("a", created=False)))
    broken(run.told(), ViolationKind.UNEXPECTED)


def test_a_refusal_of_a_job_that_never_was_proves_nothing(run: Recorder) -> None:
    """Anybody may ask with any id."""
    run.write(Stale(job="a", fence=1, at=0))
    assert check(run.told()).ok


def test_a_job_that_was_made_twice_is_refused(run: Recorder) -> None:
    """The repeat should have returned the first job."""
    run.run("a")
    run.write(Acknowledged(**work("a")))
    assert broken(run.told(), ViolationKind.CREATED_TWICE) == "job a was newly made 2 times"


def test_two_jobs_for_one_idempotency_key_are_refused(run: Recorder) -> None:
    """Also if the first reply was lost: check-then-insert."""
    run.write(Attempted(**work("a", key="fax-7")))
    run.find("a", State.READY, attempt=0)
    run.run("b", key="fax-7")
    broken(run.told(), ViolationKind.KEY_DOUBLED, "acme/fax-7")


def test_the_same_key_of_two_tenants_makes_two_jobs(run: Recorder) -> None:
    """Keys are the tenant's own."""
    run.run("a", key="fax-7")
    run.run("b", key="fax-7", tenant="globex")
    assert check(run.told()).ok


def test_half_a_batch_is_refused(run: Recorder) -> None:
    """All become visible or none does."""
    run.write(Attempted(**work("a", batch="b1")), Attempted(**work("b", batch="b1")))
    run.find("a", State.READY, attempt=0)
    assert broken(run.told(), ViolationKind.TORN_BATCH, "b1") == "of batch b1 1 jobs are there and 1 are not"


@pytest.mark.parametrize("where", ["started", "found", "repeat"])
def test_a_job_of_two_tenants_is_refused(run: Recorder, where: str) -> None:
    """It was read or answered across tenants."""
    run.enqueue("a")
    run.start("a", 10, tenant="globex" if where == "started" else "acme")
    if where == "repeat":
        run.write(Acknowledged(**work("a", tenant="globex", created=False)))
    run.find("a", State.RUNNING, tenant="globex" if where == "found" else None)
    assert broken(run.told(), ViolationKind.TENANT_CROSSED) == "job a belongs to acme and to globex"


def test_two_jobs_for_one_slot_are_refused(run: Recorder) -> None:
    """However many schedulers there are."""
    for job in ("a", "b"):
        run.write(Fired(**work(job, schedule="nightly", slot=60)))
        run.find(job, State.READY, attempt=0)
    broken(run.told(), ViolationKind.SLOT_DOUBLED, "acme/nightly@60")


def test_a_slot_without_a_job_is_missed(run: Recorder) -> None:
    """The harness recorded that it was due."""
    run.write(Due(**work("s", schedule="nightly", slot=60)))
    broken(run.told(), ViolationKind.SLOT_MISSED, "acme/nightly@60")


def test_one_fence_for_two_starts_is_refused(run: Recorder) -> None:
    """Two workers believe that they hold the job."""
    run.run("a")
    run.start("a", 10, worker="w2")
    broken(run.told(), ViolationKind.FENCE_REUSED)


def test_one_fence_for_two_attempts_is_refused(run: Recorder) -> None:
    """The fence was the number of a lost claim."""
    run.enqueue("a")
    run.start("a", 10)
    run.settle("a", 10, 2)
    run.find("a", attempt=2)
    broken(run.told(), ViolationKind.FENCE_REUSED)


def test_a_fence_that_did_not_grow_is_refused(run: Recorder) -> None:
    """One fault is reported once, although every rule orders claims by fence."""
    run.enqueue("a")
    run.start("a", 20)
    run.settle("a", 20, event=Event.RETRY)
    run.start("a", 15, 2)
    run.settle("a", 15, 2)
    run.find("a", attempt=2, failures=1)
    assert broken(run.told(), ViolationKind.FENCE_REUSED) == (
        "job a has fence 15 for attempt 2 and fence 20 for attempt 1"
    )


def test_an_attempt_number_given_twice_is_refused(run: Recorder) -> None:
    """It rises at every claim."""
    run.enqueue("a")
    run.start("a", 10)
    run.reclaim("a", 10)
    run.start("a", 20)
    run.find("a", State.RUNNING)
    broken(run.told(), ViolationKind.ATTEMPT_REUSED)


def test_a_claim_reclaimed_after_its_successor_started_was_live_beside_it(run: Recorder) -> None:
    """It was still there to be taken."""
    run.enqueue("a")
    run.start("a", 10)
    run.start("a", 20, 2)
    run.reclaim("a", 10)
    run.find("a", State.RUNNING, attempt=2)
    broken(run.told(), ViolationKind.TWO_LIVE_CLAIMS)


def test_a_settlement_under_a_reclaimed_fence_is_refused(run: Recorder) -> None:
    """Whichever came first, the other could not be; no clock is needed."""
    lost_once(run)
    run.now = 0
    run.settle("a", 10, event=Event.RETRY)
    assert broken(run.told(), ViolationKind.STALE_ACCEPTED).endswith(
        "was accepted although it had been reclaimed"
    )


def test_a_settlement_sent_after_a_later_claim_started_is_refused(run: Recorder) -> None:
    """No reclaim is recorded, but there is a newer fence."""
    run.enqueue("a")
    run.start("a", 10)
    run.start("a", 20, 2)
    run.settle("a", 10, event=Event.SNOOZE)
    run.find("a", State.RUNNING, attempt=2)
    assert broken(run.told(), ViolationKind.STALE_ACCEPTED).endswith("although a later claim had started")


def test_a_stale_success_is_not_called_a_second_end_as_well(run: Recorder) -> None:
    """One fault, one name."""
    lost_once(run)
    run.settle("a", 10)
    broken(run.told(), ViolationKind.STALE_ACCEPTED)


def test_two_settlements_of_one_attempt_are_refused(run: Recorder) -> None:
    """The second should have been stale."""
    run.run("a")
    run.settle("a", 10)
    assert broken(run.told(), ViolationKind.SETTLED_TWICE) == "fence 10 of job a was ended 2 times"


def test_a_claim_reclaimed_twice_is_refused(run: Recorder) -> None:
    """Its counters would be put right twice."""
    lost_once(run)
    told = run.told()
    broken(
        [*told, next(one for one in told if getattr(one, "state", None) is State.READY)],
        ViolationKind.SETTLED_TWICE,
    )


def test_a_settlement_after_the_end_of_a_job_is_refused(run: Recorder) -> None:
    """Nothing leads out of a final state."""
    run.enqueue("a")
    run.start("a", 10)
    run.settle("a", 10)
    run.settle("a", 20, 2, event=Event.FAIL)
    run.find("a", attempt=2)
    broken(run.told(), ViolationKind.SETTLED_TWICE)


def test_a_waiting_job_is_not_ended_that_is_over(run: Recorder) -> None:
    """A cancel of a finished job answers so and ends nothing."""
    run.run("a")
    run.withdraw("a")
    broken(run.told(), ViolationKind.SETTLED_TWICE)


def test_a_start_after_the_end_of_a_job_is_refused(run: Recorder) -> None:
    """By fence: the clock may say anything."""
    run.enqueue("a")
    run.start("a", 20, 2, at=0)
    run.start("a", 10)
    run.settle("a", 10, state=State.DEAD, event=Event.FAIL)
    run.find("a", State.DEAD, attempt=2, failures=1)
    told = [replace(one, at=9) if getattr(one, "fence", 0) == 20 else one for one in run.told()]
    assert (
        broken(told, ViolationKind.RAN_AGAIN)
        == "job a started under fence 20 after it was dead under an earlier one"
    )


def test_a_job_that_was_reclaimed_for_good_does_not_run_again(run: Recorder) -> None:
    """A lost claim may be the end of a job."""
    run.enqueue("a")
    run.start("a", 10)
    run.reclaim("a", 10, State.DEAD)
    run.start("a", 20, 2)
    run.find("a", State.DEAD, attempt=2)
    broken(run.told(), ViolationKind.RAN_AGAIN)
    assert check(run.told()).reruns == Reruns(jobs=1)  # accused, so not also excused by a reason


def test_an_at_most_once_job_does_not_run_again_after_a_lost_claim(run: Recorder) -> None:
    """It should be dead."""
    lost_once(run, once=True)
    broken(run.told(), ViolationKind.RAN_AGAIN)


def test_an_at_most_once_job_may_be_retried(run: Recorder) -> None:
    """Only a lost attempt is final; a failed one is known to have ended."""
    run.enqueue("a", once=True)
    run.start("a", 10)
    run.settle("a", 10, event=Event.RETRY)
    run.start("a", 20, 2)
    run.settle("a", 20, 2)
    run.find("a", attempt=2, failures=1)
    assert check(run.told()).ok


def test_a_success_without_a_start_is_refused(run: Recorder) -> None:
    """Whether a worker claims it or only the store."""
    run.enqueue("a")
    run.settle("a", 10)
    run.find("a")
    broken(run.told(), ViolationKind.NEVER_RAN)


def test_a_success_at_the_end_without_any_start_is_refused(run: Recorder) -> None:
    """No worker recorded anything."""
    run.enqueue("a")
    run.find("a")
    assert broken(run.told(), ViolationKind.NEVER_RAN) == "job a succeeded, but no handler ever started"


def test_a_success_of_a_handler_that_raised_is_refused(run: Recorder) -> None:
    """The outcome was turned round on the way."""
    run.enqueue("a")
    run.start("a", 10)
    run.leave("a", 10, outcome="raised")
    run.settle("a", 10)
    run.find("a")
    broken(run.told(), ViolationKind.FALSE_SUCCESS)


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (Event.RETRY, State.READY),
        (Event.SUCCEED, State.DELAYED),
        (Event.SNOOZE, State.READY),
        (Event.DUE, State.READY),
    ],
)
def test_a_settlement_that_leads_where_no_transition_does_is_refused(
    run: Recorder, event: Event, state: State
) -> None:
    """Neither does a cancel or an expiry."""
    run.enqueue("a")
    run.start("a", 10)
    run.settle("a", 10, event=event, state=state)
    run.find("a", state, failures=int(event is Event.RETRY))
    assert broken(run.told(), ViolationKind.ILLEGAL_MOVE) == f"{event} of job a under fence 10 led to {state}"


def test_a_lost_claim_does_not_delay_a_job(run: Recorder) -> None:
    """It goes to ready, dead or cancelled."""
    run.enqueue("a")
    run.reclaim("a", 10, State.DELAYED)
    run.find("a", State.DELAYED, crashes=1)
    broken(run.told(), ViolationKind.ILLEGAL_MOVE)


def test_a_waiting_job_does_not_succeed(run: Recorder) -> None:
    """Only an attempt can."""
    run.enqueue("a")
    run.withdraw("a", State.READY)
    run.find("a", State.READY, attempt=0)
    broken(run.told(), ViolationKind.ILLEGAL_MOVE)


@pytest.mark.parametrize(
    ("place", "state"),
    [
        (Home.HOT, State.SUCCEEDED),
        (Home.HISTORY, State.DEAD),
        (Home.DEAD, State.CANCELLED),
        (Home.HISTORY, State.READY),
    ],
)
def test_a_state_in_another_states_home_is_refused(run: Recorder, place: Home, state: State) -> None:
    """Each state has one home."""
    run.enqueue("a")
    run.find("a", state, attempt=0, home=place)
    broken(run.told(), ViolationKind.WRONG_HOME)


def test_a_row_that_contradicts_its_accepted_end_is_refused(run: Recorder) -> None:
    """A succeeded job is not a dead letter."""
    run.enqueue("a")
    run.start("a", 10)
    run.settle("a", 10)
    run.find("a", State.DEAD)
    assert broken(run.told(), ViolationKind.WRONG_HOME) == "job a is dead, but was accepted as succeeded"


def test_a_cancel_that_did_not_last_is_refused(run: Recorder) -> None:
    """The store had answered `cancelled`."""
    run.enqueue("a")
    run.withdraw("a")
    run.find("a", State.READY, attempt=0)
    broken(run.told(), ViolationKind.WRONG_HOME)


def test_a_success_that_no_attempt_can_have_had_is_refused(run: Recorder) -> None:
    """All that started ended otherwise."""
    run.enqueue("a")
    run.start("a", 10)
    run.settle("a", 10, event=Event.RETRY)
    run.find("a", failures=1, attempt=2)
    broken(run.told(), ViolationKind.WRONG_HOME)


def test_a_success_whose_settlement_nobody_wrote_down_is_fine(run: Recorder) -> None:
    """The worker was killed after the reply."""
    run.enqueue("a")
    run.start("a", 10)
    run.find("a")
    verdict = check(run.told())
    assert verdict.ok
    assert verdict.counts.unended == 1


@pytest.mark.parametrize(
    ("attempt", "failures"),
    [(1, 0), (2, 0), (2, 2), (3, 3)],
    ids=["attempts", "too few", "too many", "unseen"],
)
def test_counters_that_cannot_be_are_refused(run: Recorder, attempt: int, failures: int) -> None:
    """Two attempts were seen: one failed, one did not."""
    run.enqueue("a")
    run.start("a", 10)
    run.settle("a", 10, event=Event.RETRY)
    run.start("a", 20, 2)
    run.settle("a", 20, 2)
    run.find("a", attempt=attempt, failures=failures)
    assert check(run.told()).kinds == {ViolationKind.MISCOUNTED}


@pytest.mark.parametrize(("failures", "crashes"), [(1, 1), (0, 0)], ids=["a failure", "no crash"])
def test_a_lost_claim_is_a_crash_and_no_failure(run: Recorder, failures: int, crashes: int) -> None:
    """S24: it costs its job no attempt, but it is counted."""
    run.enqueue("a")
    run.start("a", 10)
    run.reclaim("a", 10)
    run.find("a", State.READY, failures=failures, crashes=crashes)
    assert check(run.told()).kinds == {ViolationKind.MISCOUNTED}


def test_a_job_that_is_dead_after_one_loss_is_condemned_without_cause(run: Recorder) -> None:
    """S39, S40: unless its task runs at most once, or it was lost five times."""
    run.enqueue("a")
    run.start("a", 10)
    run.reclaim("a", 10, State.DEAD)
    run.find("a", State.DEAD, crashes=1)
    assert broken(run.told(), ViolationKind.CONDEMNED) == ("job a is dead by a lost claim, but had 1 crashes")


@pytest.mark.parametrize(("once", "crashes"), [(True, 1), (False, 5), (False, None)])
def test_a_job_may_be_dead_by_a_loss_where_the_rules_say_so(
    run: Recorder, *, once: bool, crashes: int | None
) -> None:
    """S40, S63; a ledger that does not tell the crashes proves nothing."""
    run.enqueue("a", once=once)
    run.start("a", 10)
    run.reclaim("a", 10, State.DEAD)
    run.find("a", State.DEAD, crashes=crashes)
    assert check(run.told()).ok


def _suspect_beside(run: Recorder, *, pid: int, is_first: bool) -> None:
    """Record a suspect whose run overlaps with that of another job, in this process."""
    for job in ("a", "b"):
        run.enqueue(job)
    run.start("a", 10)
    run.reclaim("a", 10)
    run.give_back("a", 15, 2)
    starts: list[tuple[str, int, int, int]] = [("a", 20, 2, 7), ("b", 30, 1, pid)]
    for job, fence, attempt, process in starts if is_first else reversed(starts):
        run.start(job, fence, attempt, pid=process)
    for job, fence, attempt, _ in starts:
        run.leave(job, fence, attempt)
        run.settle(job, fence, attempt)
    run.find("a", attempt=2, crashes=1)
    run.find("b")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_suspect_that_ran_beside_another_job_is_refused(run: Recorder, *, is_first: bool) -> None:
    """S39: only where every worker could run it in a child; what came back unstarted is a suspect still."""
    _suspect_beside(run, pid=7, is_first=is_first)
    assert check(run.told()).ok
    told = check(run.told(), isolated=True)
    assert [str(one) for one in told.violations] == ["not_alone: suspect a ran beside b in process 7"]


def test_a_suspect_in_a_process_of_its_own_is_fine(run: Recorder) -> None:
    """S39: as is one that has ended before the next begins."""
    _suspect_beside(run, pid=8, is_first=True)
    run.run("c", 40)
    run.run("d", 50)
    assert check(run.told(), isolated=True).ok


def test_a_job_left_behind_is_not_drained(run: Recorder) -> None:
    """Only where all should have drained."""
    run.enqueue("a")
    run.find("a", State.DELAYED, attempt=0)
    assert check(run.told()).ok
    assert broken(run.told(), ViolationKind.NOT_DRAINED, drained=True) == "job a is still delayed"


def test_a_run_that_nobody_read_at_the_end_is_not_kept(run: Recorder) -> None:
    """It is unread, and no loss is reported."""
    run.enqueue("a")
    run.write(Attempted(**work("b", batch="b1")), Acknowledged(**work("c", batch="b1")))
    run.write(Due(**work("d", schedule="nightly", slot=60)))
    broken(run.records, ViolationKind.UNREAD, "reading")


def test_a_reading_that_lacks_a_row_accuses_no_job(run: Recorder) -> None:
    """The row is missing in the ledger, which need not mean in the store."""
    run.enqueue("a")
    told = [*run.records, Reading(hot=1, history=0, dead=0)]
    assert broken(told, ViolationKind.UNREAD, "reading").endswith(
        "0 of 1 in hot, 0 of 0 in history, 0 of 0 in dead"
    )


def test_a_claim_that_went_back_as_unstarted_must_not_have_run(run: Recorder) -> None:
    """S68: its attempt is given again, as if nothing had happened."""
    run.enqueue("a")
    run.start("a", 10)
    run.give_back("a", 10)
    run.start("a", 20)
    run.settle("a", 20)
    run.find("a", attempt=1)
    found = broken(run.told(), ViolationKind.RAN_UNSTARTED)
    assert found == "job a went back as unstarted under fence 10, but its handler ran"


def test_the_number_of_a_claim_that_was_cancelled_instead_is_not_given_again(run: Recorder) -> None:
    """S68: only what became ready again was never claimed."""
    run.enqueue("a")
    run.give_back("a", 10, state=State.CANCELLED)
    run.find("a", State.CANCELLED, attempt=0)
    verdict = check(run.told())
    assert {one.kind for one in verdict.violations} == {ViolationKind.MISCOUNTED}
