"""Read and write durations and sizes with units: "90s", "5m", "10KB". Knows no keys."""

from __future__ import annotations

import re
from typing import Final

from fairlane.app.enqueue.checks import LONGEST_WAIT
from fairlane.model.instants import SECOND

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_SECONDS: Final = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_BYTES: Final = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}

_LONGEST: Final = LONGEST_WAIT / SECOND
_LARGEST: Final = 2**62

DURATIONS: Final = 'seconds as a number, or "90s", "5m", "2h", "7d"'
SIZES: Final = 'bytes as a number, or "10KB", "1MB", "1GB"'


def seconds_of(value: object) -> float:
    """Return a duration in seconds; ValueError if it is not one.

    >>> seconds_of("1.5h"), seconds_of(20), seconds_of("250ms"), seconds_of("20")
    (5400.0, 20, 0.25, 20.0)
    """
    seconds = _scaled(value, _SECONDS) if isinstance(value, str) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _LONGEST:
        raise ValueError
    return seconds


def bytes_of(value: object) -> int:
    """Return a size in whole bytes, 1,024 to the kilobyte; ValueError if it is not one.

    >>> bytes_of("10KB"), bytes_of("1MB"), bytes_of(400), bytes_of("1.5KB")
    (10240, 1048576, 400, 1536)
    """
    size = _scaled(value, _BYTES) if isinstance(value, str) else value
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 <= size <= _LARGEST or size % 1:
        raise ValueError
    return int(size)


def _scaled(text: str, units: dict[str, float] | dict[str, int]) -> float:
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in units:
        raise ValueError
    return float(found[1]) * units[found[2]]


def duration_text(seconds: float) -> str:
    """Return a duration in the largest unit that needs no fraction.

    >>> duration_text(1800), duration_text(90.0), duration_text(0.25), duration_text(0)
    ('30m', '90s', '250ms', '0s')
    """
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds * 1_000:g}ms" if seconds else "0s"


def size_text(size: int) -> str:
    """Return a size in the largest unit that needs no fraction.

    >>> size_text(10_240), size_text(2**30), size_text(1_000)
    ('10KB', '1GB', '1000')
    """
    for unit in ("GB", "MB", "KB"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return str(size)
