"""Slots are what the reference says, minute by minute.

`python -m tests.model.schedule.every_zone` compares every zone over ten years; here are odd ones.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from fairlane.model.instants import to_instant
from fairlane.model.schedule import slots as slots_module
from fairlane.model.schedule.zones import find_zone, spans
from tests.model.schedule.every_zone import compare

ODD = {
    "America/New_York": (2026, 2027),
    "Europe/Dublin": (2026, 2027),  # its standard time is the one of summer
    "Australia/Lord_Howe": (2026, 2027),  # half an hour
    "Antarctica/Troll": (2026, 2027),  # two hours
    "Africa/Casablanca": (2026, 2027),  # back for a month, another each year
    "America/Scoresbysund": (2024, 2025),  # changes its zone on the day of the change
    "Asia/Gaza": (2040, 2041),  # two changes within a week
    "Pacific/Apia": (2011, 2012),  # a day that did not exist
    "Pacific/Kiritimati": (1994, 1996),  # one that was New Year's Eve
    "Asia/Pyongyang": (2018, 2019),
    "Asia/Kathmandu": (2026, 2027),  # an offset of 5:45, no change
    "UTC": (2026, 2027),
}


@pytest.mark.parametrize("name", ODD)
def test_slots_of_odd_zones_are_those_of_the_reference(name: str) -> None:
    """Around each change, and on an ordinary day of each year."""
    first, last = ODD[name]
    outcome = compare(name, date(first, 1, 1), date(last, 1, 1))
    assert outcome.differences == []
    assert outcome.slots > 500


@pytest.mark.parametrize("wrong", ["first", "second"])
def test_the_comparison_sees_a_difference(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour that is treated in one way whatever was said differs for the rules that say another."""
    monkeypatch.setattr(slots_module, "policies", lambda cron: (cron.missing, wrong))
    assert compare("Europe/Berlin", date(2026, 1, 1), date(2027, 1, 1)).differences


@pytest.mark.parametrize("name", ODD)
def test_spans_follow_each_other(name: str) -> None:
    """Each begins where the one before ends, with its offset; the offset of each is the zone's own."""
    zone = find_zone(name)
    found = list(islice(spans(zone, to_instant(datetime(ODD[name][0], 1, 1, tzinfo=UTC))), 8))
    for one, two in pairwise(found):
        assert (one.end, one.offset, one.after) == (two.start, two.before, two.offset)
    for span in found:
        for instant in (span.start, (span.start + span.end) // 2, span.end - 1):
            assert _offset(zone, instant) == span.offset


def _offset(zone: ZoneInfo, instant: int) -> int:
    offset = datetime.fromtimestamp(instant // 10**6, UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds()) * 10**6
