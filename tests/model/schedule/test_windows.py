"""When a window is open, and how its parts are written."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest

from fairlane.model.schedule.timing import Window
from fairlane.model.schedule.windows import hours_of, read_date, read_time, read_weekday


def opening(window: Window, local: str) -> str:
    """Return when a window is open, from a local time on."""
    hours = hours_of(window)
    assert hours is not None
    return hours.opening(datetime.fromisoformat(local)).isoformat(" ", "minutes")


def test_without_bounds_a_window_is_always_open() -> None:
    """Nothing needs to be asked."""
    assert hours_of(Window()) is None


@pytest.mark.parametrize(
    ("local", "opens"),
    [
        ("2026-11-20T09:29", "2026-11-20 09:30"),
        ("2026-11-20T09:30", "2026-11-20 09:30"),
        ("2026-11-20T16:00", "2026-11-20 16:00"),
        ("2026-11-20T16:00:01", "2026-11-21 09:30"),
    ],
)
def test_both_ends_of_a_window_are_open(local: str, opens: str) -> None:
    """Not a second longer."""
    assert opening(Window(between=("09:30", "16:00")), local) == opens


@pytest.mark.parametrize(
    ("local", "opens"),
    [
        ("2026-11-20T21:59", "2026-11-20 22:00"),
        ("2026-11-20T23:00", "2026-11-20 23:00"),
        ("2026-11-20T02:00", "2026-11-20 02:00"),
        ("2026-11-20T02:01", "2026-11-20 22:00"),
    ],
)
def test_a_window_goes_past_midnight(local: str, opens: str) -> None:
    """From 22:00 to 02:00."""
    assert opening(Window(between=("22:00", "02:00")), local) == opens


def test_the_next_open_day_begins_at_midnight_if_the_window_is_open_then() -> None:
    """Friday is over, Monday is a holiday."""
    days = {"weekdays": ("mon", "tue", "fri"), "holidays": ("2026-11-23",)}
    assert opening(Window(**days), "2026-11-21T12:00") == "2026-11-24 00:00"  # type: ignore[arg-type]
    late = Window(between=("22:00", "02:00"), **days)  # type: ignore[arg-type]
    assert opening(late, "2026-11-21T12:00") == "2026-11-24 00:00"


def test_parts_are_read() -> None:
    """A time with or without seconds, a day in any case."""
    assert read_time("23:59:59") == time(23, 59, 59)
    assert (read_weekday("Mon"), read_weekday("SUN")) == (0, 6)
    assert read_date("2028-02-29") == date(2028, 2, 29)


@pytest.mark.parametrize("text", ["9:30", "24:00", "09:60", "0930", "09:30+01:00", "09:30:00.5", "", "noon"])
def test_a_time_is_written_in_one_way(text: str) -> None:
    """The refusal shows it."""
    with pytest.raises(ValueError, match="write it as 09:30"):
        read_time(text)


@pytest.mark.parametrize("text", ["Monday", "0", ""])
def test_a_weekday_is_one_of_seven_names(text: str) -> None:
    """The refusal has them."""
    with pytest.raises(ValueError, match="use MON, TUE"):
        read_weekday(text)


@pytest.mark.parametrize("text", ["2026-02-29", "2026-13-01", "20261225", "25.12.2026", ""])
def test_a_date_is_written_in_one_way(text: str) -> None:
    """And must exist."""
    with pytest.raises(ValueError, match="write it as 2026-12-25"):
        read_date(text)
