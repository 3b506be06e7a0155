"""The result of a worker profile as JSON, and the page made from it. Measures nothing."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parent.parent
RESULT: Final = ROOT / "docs" / "proofs" / "worker-profile.json"
PAGE: Final = ROOT / "docs" / "proofs" / "worker-profile.md"

SHOWN_US: Final = 0.05

_HEAD: Final = """\
# Where the time goes in a worker

Generated from `docs/proofs/worker-profile.json`, which `make bench-worker-profile ARGS=--write` writes; do
not edit by hand.

Microseconds of processor time that one job costs, from its claim to its settlement, in all threads of the
worker's process. The handler does nothing, the store is SQLite with `synchronous=full`. Waiting for the disk
is not in it. Timing the parts costs some itself: the last row is the whole without any timer, of runs in
between.
"""


class Column(msgspec.Struct, frozen=True):
    """One case: the median of each part over all rounds, and the total of each round without timers."""

    name: str
    parts: dict[str, float]
    untimed: list[float]


class ProfileResult(msgspec.Struct, frozen=True):
    """One run of all cases: how many jobs, how many rounds, on which machine."""

    jobs: int
    rounds: int
    about: dict[str, str]
    columns: tuple[Column, ...]


def page(found: ProfileResult) -> str:
    """Return the page of a run."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: ProfileResult) -> Iterator[str]:
    yield _HEAD
    about = ", ".join(f"{key} {value}" for key, value in found.about.items())
    yield f"{found.jobs:,} jobs a case, {found.rounds} rounds, all cases in turns. On {about}.\n"
    yield "| part | " + " | ".join(column.name for column in found.columns) + " |"
    yield "|---|" + "---:|" * len(found.columns)
    parts = sorted({part for column in found.columns for part in column.parts})
    for part in parts:
        cells = [column.parts.get(part, 0.0) for column in found.columns]
        if max(cells) >= SHOWN_US:
            yield f"| {part} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |"
    sums = (sum(column.parts.values()) for column in found.columns)
    yield "| **all, timed** | " + " | ".join(f"**{one:.0f}**" for one in sums) + " |"
    yield "| **all, untimed** (lowest to highest) | " + " | ".join(map(_whole, found.columns)) + " |"


def _whole(column: Column) -> str:
    untimed = column.untimed
    return f"**{statistics.median(untimed):.0f}** ({min(untimed):.0f} to {max(untimed):.0f})"
