"""Records decide nothing, except how a new job begins (S2)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.job import ATTEMPTS_KEPT, AttemptRecord, NewJob, Settlement
from fairlane.model.lifecycle.record_changes import initial_state
from fairlane.model.lifecycle.states import Event, State


def new(**values: Any) -> NewJob:
    """Build a job of which a test changes one thing."""
    required = {"id": UUID(int=1), "tenant": "acme", "queue": "q", "task": "t", "payload": b"", "checksum": 0}
    return NewJob(**{**required, **values})


@pytest.mark.parametrize(
    ("values", "state", "due_at"),
    [
        ({}, State.READY, 100),
        ({"delay": 0}, State.READY, 100),
        ({"delay": 1}, State.DELAYED, 101),
        ({"delay": 50}, State.DELAYED, 150),
        ({"delay": -5}, State.READY, 100),
        ({"run_at": 101}, State.DELAYED, 101),
        ({"run_at": 100}, State.READY, 100),
        ({"run_at": 99}, State.READY, 100),
        ({"run_at": 0}, State.READY, 100),
        ({"run_at": -7}, State.READY, 100),
    ],
)
def test_a_job_is_delayed_until_its_time_and_a_past_time_means_now(
    values: dict[str, int], state: State, due_at: int
) -> None:
    """A relative delay is counted from the store's own now; what is past is stored as now."""
    assert initial_state(new(**values), 100) == (state, due_at)


def test_a_job_says_what_it_needs_and_has_the_documented_defaults() -> None:
    """Five attempts, priority zero, at least once, a key that lasts until the job has settled."""
    job = new()
    assert (job.max_attempts, job.priority, job.version, job.at_most_once) == (5, 0, 1, False)
    assert (job.on_duplicate, job.dedup_until) == ("return", "settled")
    with pytest.raises(TypeError):
        NewJob(id=UUID(int=1))  # type: ignore[call-arg]


def test_records_are_frozen() -> None:
    """A store replaces them; nobody changes one that another holds."""
    with pytest.raises(AttributeError):
        new().tenant = "globex"  # type: ignore[misc]


def test_a_settlement_and_an_attempt_survive_being_written_down() -> None:
    """Stores keep them as JSON."""
    failure = Failure(ErrorClass.TIMEOUT, "TimeoutError", "too slow", None)
    settlement = Settlement(id=UUID(int=1), fence=7, event=Event.RETRY, outcome="failed", failure=failure)
    attempt = AttemptRecord(1, "w1", 5, 9, "failed", failure, "log")
    for record in (settlement, attempt):
        assert msgspec.json.decode(msgspec.json.encode(record), type=type(record)) == record


def test_history_keeps_the_last_ten_attempts() -> None:
    """Seed B asked for so many (S24)."""
    assert ATTEMPTS_KEPT == 10
