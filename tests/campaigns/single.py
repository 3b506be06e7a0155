"""One piece in a process of its own: ``python -m tests.campaigns.single worker-kill postgres --n 20``.

What the runner starts, several at a time. It appends its line to the book and says what it found; its exit
code is 0 if every promise was kept and 3 if one was not.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import time
import traceback
from pathlib import Path
from typing import Final

from tests.campaigns.book import (
    BOOK,
    Piece,
    Tally,
    append,
    next_seed,
    percentile,
    piece,
    read,
    tallies,
    upper_bound,
)
from tests.campaigns.errand import Errand
from tests.campaigns.places import STORES
from tests.campaigns.roster import CAMPAIGNS

BROKEN: Final = 3
"""No exit code that Python itself gives: that of a piece which broke a promise, and has told it."""


def main() -> int:
    """Do one piece."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.single", description=__doc__)
    parser.add_argument("campaign", choices=list(CAMPAIGNS))
    parser.add_argument("store", choices=STORES)
    parser.add_argument("--n", type=int, required=True, help="how many faults")
    parser.add_argument("--seconds", type=float, default=600, help="begin none after so long")
    parser.add_argument("--seed", type=int, help="draw as a piece did that has told its seed")
    parser.add_argument("--book", type=Path, default=BOOK, help="the file that the line is appended to")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):  # so that nothing that was started is left behind
        signal.signal(number, signal.default_int_handler)
    found = run_piece(
        arguments.campaign, arguments.store, arguments.n, arguments.seconds, arguments.seed, arguments.book
    )
    if found.n or found.failures:  # on a busy machine the time may be over before anything was harmed
        append(found, arguments.book)
    print(told(found, tallies(read(arguments.book)).get((arguments.campaign, arguments.store))), flush=True)
    return BROKEN if found.failures else 0


def run_piece(
    name: str, store: str, wanted: int, seconds: float, seed: int | None = None, book: Path = BOOK
) -> Piece:
    """Run one piece of a campaign; what a promise was broken by is in its failures."""
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    errand = Errand(store, seed, wanted, seconds, next_seed(read(book), name, store))
    began = time.monotonic()
    try:
        asyncio.run(CAMPAIGNS[name].play(errand))
    except* (AssertionError, TimeoutError) as broken:  # of several that broke together, the first tells it
        errand.fail(_story(broken))
        traceback.print_exc()
    return piece(name, errand, time.monotonic() - began)


def _story(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:2_000]


def told(found: Piece, sums: Tally | None) -> str:
    """Say what a piece did and found, and what there is by now."""
    failed, recovery = len(found.failures), ""
    if found.recovery:
        p50, p99 = percentile(found.recovery, 0.5), percentile(found.recovery, 0.99)
        recovery = f", recovered p50 {p50:.2f} s, p99 {p99:.2f} s"
    line = (
        f"{found.campaign} on {found.store}: {found.n} in {found.seconds:.0f} s, {failed} failures"
        f" (< {100 * upper_bound(found.n, failed):.2g} %){recovery}; seed {found.seed}; "
        + ", ".join(f"{name} {value:g}" for name, value in found.figures.items())
    )
    if sums is not None:
        goal = CAMPAIGNS[found.campaign].goal
        line += f"\n  in all: {sums.n} of {goal}, {sums.failed} failures (< {100 * sums.bound:.2g} % at 95 %)"
    return "\n".join([line, *(f"  FAILED: {one}" for one in found.failures)])


if __name__ == "__main__":
    raise SystemExit(main())
