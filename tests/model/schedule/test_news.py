"""What happens to schedules, as events (S76)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.news import FAIRLANE, news_of_schedule, news_of_slot
from fairlane.model.schedule.records import FanOut, ScheduleRecord
from tests.model.schedule.test_kept import slot
from tests.model.schedule.test_records import spec

RECORD = ScheduleRecord(name="nightly", declared=spec())


def told(entries: Iterable[NewEntry]) -> list[tuple[str, str | None, int, Any]]:
    """Return what matters of events."""
    return [(one.kind, one.tenant, one.count, msgspec.json.decode(one.body)) for one in entries]


def test_nothing_is_told_of_what_goes_well_or_is_removed() -> None:
    """S76: a slot that is taken, or skipped because somebody wants it so, is no news."""
    assert news_of_schedule(None, RECORD, [slot(), slot(state="skipped")]) == ()
    assert news_of_schedule(replace(RECORD, problem="x"), None, []) == ()
    assert news_of_slot(slot()) == news_of_slot(slot(state="enqueued")) == ()
    assert news_of_slot(slot(state="enqueued", fan_out=FanOut(enqueued=9))) == ()


def test_a_schedule_begins_to_fail_once() -> None:
    """S76: failed slots are told in any case, and say what the schedule says."""
    failing = replace(RECORD, problem="its task has gone")
    expected = {"schedule": "nightly", "because": "its task has gone"}
    assert told(news_of_schedule(None, failing, [])) == [("schedule_failed", "acme", 1, expected)]
    assert news_of_schedule(failing, failing, []) == ()
    failed = slot(state="failed", because="gone")
    (one,) = told(news_of_schedule(failing, failing, [failed, failed]))
    assert one == ("schedule_failed", "acme", 2, {**expected, "slot": "1970-01-01T00:00:00.000005Z"})
    (one,) = told(news_of_schedule(RECORD, RECORD, [failed]))
    assert one[3]["because"] == "gone"


def test_missed_slots_are_counted() -> None:
    """S76: those before a slot, and the slot itself."""
    (one,) = told(news_of_schedule(None, RECORD, [slot(missed=3, missed_since=1)]))
    first, fifth = "1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:00.000005Z"
    expected = {"schedule": "nightly", "missed": 3, "since": first, "to": fifth}
    assert one == ("schedule_missed", "acme", 3, expected)
    (one,) = told(news_of_schedule(None, RECORD, [slot(state="missed")]))
    assert (one[2], one[3]["since"], one[3]["to"]) == (1, fifth, fifth)


def test_only_a_pause_by_fairlane_is_an_event_and_once() -> None:
    """S76: what an operator does is in the audit."""
    hold = Hold(who=FAIRLANE, reason="5 jobs in a row are dead", set_at=1)
    paused = replace(RECORD, paused=hold)
    expected = {"schedule": "nightly", "because": hold.reason}
    for before in (None, RECORD):
        assert told(news_of_schedule(before, paused, [])) == [("schedule_paused", "acme", 1, expected)]
    assert news_of_schedule(paused, paused, []) == ()
    assert news_of_schedule(RECORD, replace(RECORD, paused=replace(hold, who="ann")), []) == ()


def test_a_slot_that_fails_says_why() -> None:
    """S76: a fan-out at its end, with the first tenant's reason."""
    (one,) = told(news_of_slot(slot(state="failed", because="closed")))
    about = {"schedule": "nightly", "because": "closed", "slot": "1970-01-01T00:00:00.000005Z"}
    assert one == ("schedule_failed", "acme", 1, about)
    some = FanOut(failed=4, exceptions=(("acme", "closed"),))
    assert news_of_slot(slot(tenant=None, fan_out=some)) == ()
    assert told(news_of_slot(slot(tenant=None, state="enqueued", fan_out=some))) == [
        ("schedule_failed", None, 4, about)
    ]
    (one,) = told(news_of_slot(slot(tenant=None, state="enqueued", fan_out=FanOut(failed=1))))
    assert one[3]["because"] == ""
