"""How a schedule goes on that is due (S57)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from fairlane.model.identifiers import slot_id
from fairlane.model.instants import MINUTE, Instant
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.advance import AGAIN_AFTER, MOST_WATCHED, Advanced, advanced
from fairlane.model.schedule.records import NewSlot, ScheduleOverride, ScheduleRecord
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import At, Cron, Every
from tests.model.schedule.test_records import spec

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))


def minutely(**values: Any) -> ScheduleSpec:
    """Return a schedule of every minute."""
    return spec(timing=Every(interval=MINUTE), **values)


def record(declared: ScheduleSpec | None = None, **values: Any) -> ScheduleRecord:
    """Return a schedule that has come so far."""
    given: dict[str, Any] = {"name": "nightly", "declared": declared or minutely()}
    return ScheduleRecord(**given | values)


def go_on(
    kept: ScheduleRecord, now: Instant, endings: Mapping[UUID, State] | None = None, problem: str = ""
) -> Advanced:
    """Let a schedule go on."""
    return advanced(kept, now, endings=endings or {}, problem=problem, zones="2026b")


def test_due_slots_are_taken_and_the_schedule_is_settled_up_to_now() -> None:
    """S57: with the id of each job; one for many tenants has none."""
    after = go_on(record(), MINUTE + 5)
    assert after.slots == (NewSlot(at=MINUTE, tenant="acme", job=slot_id("acme", "nightly", MINUTE)),)
    kept = after.record
    assert (kept.settled_to, kept.next_at, kept.last_slot) == (MINUTE + 5, 2 * MINUTE, MINUTE)
    assert (kept.zones, kept.watched, kept.problem) == ("2026b", (), "")
    (slot,) = go_on(record(minutely(for_tenants={})), MINUTE).slots
    assert (slot.tenant, slot.job) == (None, None)


def test_with_nothing_due_nothing_is_taken() -> None:
    """S57: it was looked at too early."""
    after = go_on(record(last_slot=7), 5)
    assert (after.slots, after.record.last_slot, after.record.next_at) == ((), 7, MINUTE)


def test_with_a_problem_slots_fail_and_say_so() -> None:
    """S57: none of them will have a job, and none is watched."""
    after = go_on(record(minutely(pause_after=3)), MINUTE, problem="gone")
    assert [(slot.state, slot.because, slot.job) for slot in after.slots] == [("failed", "gone", None)]
    assert (after.record.problem, after.record.watched, after.record.next_at) == ("gone", (), 2 * MINUTE)


def test_missed_slots_are_noted_with_the_first_that_is_recorded() -> None:
    """S57: which may be one that is skipped."""
    (slot,) = go_on(record(minutely(catch_up="skip")), 10 * MINUTE + 5).slots
    assert (slot.at, slot.state, slot.missed, slot.missed_since) == (10 * MINUTE, "pending", 9, MINUTE)
    close = record(minutely(unique_for=5 * MINUTE, catch_up=2), last_slot=8 * MINUTE)
    first, second = go_on(close, 10 * MINUTE + 5).slots
    assert (first.at, first.state, first.missed) == (9 * MINUTE, "skipped", 8)
    assert (second.state, second.missed, second.because) == (
        "skipped",
        0,
        "less than 300 s after the slot before",
    )


def test_without_any_other_the_last_missed_slot_is_recorded() -> None:
    """S57: with how many were missed before it."""
    for ends, missed, since in ((5 * MINUTE, 4, MINUTE), (MINUTE, 0, None)):
        over = record(minutely(catch_up="skip", ends=ends))
        (slot,) = go_on(over, 10 * MINUTE).slots
        assert (slot.at, slot.state, slot.missed, slot.missed_since) == (ends, "missed", missed, since)
    daily = record(spec(timing=Cron(expression="0 0 * * *"), catch_up="skip"))
    (slot,) = go_on(daily, 26 * 60 * MINUTE).slots
    assert (slot.at, slot.state, slot.missed) == (24 * 60 * MINUTE, "missed", 0)


def test_a_schedule_without_another_slot_is_over() -> None:
    """SC-1: its only slot was taken."""
    after = go_on(record(spec(timing=At(instant=7_000))), 9_000)
    assert (after.record.retired_at, after.record.next_at, len(after.slots)) == (9_000, None, 1)


def test_a_schedule_of_which_nothing_is_left_is_over() -> None:
    """S54: the override by which an operator made it has ended."""
    override = ScheduleOverride(spec=minutely(), who="ann", set_at=0, until=9)
    made = ScheduleRecord(name="nightly", override=override)
    after = go_on(made, 9)
    assert (after.record.override, after.record.retired_at, after.slots) == (None, 9, ())
    assert go_on(made, 8).record.override is override


def test_a_pause_takes_nothing_and_its_slots_are_settled_when_it_ends() -> None:
    """S57: no burst; a slot at the very end is taken."""
    hold = Hold(who="ann", reason="so", set_at=0, until=5 * MINUTE)
    paused = record(paused=hold, failures=2, watched=(ONE,))
    after = go_on(paused, 5 * MINUTE - 1)
    assert (after.slots, after.record.paused, after.record.next_at) == ((), hold, 5 * MINUTE)
    after = go_on(paused, 5 * MINUTE)
    assert [slot.at for slot in after.slots] == [5 * MINUTE]
    assert (after.slots[0].missed, after.record.paused, after.record.failures) == (0, None, 0)
    for_good = record(paused=replace(hold, until=None))
    assert go_on(for_good, 9 * MINUTE) == Advanced(replace(for_good, next_at=None))
    retired = record(retired_at=3)
    assert go_on(retired, 9 * MINUTE) == Advanced(retired)


def test_dead_jobs_in_a_row_pause_a_schedule() -> None:
    """S57: a success begins anew, a cancelled or forgotten job counts as none, what runs is watched on."""
    kept = record(minutely(pause_after=3), watched=(ONE, TWO, THREE), failures=1)
    after = go_on(kept, MINUTE, {ONE: State.DEAD, TWO: State.RUNNING, THREE: State.CANCELLED})
    assert (after.record.failures, after.record.watched[0]) == (2, TWO)
    assert after.record.watched[1:] == (after.slots[0].job,)
    after = go_on(kept, MINUTE, {ONE: State.DEAD, TWO: State.SUCCEEDED, THREE: State.DEAD})
    assert after.record.failures == 1
    after = go_on(kept, MINUTE, {ONE: State.DEAD, TWO: State.DEAD})
    assert after.slots == ()
    assert after.record.paused == Hold(who="fairlane", reason="3 jobs in a row are dead", set_at=MINUTE)
    assert (after.record.next_at, after.record.settled_to) == (None, MINUTE)


def test_so_many_jobs_are_watched_at_most() -> None:
    """The oldest are given up first."""
    many = tuple(UUID(int=number) for number in range(MOST_WATCHED))
    after = go_on(record(minutely(pause_after=3), watched=many), MINUTE, dict.fromkeys(many, State.RUNNING))
    assert after.record.watched == (*many[1:], after.slots[0].job)


def test_a_schedule_whose_times_cannot_be_computed_here_is_looked_at_again() -> None:
    """S57: another machine may know the zone; its slots are not lost."""
    strange = record(spec(timing=Cron(expression="* * * * *", timezone="Mars/Olympus")))
    after = go_on(strange, MINUTE)
    assert "Mars/Olympus" in after.record.problem
    assert (after.record.next_at, after.record.settled_to, after.slots) == (MINUTE + AGAIN_AFTER, 0, ())
