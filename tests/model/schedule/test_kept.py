"""What is kept when a schedule changes, and when its slots are taken and end (S57)."""

from __future__ import annotations

from typing import Any

from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.kept import audited, is_at, is_seen, next_row, slot_row
from fairlane.model.schedule.records import (
    FanOut,
    NewSlot,
    ScheduleOverride,
    ScheduleRecord,
    ScheduleRow,
    SlotRow,
)
from fairlane.model.scope import Scope
from tests.model.schedule.test_records import spec


def slot(**values: Any) -> SlotRow:
    """Return a pending slot."""
    given: dict[str, Any] = {"tenant": "acme", "cause": "due", "state": "pending", "taken_at": 9}
    return SlotRow(schedule="nightly", at=5, **given | values)


def test_a_revision_rises_also_while_the_clock_stands_still_or_goes_back() -> None:
    """S57: nobody takes one change for another."""
    record = ScheduleRecord(name="nightly")
    assert next_row(None, record, 0) == ScheduleRow(record, 1, 0)
    assert next_row(ScheduleRow(record, 7, 3), record, 7) == ScheduleRow(record, 8, 3)
    assert next_row(ScheduleRow(record, 7, 3), record, 9) == ScheduleRow(record, 9, 3)


def test_a_slot_is_at_a_cursor_only_while_it_is_pending() -> None:
    """S57: a slot that is no fan-out has none."""
    assert is_at(slot(), "")
    assert not is_at(slot(), "m")
    assert not is_at(slot(state="failed"), "")
    assert not is_at(None, "")
    assert is_at(slot(fan_out=FanOut(cursor="m")), "m")
    assert not is_at(slot(fan_out=FanOut(cursor="m")), "")


def test_a_slot_for_many_tenants_begins_at_the_first() -> None:
    """S57: its fan-out is empty."""
    row = slot_row("nightly", None, NewSlot(at=5, tenant=None), 9)
    assert row == slot(tenant=None, fan_out=FanOut())


def test_only_a_backfill_takes_again_and_only_what_made_no_job() -> None:
    """S57: what is pending or enqueued stays, whoever asks."""
    for state in ("missed", "skipped", "failed"):
        assert slot_row("nightly", slot(state=state), NewSlot(at=5, tenant="acme"), 9) is None
        assert slot_row("nightly", slot(state=state), NewSlot(at=5, tenant="acme", cause="backfill"), 9)
    for state in ("pending", "enqueued"):
        again = NewSlot(at=5, tenant="acme", cause="backfill")
        assert slot_row("nightly", slot(state=state), again, 9) is None


def test_the_scope_of_a_tenant_shows_its_own() -> None:
    """S9: what is for many is nobody's."""
    assert [is_seen(Scope("acme"), one) for one in ("acme", "globex", None)] == [True, False, False]
    assert [is_seen(Scope.all(), one) for one in ("acme", None)] == [True, True]


def test_the_audit_says_of_a_schedule_what_people_say_of_it() -> None:
    """S60: no payload, and not how far it has come."""
    assert audited(None) == {}
    assert audited(ScheduleRecord(name="nightly", next_at=9, failures=2, problem="why")) == {}
    job = {"queue": "bulk", "task": "report", "tenant": "acme", "priority": 0, "max_attempts": 5}
    assert audited(ScheduleRecord(name="nightly", declared=spec()))["declared"] == {
        **job,
        "version": 1,
        "checksum": 0,
        "timing": {"kind": "every", "interval": 1_000_000},
        "spread": 0,
        "catch_up": "latest",
        "look_back": 86_400_000_000,
        "overlap": "allow",
        "unique_for": 0,
    }
    override = ScheduleOverride(spec=spec(note="x"), who="ann", set_at=1, until=9)
    hold = Hold(who="ann", reason="so", set_at=1)
    found = audited(ScheduleRecord(name="nightly", override=override, paused=hold, retired_at=3))
    assert (found["override"]["note"], found["override_until"], found["retired_at"]) == ("x", 9, 3)
    assert found["paused"] == {"who": "ann", "reason": "so", "set_at": 1, "until": None}
