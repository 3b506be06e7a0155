"""Evaluate the handlers' marks: throughput, waits, and whether every job ran exactly once.

The marks lie outside of every peer, so no peer's own books are believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.protocol import MARK


class Mark(NamedTuple):
    """A handler was called for this job at this time."""

    number: int
    at: int


class MarksVerdict(NamedTuple):
    """How many jobs never ran, ran more than once, or were never enqueued."""

    lost: int
    twice: int
    unknown: int

    @property
    def ok(self) -> bool:
        """Whether every job ran exactly once."""
        return not any(self)

    def __str__(self) -> str:
        return "all once" if self.ok else f"{self.lost} lost, {self.twice} twice, {self.unknown} unknown"


def read(file: Path) -> list[Mark]:
    """Return the complete marks in the order in which they were written."""
    data = file.read_bytes() if file.exists() else b""
    return [Mark(*found) for found in MARK.iter_unpack(data[: len(data) - len(data) % MARK.size])]


def judge(marks: Sequence[Mark], jobs: int) -> MarksVerdict:
    """Compare the marks with jobs 0 to `jobs` − 1.

    >>> str(judge([Mark(0, 5), Mark(1, 6), Mark(1, 7), Mark(9, 8)], 3))
    '1 lost, 1 twice, 1 unknown'
    """
    runs = Counter(mark.number for mark in marks)
    known = [number for number in runs if number < jobs]
    return MarksVerdict(jobs - len(known), sum(runs[number] > 1 for number in known), len(runs) - len(known))


def rate(marks: Sequence[Mark], jobs: int) -> float:
    """Return the jobs per second from the first handler, which is not counted, to the last.

    What a worker needs to start is not in it.

    >>> rate([Mark(0, 10**9), Mark(1, 2 * 10**9), Mark(2, 3 * 10**9), Mark(7, 9 * 10**9)], 3)
    1.0
    """
    moments = [mark.at for mark in marks if mark.number < jobs]
    took = max(moments) - min(moments)
    return (len(moments) - 1) * 1e9 / took if took else 0.0


def waits(marks: Sequence[Mark], brought: Mapping[int, int]) -> list[float]:
    """Return the microseconds from just before each enqueue until its handler was called.

    >>> waits([Mark(4, 7_000), Mark(5, 9_000), Mark(1, 0)], {5: 4_000, 4: 6_000})
    [5.0, 1.0]
    """
    entered: dict[int, int] = {}
    for mark in marks:
        entered.setdefault(mark.number, mark.at)
    return [(entered[number] - before) / 1e3 for number, before in brought.items()]
