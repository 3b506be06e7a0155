"""The version of the zone data is found wherever a system keeps it."""

from __future__ import annotations

import sys
import zoneinfo
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from string import ascii_lowercase

import pytest

from fairlane.runtime.zone_data import UNKNOWN, zone_data_version


@pytest.fixture(autouse=True)
def _search_path_afterwards() -> Iterator[None]:
    path = zoneinfo.TZPATH
    yield
    zoneinfo.reset_tzpath(path)


def system(folder: Path, **files: str) -> None:
    """Let the system's zone data be in a folder."""
    (folder / "UTC").write_bytes(b"")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    zoneinfo.reset_tzpath([str(folder / "absent"), str(folder)])


def test_the_rules_name_their_version(tmp_path: Path) -> None:
    """As on Debian."""
    system(tmp_path, **{"tzdata.zi": "# version 2031c\nR d ...\n", "+VERSION": "2030a\n"})
    assert zone_data_version() == "2031c"


def test_a_file_names_the_version(tmp_path: Path) -> None:
    """As on macOS."""
    system(tmp_path, **{"+VERSION": "2030a\n"})
    assert zone_data_version() == "2030a"


def test_a_replaced_version_is_seen(tmp_path: Path) -> None:
    """The process goes on."""
    system(tmp_path, **{"+VERSION": "2030a\n"})
    assert zone_data_version() == "2030a"
    system(tmp_path, **{"+VERSION": "2030b\n"})
    assert zone_data_version() == "2030b"


def test_data_without_a_version_is_of_an_unknown_one(tmp_path: Path) -> None:
    """Also where a file is there and empty."""
    system(tmp_path, **{"+VERSION": ""})
    assert zone_data_version() == UNKNOWN


def test_a_system_without_data_reads_the_package(tmp_path: Path) -> None:
    """As in a slim image."""
    zoneinfo.reset_tzpath([str(tmp_path)])
    year, _, number = version("tzdata").partition(".")
    assert zone_data_version() == f"{year}{ascii_lowercase[int(number) - 1]}"


def test_without_any_data_the_version_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No zone can be read then, and each schedule says so."""
    zoneinfo.reset_tzpath([str(tmp_path)])
    monkeypatch.setitem(sys.modules, "tzdata", None)
    assert zone_data_version() == UNKNOWN
