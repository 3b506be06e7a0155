"""Slots through changes of the clock, windows and anchors."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from fairlane.model.instants import DAY, HOUR, LAST_INSTANT, MINUTE, SECOND, to_datetime, to_instant
from fairlane.model.schedule.slots import next_after, policies, slots_after, slots_before, slots_between
from fairlane.model.schedule.timing import At, Cron, Every, Timing

NEW_YORK = "America/New_York"


def at(text: str) -> int:
    """Return an instant of UTC."""
    return to_instant(datetime.fromisoformat(text).replace(tzinfo=UTC))


def shown(timing: Timing, after: str, count: int, zone: str = NEW_YORK) -> list[str]:
    """Return the first slots as a clock of a zone shows them."""
    found = islice(slots_after(timing, at(after)), count)
    return [f"{to_datetime(slot).astimezone(ZoneInfo(zone)):%m-%d %H:%M%z}" for slot in found]


# ── changes of the clock ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("missing", "runs"),
    [
        (None, ["03-09 02:30-0500", "03-10 03:00-0400", "03-11 02:30-0400"]),
        ("first_valid", ["03-09 02:30-0500", "03-10 03:00-0400", "03-11 02:30-0400"]),
        ("shift", ["03-09 02:30-0500", "03-10 03:30-0400", "03-11 02:30-0400"]),
        ("skip", ["03-09 02:30-0500", "03-11 02:30-0400", "03-12 02:30-0400"]),
    ],
)
def test_a_missing_time_runs_as_the_schedule_says(missing: str | None, runs: list[str]) -> None:
    """02:30 on 10 March 2024 in New York."""
    cron = Cron("30 2 * * *", timezone=NEW_YORK, missing=missing)  # type: ignore[arg-type]
    assert shown(cron, "2024-03-09", 3) == runs


@pytest.mark.parametrize(
    ("repeated", "runs"),
    [
        (None, ["11-02 01:30-0400", "11-03 01:30-0400", "11-04 01:30-0500"]),
        ("first", ["11-02 01:30-0400", "11-03 01:30-0400", "11-04 01:30-0500"]),
        ("second", ["11-02 01:30-0400", "11-03 01:30-0500", "11-04 01:30-0500"]),
        ("both", ["11-02 01:30-0400", "11-03 01:30-0400", "11-03 01:30-0500"]),
    ],
)
def test_a_repeated_time_runs_as_the_schedule_says(repeated: str | None, runs: list[str]) -> None:
    """01:30 on 3 November 2024 in New York."""
    cron = Cron("30 1 * * *", timezone=NEW_YORK, repeated=repeated)  # type: ignore[arg-type]
    assert shown(cron, "2024-11-02", 3) == runs


def test_a_repeated_time_in_the_middle_of_a_search_is_found() -> None:
    """Asked from between the two, the second is still to come."""
    cron = Cron("30 1 * * *", timezone=NEW_YORK, repeated="both")
    assert shown(cron, "2024-11-03T05:30", 1) == ["11-03 01:30-0500"]


def test_an_expression_of_every_hour_follows_the_clock() -> None:
    """Its runs stay half an hour apart, both ways."""
    cron = Cron("*/30 * * * *", timezone=NEW_YORK)
    for day in ("2024-03-10T04:00", "2024-11-03T03:00"):
        slots = list(islice(slots_after(cron, at(day)), 12))
        assert {after - before for before, after in pairwise(slots)} == {30 * MINUTE}
    assert policies(cron) == ("skip", "both")


def test_hourly_at_half_past_runs_no_more_often_in_spring() -> None:
    """The half hour that is left out would add a run at 03:00."""
    cron = Cron("30 * * * *", timezone=NEW_YORK)
    assert shown(cron, "2024-03-10T06:00", 2) == ["03-10 01:30-0500", "03-10 03:30-0400"]


def test_many_missing_times_run_once_at_the_first_valid_instant() -> None:
    """As does the one that is that instant anyway."""
    cron = Cron("*/20 2-3 * * *", timezone=NEW_YORK)
    assert shown(cron, "2024-03-10T06:00", 3) == ["03-10 03:00-0400", "03-10 03:20-0400", "03-10 03:40-0400"]


def test_shifted_times_are_in_order_and_once() -> None:
    """02:15 becomes 03:15, which is named anyway, and 02:45 becomes 03:45."""
    cron = Cron("15,45 2,3 * * *", timezone=NEW_YORK, missing="shift")
    assert shown(cron, "2024-03-10T06:00", 3) == ["03-10 03:15-0400", "03-10 03:45-0400", "03-11 02:15-0400"]


def test_a_day_that_did_not_exist_has_no_runs_of_its_own() -> None:
    """Samoa had no 30 December 2011: its run comes with the first instant of the 31st."""
    cron = Cron("0 9 * * *", timezone="Pacific/Apia")
    assert shown(cron, "2011-12-29", 3, "Pacific/Apia") == [
        "12-29 09:00-1000",
        "12-31 00:00+1400",
        "12-31 09:00+1400",
    ]


@pytest.mark.parametrize(
    ("day", "hour"), [("2024-03-10", 13), ("2024-03-11", 13), ("2024-11-03", 14), ("2024-11-04", 14)]
)
def test_nine_in_new_york_is_another_hour_of_utc_in_winter(day: str, hour: int) -> None:
    """On both days of the change, and after."""
    slot = next_after(Cron("0 9 * * *", timezone=NEW_YORK), at(day))
    assert slot == at(f"{day}T{hour}:00")


# ── windows ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("day", ["2024-03-08", "2024-03-11", "2024-11-01", "2024-11-04"])
@pytest.mark.parametrize(
    "timing",
    [
        Cron("*/5 * * * MON-FRI", timezone=NEW_YORK, between=("09:30", "16:00")),
        Every(interval=5 * MINUTE, timezone=NEW_YORK, between=("09:30", "16:00")),
    ],
)
def test_a_trading_day_has_79_slots(timing: Timing, day: str) -> None:
    """From 09:30 to 16:00, both included, beside both changes of the clock."""
    slots = slots_between(timing, at(day), at(day) + DAY, 1000)
    shown = [f"{to_datetime(slot).astimezone(ZoneInfo(NEW_YORK)):%H:%M}" for slot in slots]
    assert (len(shown), shown[0], shown[-1]) == (79, "09:30", "16:00")


def test_weekdays_and_holidays_are_of_the_local_date() -> None:
    """Monday evening in New York is Tuesday in UTC."""
    cron = Cron("0 22 * * *", timezone=NEW_YORK, weekdays=("MON", "TUE"), holidays=("2024-01-02",))
    assert shown(cron, "2024-01-01", 3) == ["01-01 22:00-0500", "01-08 22:00-0500", "01-09 22:00-0500"]


def test_a_window_past_midnight() -> None:
    """From 22:00 to 02:00."""
    every = Every(interval=2 * HOUR, between=("22:00", "02:00"))
    assert shown(every, "2024-01-01T12:00", 4, "UTC") == [
        "01-01 22:00+0000",
        "01-02 00:00+0000",
        "01-02 02:00+0000",
        "01-02 22:00+0000",
    ]


def test_a_window_of_an_interval_opens_again_when_the_clock_is_set_back() -> None:
    """From 01:10 to 01:20, twice on that day."""
    every = Every(interval=5 * MINUTE, timezone=NEW_YORK, between=("01:10", "01:20"))
    assert shown(every, "2024-11-03", 7) == [
        "11-03 01:10-0400",
        "11-03 01:15-0400",
        "11-03 01:20-0400",
        "11-03 01:10-0500",
        "11-03 01:15-0500",
        "11-03 01:20-0500",
        "11-04 01:10-0500",
    ]


def test_a_window_that_never_opens_ends_the_search() -> None:
    """An interval of a week meets one weekday only."""
    assert next_after(Every(interval=7 * DAY, weekdays=("MON",)), at("2024-01-01")) is None
    assert next_after(Cron("0 0 * * TUE", weekdays=("MON",)), at("2024-01-01")) is None


# ── intervals, single instants, bounds ───────────────────────────────────────


def test_an_interval_keeps_its_phase() -> None:
    """Wherever it is asked from, also before its anchor."""
    every = Every(interval=90 * MINUTE, anchor=at("2024-01-01T00:15"))
    assert shown(every, "2024-01-01", 2, "UTC") == ["01-01 00:15+0000", "01-01 01:45+0000"]
    assert shown(every, "2024-01-01T01:45", 1, "UTC") == ["01-01 03:15+0000"]
    assert shown(every, "2023-12-31T22:00", 1, "UTC") == ["12-31 22:45+0000"]


def test_an_interval_of_a_day_is_not_a_time_of_day() -> None:
    """It stays 24 hours when the clock is set."""
    every = Every(interval=DAY, anchor=at("2024-03-09T14:00"))
    assert shown(every, "2024-03-09T14:00", 2) == ["03-10 10:00-0400", "03-11 10:00-0400"]


def test_a_single_instant_comes_once_and_never_early() -> None:
    """Slots are whole milliseconds: it is rounded up."""
    assert slots_between(At(1_000_001), 0, 10 * SECOND, 5) == [1_001_000]
    assert next_after(At(1_001_000), 1_001_000) is None


def test_the_first_slots_are_returned_up_to_the_limit() -> None:
    """And none after the end."""
    every = Every(interval=SECOND)
    assert slots_between(every, 0, 10 * SECOND, 2) == [SECOND, 2 * SECOND]
    assert slots_between(every, 0, 2 * SECOND - 1, 2) == [SECOND]
    assert slots_between(every, 0, 10 * SECOND, 0) == []


def test_the_last_slots_before_an_instant() -> None:
    """However long ago they were, the earliest first."""
    yearly = Cron("0 0 1 1 *")
    assert slots_before(yearly, 0, at("2024-06-01"), 2) == [at("2023-01-01"), at("2024-01-01")]
    assert slots_before(yearly, at("2023-06-01"), at("2024-06-01"), 2) == [at("2024-01-01")]
    assert slots_before(yearly, at("2024-01-01"), at("2024-06-01"), 2) == []
    assert slots_before(yearly, at("2024-06-01"), at("2024-01-01"), 2) == []
    assert slots_before(yearly, 0, at("2024-06-01"), 0) == []
    assert slots_before(Every(interval=SECOND), 0, at("2024-06-01"), 1) == [at("2024-06-01")]


def test_no_slot_is_later_than_a_store_can_keep() -> None:
    """The year 2255."""
    assert next_after(Cron("0 0 1 1 *"), LAST_INSTANT) is None
    assert next_after(Every(interval=DAY), LAST_INSTANT) is None


def test_a_fraction_of_a_second_before_a_slot_is_before_it() -> None:
    """And the slot itself is not after itself."""
    noon = at("2024-01-01T12:00")
    cron = Cron("0 12 * * *")
    assert next_after(cron, noon - 1) == noon
    assert next_after(cron, noon) == noon + DAY


def test_a_zone_that_the_machine_does_not_know_is_said() -> None:
    """Whoever asks records it, and goes on with the other schedules."""
    with pytest.raises(ValueError, match=r"not a time zone; use Europe/Berlin"):
        next_after(Cron("0 12 * * *", timezone="Europe/Berlyn"), 0)
