"""Which schedule and slot a job comes from: only what no other job can say."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.identifiers import slot_id
from fairlane.model.schedule.errors import InvalidSchedule, ScheduleExists, ScheduleNotFound
from fairlane.model.schedule.origin import ScheduledSlot, creator_of, scheduled_slot

AT = 1_772_366_400_000_000
ID = slot_id("acme", "nightly", AT)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**52), st.sampled_from(["acme", "system"]), st.sampled_from(["nightly", "a.b-c"]))
def test_a_job_says_its_slot(milli: int, tenant: str, schedule: str) -> None:
    """Whatever millisecond it is of, for whichever tenant."""
    at = milli // 1000 * 1000
    id = slot_id(tenant, schedule, at)
    assert scheduled_slot(tenant, creator_of(schedule), str(id)) == ScheduledSlot(schedule, at)


@pytest.mark.parametrize(
    ("tenant", "created_by", "correlation"),
    [
        ("globex", "schedule:nightly", str(ID)),
        ("acme", "schedule:weekly", str(ID)),
        ("acme", "schedule:nightly", str(UUID(int=ID.int ^ 1))),
        ("acme", "schedule:nightly", "invoice-7"),
        ("acme", "user:42", str(ID)),
        ("acme", None, str(ID)),
    ],
)
def test_nobody_else_can_say_it(tenant: str, created_by: str | None, correlation: str) -> None:
    """Another tenant, another schedule, another id, a label that is no id, another creator, none."""
    assert scheduled_slot(tenant, created_by, correlation) is None


def test_errors_say_what_to_do() -> None:
    """With the name of the schedule."""
    assert "schedules list" in str(ScheduleNotFound("nightly"))
    assert "edit it" in str(ScheduleExists("nightly"))
    assert str(InvalidSchedule([])) == "the schedule was not saved, 0 problem(s):\n"
    assert str(InvalidSchedule([], "nightly")).startswith("schedule nightly was not saved")
