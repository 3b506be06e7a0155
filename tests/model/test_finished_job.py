"""A finished job as it leaves a store, and what no store takes back (S105, S116)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.finished_job import FinishedJob, finished_job, pack_finished, problem_of, unpack_finished
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.job import AttemptRecord, JobRecord, NewJob
from fairlane.model.lifecycle.record_changes import new_record, stopped
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Mark, ReviewNote, ReviewRecord


def ended(state: State = State.SUCCEEDED, **values: Any) -> JobRecord:
    """Return a job that has ended."""
    new = NewJob(id=UUID(int=1), tenant="acme", queue="mail", task="send", payload=b"{}", checksum=1)
    return msgspec.structs.replace(stopped(new_record(new, 5), state, "why", 6), **values)


def attempt(fingerprint: str = "") -> AttemptRecord:
    """Return an attempt that failed."""
    failure = Failure(ErrorClass.CRASH, "Lost", "gone", fingerprint=fingerprint)
    return AttemptRecord(1, "w1", 5, 6, "lost", failure, "a log")


def test_only_a_dead_job_has_a_review() -> None:
    """S105: the review of a job that is not dead is nobody's."""
    assert finished_job(ended(), ReviewRecord("resolved")) == FinishedJob(ended())
    dead = ended(State.DEAD)
    assert finished_job(dead, None) == FinishedJob(dead, ReviewRecord())
    assert finished_job(dead, ReviewRecord("ignored")) == FinishedJob(dead, ReviewRecord("ignored"))


def test_packing_loses_nothing() -> None:
    """S105: until the archive has it, a store keeps these bytes."""
    one = FinishedJob(ended(State.DEAD, attempts=(attempt("f"),), result=b"\xff"), ReviewRecord("ignored"))
    assert unpack_finished(pack_finished(one)) == one


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED, State.DEAD])
def test_what_ended_can_come_back(state: State) -> None:
    """S116: whatever its end."""
    assert problem_of(finished_job(ended(state, attempts=(attempt(),), because=None), None)) is None
    decided = ReviewRecord("resolved", decided=Mark("ann", 7))
    assert problem_of(FinishedJob(ended(State.DEAD), decided)) is None
    named = ended(dedup_key="d", created_by="ann", tags=("a", "b"))
    assert problem_of(FinishedJob(named)) is None


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"state": State.READY}, "state: is ready; only succeeded, cancelled and dead"),
        ({"state": State.DEAD}, "review: belongs to a dead job"),
        ({"worker": "w1"}, "worker: a job that has ended is on no worker"),
        ({"is_cancel_asked": True}, "worker: a job that has ended is on no worker"),
        ({"settled_at": None}, "settled_at: is missing"),
        ({"tenant": "a b"}, "tenant: use 1 to 128"),
        ({"queue": "Mail"}, "queue: use 1 to 63"),
        ({"task": ""}, "task: use 1 to 200"),
        ({"idempotency_key": ""}, "idempotency_key: use 1 to 255"),
        ({"correlation_id": "\0"}, "correlation_id: use 1 to 255"),
        ({"dedup_key": ""}, "dedup_key: use 1 to 255"),
        ({"created_by": ""}, "created_by: use 1 to 255"),
        ({"tags": ("fine", "")}, "tags: use 1 to 255"),
        ({"priority": 10_000}, "priority: is 10000; from"),
        ({"failures": 2**31}, "failures: is 2147483648; from 0 to 2147483647"),
        ({"checksum": -1}, "checksum: is -1; from 0"),
        ({"settled_at": LAST_INSTANT + 1}, "settled_at: is 9007199254740993"),
        ({"run_at": 0}, "run_at: is 0; from 1"),
        ({"sort_key": 9}, "sort_key: does not follow"),
        ({"metadata": b"[]"}, "metadata: is no JSON object"),
        ({"metadata": b"{"}, "metadata: is no JSON object"),
        ({"attempts": (attempt(),) * 101}, "attempts: are 101; a job keeps at most 100"),
        ({"because": "a\0b"}, "because and fingerprint: may hold no NUL"),
        ({"attempts": (attempt("\0"),)}, "because and fingerprint: may hold no NUL"),
    ],
)
def test_what_no_store_takes_back_is_named(values: dict[str, Any], says: str) -> None:
    """S116: the field first, then what is wrong with it."""
    problem = problem_of(FinishedJob(ended(**values)))
    assert problem is not None
    assert problem.startswith(says)


def test_a_review_is_bounded_too() -> None:
    """S116: as it is when people write it."""
    note = ReviewNote("ann", 1, "note", "x")
    many, late = ReviewRecord(notes=(note,) * 101), ReviewRecord("resolved", decided=Mark("ann", 0))
    assert (
        problem_of(FinishedJob(ended(State.DEAD), many))
        == "review: has 101 notes; a letter keeps at most 100"
    )
    assert str(problem_of(FinishedJob(ended(State.DEAD), late))).startswith("review: was decided at 0")
