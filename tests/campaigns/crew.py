"""Several pieces at a time, each in a process of its own, until every goal is reached or the time is over.

Knows of a campaign its goal, what a piece does at most, and how many cores that keeps busy.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from tests.campaigns.book import ROOT, read, tallies
from tests.campaigns.roster import CAMPAIGNS
from tests.campaigns.single import BROKEN
from tests.simulation.crowd import CORES

LONGEST: Final = 10 * 60.0
"""Seconds after which a piece begins nothing more."""
SHORTEST: Final = 20.0
"""Seconds that must be left for a piece to be worth its start."""
AT_ONCE: Final = 3 * CORES
"""Pieces at the same time: most of them mostly wait."""
_ATTEMPTS: Final = 2
"""Failed pieces after which a campaign is not begun again on that store in this run."""

Row: TypeAlias = tuple[str, str]
"""A campaign and a store."""


class Share(NamedTuple):
    """What one piece is to do."""

    row: Row
    n: int


def next_share(
    rows: Sequence[Row],
    done: Mapping[Row, int],
    under_way: Sequence[Share],
    at_once: int = AT_ONCE,
    goal: int | None = None,
) -> Share | None:
    """Return a share of the row that is furthest from its goal, of those that may run now.

    What is under way counts as if it were done. None if all goals are in reach or there is no room.
    """
    counted = Counter(done)
    for one in under_way:
        counted[one.row] += one.n
    best: tuple[float, Share] | None = None
    for row in rows:
        campaign = CAMPAIGNS[row[0]]
        wanted = goal or campaign.goal
        left, share = wanted - counted[row], counted[row] / wanted
        if left > 0 and _has_room(row, under_way, at_once) and (best is None or share < best[0]):
            best = share, Share(row, min(left, campaign.portion))
    return None if best is None else best[1]


def _has_room(row: Row, under_way: Sequence[Share], at_once: int) -> bool:
    """Whether a piece may begin: those that burn time share the cores, the others leave them a place."""
    campaign = CAMPAIGNS[row[0]]
    if campaign.is_in_order and any(one.row == row for one in under_way):
        return False  # seeds go on from the book's last line: two at once would run the same ones
    if not under_way:
        return True
    if campaign.is_timed or any(CAMPAIGNS[one.row[0]].is_timed for one in under_way):
        return False
    burning = [CAMPAIGNS[one.row[0]].cores for one in under_way if CAMPAIGNS[one.row[0]].cores]
    if campaign.cores:
        return len(under_way) < at_once and sum(burning) + campaign.cores <= CORES
    return len(under_way) < at_once and len(under_way) - len(burning) < at_once - 1


class Crew:
    """The pieces under way, and what they leave to do."""

    def __init__(
        self, rows: Sequence[Row], book: Path, *, at_once: int, seconds: float, goal: int | None
    ) -> None:
        """Have so much time for these rows of the roster."""
        self._rows = rows
        self._book = book
        self._at_once = at_once
        self._goal = goal
        self._deadline = time.monotonic() + seconds
        self._under_way: dict[Future[int], tuple[Share, subprocess.Popen[bytes]]] = {}
        self._failed: Counter[Row] = Counter()

    def run(self) -> int:
        """Run pieces until there is nothing left to begin; say how many failed."""
        with ThreadPoolExecutor(self._at_once) as waiters:
            try:
                while True:
                    self._begin(waiters)
                    if not self._under_way:
                        return self._failed.total()
                    for ended in wait(self._under_way, return_when=FIRST_COMPLETED).done:
                        self._note(ended)
            finally:
                for _, process in self._under_way.values():  # we were interrupted: each cleans up
                    process.send_signal(signal.SIGINT)

    def _begin(self, waiters: ThreadPoolExecutor) -> None:
        """Fill the places that are free."""
        while True:
            left = self._deadline - time.monotonic()
            share = None if left < SHORTEST else self._next()
            if share is None:
                return
            (name, store), n = share
            command = (sys.executable, "-m", "tests.campaigns.single", name, store, f"--n={n}")
            options = (f"--seconds={min(LONGEST, left):.0f}", f"--book={self._book}")
            process = subprocess.Popen((*command, *options), cwd=ROOT, start_new_session=True)  # noqa: S603 (our own)
            self._under_way[waiters.submit(process.wait)] = (share, process)

    def _next(self) -> Share | None:
        done = {row: tally.n for row, tally in tallies(read(self._book)).items()}
        rows = [row for row in self._rows if self._failed[row] < _ATTEMPTS]
        under_way = [share for share, _ in self._under_way.values()]
        return next_share(rows, done, under_way, self._at_once, self._goal)

    def _note(self, ended: Future[int]) -> None:
        """Tell of a piece that failed or broke; the others go on."""
        share, _ = self._under_way.pop(ended)
        if code := ended.result():
            self._failed[share.row] += 1
            if code != BROKEN:
                print(
                    f"{' on '.join(share.row)}: its process ended with {code}; nothing is counted", flush=True
                )
