"""Zones are found by name, and read anew when their data has changed."""

from __future__ import annotations

import zoneinfo
from pathlib import Path

import pytest

from fairlane.model.schedule.slots import next_after
from fairlane.model.schedule.timing import Cron
from fairlane.model.schedule.zones import find_zone, forget_zones, offset_at, zone_hint


@pytest.mark.parametrize(
    "name", ["localtime", "Factory", "America", "../Berlin", "Mars", "", "\0", "x" * 500]
)
def test_what_is_no_zone_of_every_machine_is_refused(name: str) -> None:
    """A folder, a path, nothing, and what another machine reads otherwise."""
    with pytest.raises(ValueError, match="not a time zone"):
        find_zone(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("europe/berlin", "use Europe/Berlin"),
        ("US/Eastren", "use US/Eastern"),
        ("New York", "use America/New_York"),
        ("Kolkatta", "use Asia/Kolkata"),
        ("utc", "use UTC"),
        ("###", "name one as Europe/Berlin or UTC"),
    ],
)
def test_the_nearest_names_are_shown(name: str, hint: str) -> None:
    """Of the whole name, or of the city."""
    assert zone_hint(name).startswith(hint)


def test_new_zone_data_moves_slots(tmp_path: Path) -> None:
    """A process that runs on reads it after it was told to forget."""
    cron = Cron("0 9 * * *", timezone="Test/City")
    path = zoneinfo.TZPATH
    try:
        zoneinfo.reset_tzpath([str(tmp_path), *path])
        (tmp_path / "Test").mkdir()
        put(tmp_path, "Etc/GMT-3")
        assert next_after(cron, 0) == 6 * 3_600_000_000
        put(tmp_path, "Etc/GMT-4")
        assert next_after(cron, 0) == 6 * 3_600_000_000
        forget_zones()
        assert next_after(cron, 0) == 5 * 3_600_000_000
        assert offset_at(find_zone("Test/City"), 0) == 4 * 3_600_000_000
    finally:
        zoneinfo.reset_tzpath(path)
        forget_zones()


def put(folder: Path, like: str) -> None:
    """Let the zone Test/City be like another."""
    data = next(path for place in zoneinfo.TZPATH[1:] if (path := Path(place) / like).exists())
    (folder / "Test" / "City").write_bytes(data.read_bytes())
