"""What a job's record becomes with each move, from its birth to its erasure (S36, S39, S52)."""

from __future__ import annotations

from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import SECOND
from fairlane.model.job import ATTEMPTS_KEPT, JobRecord, NewJob, Progress, Settlement
from fairlane.model.lifecycle.record_changes import (
    claimed,
    due_now,
    lost,
    new_record,
    promoted,
    scrubbed,
    settled,
    stopped,
)
from fairlane.model.lifecycle.states import Event, State
from fairlane.model.retry.decision import LeaseLoss
from fairlane.model.scheduling.priority import sort_key

NOW = 1_772_366_400 * SECOND
SOON = NOW + SECOND
BOOM = Failure(ErrorClass.RETRYABLE, "ValueError", "boom", traceback="line 1")
OWN = str(UUID(int=1))


def new(delay: int = 0, **values: object) -> JobRecord:
    """Return a job that came in now."""
    given = {"id": UUID(int=1), "tenant": "acme", "queue": "mail", "task": "send", "payload": b"{}"}
    return new_record(NewJob(**{**given, "checksum": 7, "delay": delay, **values}), NOW)  # type: ignore[arg-type]


def running(**values: object) -> JobRecord:
    """Return a job in the hands of a worker."""
    return claimed(new(**values), "w1", 12 * SECOND, NOW)  # type: ignore[arg-type]


def settling(event: Event, **values: object) -> Settlement:
    """Return a settlement by this event."""
    return Settlement(id=UUID(int=1), fence=NOW, event=event, outcome="succeeded", **values)  # type: ignore[arg-type]


def test_a_job_without_a_delay_is_born_ready_under_its_own_key() -> None:
    """What nobody named has the job's own id."""
    job = new()
    assert (job.state, job.because, job.run_at) == (State.READY, None, NOW)
    assert (job.idempotency_key, job.correlation_id, job.expires_at) == (OWN, OWN, None)


def test_a_delayed_job_says_why_and_expires_from_now_on() -> None:
    """Times are counted from the store's now."""
    job = new(SECOND, expires_in=5 * SECOND, idempotency_key="k", correlation_id="c")
    assert (job.state, job.because, job.run_at) == (State.DELAYED, "time", SOON)
    assert (job.idempotency_key, job.correlation_id, job.expires_at) == ("k", "c", NOW + 5 * SECOND)


def test_a_due_job_keeps_its_place_and_a_hurried_one_gets_another() -> None:
    """Being due is no new time; being told to run now is."""
    job = new(60 * SECOND, priority=1)
    assert (promoted(job).state, promoted(job).because) == (State.READY, None)
    assert promoted(job).sort_key == job.sort_key
    assert (due_now(job, SOON).run_at, due_now(job, SOON).sort_key) == (SOON, sort_key(SOON, 1))


def test_a_fence_grows_with_the_clock_and_without_it() -> None:
    """S36: it is the later of the last one plus one, and now."""
    first = running()
    again = claimed(first, "w2", SECOND, NOW)
    assert (first.fence, again.fence, again.attempt) == (NOW, NOW + 1, 2)
    assert (again.worker, again.started_at, again.lease_until) == ("w2", NOW, SOON)


def test_a_stopped_job_is_settled_now() -> None:
    """It has the word of who stopped it."""
    job = stopped(new(), State.CANCELLED, "purged", SOON)
    assert (job.state, job.because, job.settled_at) == (State.CANCELLED, "purged", SOON)


def test_success_ends_the_claim_and_keeps_the_result() -> None:
    """Nothing of the claim is left but its attempt."""
    job = settled(running(), settling(Event.SUCCEED, result=b"42", log="done"), SOON)
    assert (job.state, job.settled_at, job.result) == (State.SUCCEEDED, SOON, b"42")
    assert (job.worker, job.started_at, job.lease_until, job.progress) == (None, None, None, None)
    (attempt,) = job.attempts
    assert (attempt.number, attempt.worker, attempt.started_at, attempt.log) == (1, "w1", NOW, "done")


