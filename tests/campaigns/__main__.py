"""Run campaigns: ``python -m tests.campaigns --minutes 10 --only worker-kill --store postgres --n 50``.

Goes on where the book ends: of the campaigns that are asked for, the one that is furthest from its goal is
next, a piece at a time, until the time is over or each has had its piece. Interrupted, only the piece that
was under way is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import time
import traceback
from pathlib import Path

from tests.campaigns.book import BOOK, Piece, Tally, append, percentile, piece, read, tallies, upper_bound
from tests.campaigns.errand import Errand
from tests.campaigns.page import write_page
from tests.campaigns.places import STORES
from tests.campaigns.roster import CAMPAIGNS

LONGEST = 10 * 60.0
"""Seconds that one piece takes at most, about."""


def main() -> int:
    """Do what was asked for; fail if any promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="stop after about so long")
    parser.add_argument("--only", action="append", choices=list(CAMPAIGNS), help="this campaign; may repeat")
    parser.add_argument("--store", action="append", choices=STORES, help="this store; may repeat")
    parser.add_argument("--n", type=int, help="how many faults a piece does; each campaign has its default")
    parser.add_argument("--seed", type=int, help="draw as a piece did that has told its seed")
    parser.add_argument("--book", type=Path, default=BOOK, help="the file that lines are appended to")
    parser.add_argument("--render", action="store_true", help="do nothing, and write the page anew")
    said = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):  # so that nothing that was started is left behind
        signal.signal(number, signal.default_int_handler)
    failed = 0
    if not said.render:
        deadline = time.monotonic() + said.minutes * 60
        for name, store in _order(said.only, said.store, tallies(read(said.book))):
            left = min(LONGEST, deadline - time.monotonic())
            if left <= 0:
                print("the time is over; what was not done is next in the next run")
                break
            found = run_piece(name, store, said.n or CAMPAIGNS[name].portion, left, said.seed)
            append(found, said.book)
            if said.book == BOOK:
                write_page()
            failed += bool(found.failures)
            print(told(found, tallies(read(said.book)).get((name, store))), flush=True)
    else:
        write_page()
    return 1 if failed else 0


def _order(
    only: list[str] | None, stores: list[str] | None, sums: dict[tuple[str, str], Tally]
) -> list[tuple[str, str]]:
    """Give what is wanted, what is furthest from its goal first."""
    wanted = [
        (name, store)
        for name, campaign in CAMPAIGNS.items()
        for store in campaign.stores
        if (not only or name in only) and (not stores or store in stores)
    ]
    return sorted(wanted, key=lambda one: sums[one].n / CAMPAIGNS[one[0]].goal if one in sums else 0)


def run_piece(name: str, store: str, wanted: int, seconds: float, seed: int | None = None) -> Piece:
    """Run one piece of a campaign; what a promise was broken by is in its failures."""
    errand = Errand(store, random.SystemRandom().getrandbits(32) if seed is None else seed, wanted, seconds)
    began = time.monotonic()
    try:
        asyncio.run(CAMPAIGNS[name].play(errand))
    except (AssertionError, TimeoutError) as error:
        errand.fail(f"{type(error).__name__}: {error}"[:2_000])
        traceback.print_exc()
    return piece(name, errand, time.monotonic() - began)


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
        line += f"\n  in all: {sums.n}, {sums.failed} failures (< {100 * sums.bound:.2g} % at 95 %)"
    return "\n".join([line, *(f"  FAILED: {one}" for one in found.failures)])


if __name__ == "__main__":
    raise SystemExit(main())
