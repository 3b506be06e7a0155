"""A finished job as a line of JSON (S105, S116)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.finished_job import FinishedJob
from fairlane.model.history_line import FIELDS, BadLineError, line_values, read_line, write_line
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Mark, NewRun, ReviewNote, ReviewRecord
from tests.model.test_finished_job import attempt, ended

REVIEW = ReviewRecord(
    "reprocessed",
    Mark("ann", 7),
    Mark("bob", 8),
    (ReviewNote("ann", 9, "note", "x"),),
    NewRun(UUID(int=9), State.DEAD, 9),
)
RICH = FinishedJob(
    ended(
        State.DEAD,
        timeout=1_500_000,
        stuck_after=1,
        expires_at=99,
        result=b"",
        parent_id=UUID(int=3),
        tags=("b", "a"),
        metadata=b'{"at": "noon", "x_at": 5}',
        attempts=(attempt("f"),),
    ),
    REVIEW,
)


def changed(**values: Any) -> bytes:
    """Return a good line with other values."""
    return msgspec.json.encode({**line_values(FinishedJob(ended())), **values})


@pytest.mark.parametrize("one", [FinishedJob(ended()), FinishedJob(ended(result=b"\xff\x00")), RICH])
def test_a_line_is_read_as_it_was_written(one: FinishedJob) -> None:
    """S105: to the last microsecond and byte; it is one line."""
    line = write_line(one)
    assert line.count(b"\n") == 1
    assert read_line(line) == one


@given(st.binary(max_size=30), st.integers(1, 2**53), st.integers(0, 2**50))
def test_bytes_times_and_durations_are_exact(payload: bytes, at: int, timeout: int) -> None:
    """S105: whatever they are."""
    one = FinishedJob(ended(payload=payload, settled_at=at, timeout=timeout))
    assert read_line(write_line(one)) == one


def test_people_can_read_a_line() -> None:
    """S105: text where it is text, instants as text, durations in seconds, no field of a claim."""
    values = line_values(RICH)
    assert tuple(values) == FIELDS
    assert values["payload"] == "{}"
    assert values["settled_at"] == "1970-01-01T00:00:00.000006Z"
    assert values["timeout"] == 1.5
    assert values["attempts"][0]["ended_at"] == "1970-01-01T00:00:00.000006Z"
    assert values["review"]["decided"] == {"who": "bob", "at": "1970-01-01T00:00:00.000008Z"}
    assert {"worker", "fence"} & set(values) == {"fence"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "is no JSON:"),
        (b"[" * 9_999, "is no JSON"),
        (b"[]", "is no JSON object"),
        (b"{}", "format: is None; this version reads 1"),
        (changed(format=2), "format: is 2; this version reads 1"),
        (changed(quue="mail"), "quue: is no field of a finished job"),
        (changed(queue=5), "queue: Expected `str`, got `int`"),
        (changed(state="lost"), "state: Invalid enum value 'lost'"),
        (changed(queue="No"), "queue: use 1 to 63"),
        (changed(settled_at=5), "an instant is written as 2026-01-31T09:30:00.000000Z, not '5'"),
        (changed(settled_at="noon"), "Invalid isoformat string: 'noon'"),
        (changed(settled_at="2026-01-31T09:30:00"), "2026-01-31T09:30:00 has no time zone"),
        (changed(payload=5), "payload: is neither a text nor an object with base64"),
        (changed(payload={"base64": 5}), "payload: is neither a text nor an object with base64"),
        (changed(payload={"base64": "%"}), "Only base64 data is allowed"),
        (changed(timeout="long"), "Expected `float`, got `str`"),
        (changed(timeout=1e308), "a duration is a finite number of seconds"),
        (b'{"format":1}', "Object missing required field `id`"),
        (changed(review={"review": "fine"}), "review: Invalid enum value 'fine'"),
    ],
)
def test_a_bad_line_is_refused(line: bytes, says: str) -> None:
    """S116: in one sentence that names the field."""
    with pytest.raises(BadLineError) as refused:
        read_line(line)
    assert str(refused.value).startswith(says)
