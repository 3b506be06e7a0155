"""Several pieces at a time, each in a process of its own, until every goal is reached or the time is over.

Knows of a campaign its goal, what a piece does at most, and how many cores that keeps busy.
"""

from __future__ import annotations

import os
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

LONGEST: Final = 10 * 60.0
"""Seconds after which a piece begins nothing more."""
SHORTEST: Final = 20.0
"""Seconds that must be left for a piece to be worth its start."""
CORES: Final = os.cpu_count() or 1
ROOM: Final = 1.4 * CORES
"""How much all pieces under way may ask of the cores: somewhat more than there is, since most wait mostly."""
AT_ONCE: Final = 3 * CORES
_ATTEMPTS: Final = 2
"""Failed pieces after which a campaign is not begun again on that store in this run."""

Row: TypeAlias = tuple[str, str]
"""A campaign and a store."""


class Share(NamedTuple):
    """What one piece is to do."""

    row: Row
    n: int


def next_share(
    rows: Sequence[Row], done: Mapping[Row, int], under_way: Sequence[Share], goal: int | None = None
) -> Share | None:
    """Give a share of the row that is furthest from its goal, of those that have room beside the others.

    What is under way counts as if it were done. None if all goals are in reach or there is no room.
    """
    counted = Counter(done)
    for one in under_way:
        counted[one.row] += one.n
    busy = sum(CAMPAIGNS[name].cores for (name, _), _ in under_way)
    rows_under_way = {one.row for one in under_way}
    best: tuple[float, Share] | None = None
    for row in rows:
        campaign = CAMPAIGNS[row[0]]
        wanted = goal or campaign.goal
        left = wanted - counted[row]
        # Seeds go on from the book's last line, so that two pieces at once would run the same ones.
        is_in_order = campaign.is_in_order and row in rows_under_way
        has_room = not under_way or busy + campaign.cores <= ROOM
        if left <= 0 or is_in_order or not has_room:
            continue
        share = counted[row] / wanted
        if best is None or share < best[0]:
            best = share, Share(row, min(left, campaign.portion))
    return None if best is None else best[1]


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
        while len(self._under_way) < self._at_once:
            left = self._deadline - time.monotonic()
            share = None if left < SHORTEST else self._next()
            if share is None:
                return
            (name, store), n = share
            command = (sys.executable, "-m", "tests.campaigns.single", name, store, f"--n={n}")
            said = (f"--seconds={min(LONGEST, left):.0f}", f"--book={self._book}")
            process = subprocess.Popen((*command, *said), cwd=ROOT, start_new_session=True)  # noqa: S603 (our own)
            self._under_way[waiters.submit(process.wait)] = (share, process)

    def _next(self) -> Share | None:
        done = {row: tally.n for row, tally in tallies(read(self._book)).items()}
        rows = [row for row in self._rows if self._failed[row] < _ATTEMPTS]
        return next_share(rows, done, [share for share, _ in self._under_way.values()], self._goal)

    def _note(self, ended: Future[int]) -> None:
        """Tell of a piece that failed or broke; the others go on."""
        share, _ = self._under_way.pop(ended)
        if code := ended.result():
            self._failed[share.row] += 1
            if code != 1:
                print(
                    f"{' on '.join(share.row)}: its process ended with {code}; nothing is counted", flush=True
                )