def test_a_retry_comes_back_after_its_delay_and_is_not_settled() -> None:
    """Its place is that of its new time."""
    job = settled(running(), settling(Event.RETRY, delay=SECOND, failures=1, result=b"no"), NOW)
    assert (job.state, job.run_at, job.sort_key) == (State.DELAYED, SOON, sort_key(SOON, 0))
    assert (job.failures, job.settled_at, job.result) == (1, None, None)


def test_a_settlement_may_bring_metadata() -> None:
    """S73: what the handler has written replaces what was there; None leaves it."""
    assert settled(running(metadata=b'{"a":1}'), settling(Event.SUCCEED), SOON).metadata == b'{"a":1}'
    written = settling(Event.SUCCEED, metadata=b'{"step":3}')
    assert settled(running(metadata=b'{"a":1}'), written, SOON).metadata == b'{"step":3}'


def test_a_job_keeps_its_last_attempts_alone() -> None:
    """The oldest goes when there are too many."""
    job = new()
    for _ in range(ATTEMPTS_KEPT + 1):
        job = settled(claimed(job, "w1", SECOND, NOW), settling(Event.HAND_BACK), NOW)
    assert [one.number for one in job.attempts] == list(range(2, ATTEMPTS_KEPT + 2))


def test_a_claim_that_comes_back_unstarted_leaves_only_its_fence() -> None:
    """S68: its number is free again, and no attempt is recorded."""
    job = settled(claimed(new(), "w1", SECOND, NOW), settling(Event.HAND_BACK), NOW)
    again = claimed(job, "w1", SECOND, SOON)
    unstarted = msgspec.structs.replace(settling(Event.HAND_BACK), is_unstarted=True)
    assert settled(again, unstarted, SOON) == msgspec.structs.replace(job, fence=again.fence)


def test_a_lost_job_is_a_suspect_and_settled_only_if_that_was_its_end() -> None:
    """S39: whoever loses its worker may have killed it."""
    again = lost(running(), LeaseLoss(State.READY, None, 1, BOOM), SOON)
    assert (again.state, again.is_suspect, again.crashes, again.settled_at) == (State.READY, True, 1, None)
    assert again.attempts[0].outcome == "lost"
    assert lost(running(), LeaseLoss(State.DEAD, "crashed", 3, BOOM), SOON).settled_at == SOON


def test_what_an_erased_job_carried_and_said_is_gone() -> None:
    """S52: that it was, and how it ended, is not."""
    job = running(idempotency_key="k", dedup_key="d", correlation_id="c", tags=("t",), created_by="me")
    whole = settled(job, settling(Event.SUCCEED, because="chosen: for Ann", result=b"42", failure=BOOM), SOON)
    bare = scrubbed(whole)
    assert (bare.payload, bare.checksum, bare.result, bare.because) == (b"", 0, b"", "chosen")
    assert (bare.idempotency_key, bare.correlation_id, bare.dedup_key) == (OWN, OWN, None)
    assert (bare.tags, bare.created_by, bare.state) == ((), None, whole.state)
    assert bare.attempts[0].failure == Failure(ErrorClass.RETRYABLE, "", "")


def test_an_erased_job_does_not_get_what_it_never_had() -> None:
    """No result, no word and no failure are not empty ones."""
    job = settled(running(), settling(Event.SUCCEED), SOON)
    bare = scrubbed(job)
    assert (bare.result, bare.because, bare.attempts[0].failure) == (None, None, None)


def test_a_settlement_forgets_how_far_the_attempt_was() -> None:
    """Progress and a cancel that was asked for are the attempt's, not the job's."""
    job = msgspec.structs.replace(running(), progress=Progress(0.5, "half"), is_cancel_asked=True)
    again = settled(job, settling(Event.HAND_BACK), SOON)
    assert (again.progress, again.is_cancel_asked) == (None, False)
