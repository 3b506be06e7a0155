"""The book of campaigns: one line for each piece, only ever appended to, and what the lines add up to."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from tests.campaigns.errand import Errand

ROOT: Final = Path(__file__).parent.parent.parent
BOOK: Final = ROOT / "docs" / "proofs" / "faults.jsonl"
CONFIDENCE: Final = 0.95
HIGHEST: Final = frozenset({"next_seed", "connections_at_most"})
"""Figures of which the highest counts; all others but the lowest add up."""

LOWEST: Final = frozenset({"healthy jobs a second in %"})
"""Figures of which the lowest counts."""


class Piece(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one piece did and found. With `mended`, it found a defect that is no more: it says what and where.

    The load is that of the machine, in runnable processes, at the piece's end.
    """

    campaign: str
    store: str
    at: str
    commit: str
    seed: int
    n: int
    seconds: float
    host: dict[str, str]
    load: float
    versions: dict[str, str]
    settings: dict[str, str]
    failures: tuple[str, ...] = ()
    recovery: tuple[float, ...] = ()
    figures: dict[str, float] = {}
    mended: str = ""


class Tally(msgspec.Struct, frozen=True):
    """What some pieces of one campaign on one store add up to."""

    n: int
    failed: int
    pieces: int
    recovery: tuple[float, ...]
    figures: dict[str, float]

    @property
    def bound(self) -> float:
        """The rate of failures that these trials leave possible, at 95 %."""
        return upper_bound(self.n, self.failed)


def upper_bound(n: int, failed: int = 0) -> float:
    """Return the highest rate at which so few failures in n trials are not yet a surprise of one in twenty.

    >>> round(upper_bound(200), 4), round(upper_bound(200, 2), 4), upper_bound(0)
    (0.0149, 0.0311, 1.0)
    """
    if failed >= n:
        return 1.0
    low, high = failed / n, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        is_likely = _at_most(failed, n, rate) > 1 - CONFIDENCE
        low, high = (rate, high) if is_likely else (low, rate)
    return high


def _at_most(failed: int, n: int, rate: float) -> float:
    return math.fsum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(failed + 1))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that so large a share of all does not exceed.

    >>> percentile([3, 1, 2, 4], 0.5), percentile([3, 1, 2, 4], 0.99)
    (2, 4)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def piece(campaign: str, errand: Errand, seconds: float) -> Piece:
    """Combine what an errand has found with what it was found on."""
    versions = {"Fairlane": version("fairlane"), "Python": platform.python_version(), **errand.versions}
    return Piece(
        campaign=campaign,
        store=errand.store,
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        commit=commit(),
        seed=errand.seed,
        n=errand.n,
        seconds=round(seconds, 1),
        host={"cores": str(os.cpu_count()), "system": platform.system(), "kernel": platform.release()},
        load=round(os.getloadavg()[0], 1),
        versions=versions,
        settings=errand.settings,
        failures=tuple(errand.failures),
        recovery=tuple(errand.recovery),
        figures={name: value for name, value in errand.figures.items() if value},
    )


def commit() -> str:
    """Name the commit, and say so if what ran is not what it holds."""

    def git(*arguments: str) -> str:
        done = subprocess.run(  # noqa: S603 (a question to git)
            ["git", *arguments],  # noqa: S607 (the one that made the tree)
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    name = git("rev-parse", "--short=12", "HEAD") or "unknown"
    return f"{name}, changed since" if git("status", "--porcelain", "src", "tests") else name


def append(found: Piece, book: Path = BOOK) -> None:
    """Write one line more, by one write, since other pieces may append theirs at the same time."""
    fd = os.open(book, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(fd, msgspec.json.encode(found) + b"\n")
    finally:
        os.close(fd)


def read(book: Path = BOOK) -> list[Piece]:
    """Return all pieces, in their order."""
    lines = book.read_bytes().splitlines() if book.exists() else []
    return [msgspec.json.decode(line, type=Piece) for line in lines]


def next_seed(pieces: Iterable[Piece], campaign: str, store: str) -> int:
    """Return the seed after the last that any piece has run."""
    own = (one for one in pieces if (one.campaign, one.store) == (campaign, store))
    return max((int(one.figures.get("next_seed", 0)) for one in own), default=0)


def last_enough(pieces: Iterable[Piece], campaign: str, store: str, enough: int) -> list[Piece]:
    """Return the last pieces that together have so many trials, or all of them, without mended defects.

    They say how long a recovery takes: older ones tell of a tree that is no more.
    """
    own = [one for one in pieces if (one.campaign, one.store) == (campaign, store) and not one.mended]
    first, trials = len(own), 0
    while first and trials < enough:
        first -= 1
        trials += own[first].n
    return own[first:]


def _together(name: str, past: float, value: float) -> float:
    if name in LOWEST:
        return min(past, value)
    return max(past, value) if name in HIGHEST else past + value


def tallies(pieces: Iterable[Piece]) -> dict[tuple[str, str], Tally]:
    """Add up what counts by campaign and store; what found a defect that is mended is told, not counted."""
    sums: dict[tuple[str, str], Tally] = {}
    for one in pieces:
        if one.mended:
            continue
        before = sums.get((one.campaign, one.store), Tally(0, 0, 0, (), {}))
        figures = dict(before.figures)
        for name, value in one.figures.items():
            figures[name] = _together(name, figures[name], value) if name in figures else value
        sums[one.campaign, one.store] = Tally(
            before.n + one.n,
            before.failed + len(one.failures),
            before.pieces + 1,
            (*before.recovery, *one.recovery),
            figures,
        )
    return sums
