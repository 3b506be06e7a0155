"""When a schedule goes on: after it was made, changed or resumed, and nothing of the past is made up for."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import DAY, HOUR
from fairlane.model.job import NewJob
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.records import ScheduleOverride, ScheduleRecord
from fairlane.model.schedule.restart import next_look, next_slot, restarted
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import At, Every, Timing

NOW = 20_000 * DAY + 1
JOB = NewJob(id=UUID(int=0), tenant="acme", queue="q", task="t", payload=b"", checksum=0)
HOURLY = Every(interval=HOUR)
NEXT = NOW - 1 + HOUR


def spec(timing: Timing = HOURLY, starts: int | None = None, ends: int | None = None) -> ScheduleSpec:
    """Make a schedule."""
    return ScheduleSpec(name="s", job=JOB, timing=timing, starts=starts, ends=ends)


def record(**fields: object) -> ScheduleRecord:
    """Make a record of an hourly schedule that has missed a day."""
    given = {"declared": spec(), "settled_to": NOW - DAY, "failures": 3, "problem": "gone", **fields}
    return ScheduleRecord(name="s", **given)  # type: ignore[arg-type]


def test_slots_lie_between_start_and_end() -> None:
    """Both included."""
    assert next_slot(spec(), NOW) == NEXT
    assert next_slot(spec(starts=NEXT + HOUR), NOW) == NEXT + HOUR
    assert next_slot(spec(starts=NEXT), NOW) == NEXT
    assert next_slot(spec(ends=NEXT), NOW) == NEXT
    assert next_slot(spec(ends=NEXT - 1), NOW) is None
    assert next_slot(spec(At(NOW - 1)), NOW) is None


def test_what_goes_on_has_no_past() -> None:
    """Missed slots are settled, failures are forgotten."""
    found = restarted(record(), NOW)
    assert (found.settled_to, found.next_at, found.failures, found.problem) == (NOW, NEXT, 0, "")


def test_a_pause_is_looked_at_when_it_ends() -> None:
    """And without an end never; nor is what is retired."""
    hold = Hold(who="ann", reason="x", set_at=NOW)
    assert next_look(record(paused=hold), NOW) is None
    assert next_look(record(paused=Hold(who="a", reason="x", set_at=NOW, until=NOW + 5)), NOW) == NOW + 5
    assert next_look(record(retired_at=NOW), NOW) is None


def test_an_edit_that_ends_is_looked_at_then() -> None:
    """If no slot comes before; and one that was only added for a while is over then."""
    edit = ScheduleOverride(spec=spec(Every(interval=DAY)), who="ann", set_at=NOW, until=NOW + 9)
    assert next_look(record(override=edit), NOW) == NOW + 9
    assert next_look(record(override=edit), NOW + 9) == NEXT
    assert next_look(record(override=edit, declared=None), NOW + 9) is None
