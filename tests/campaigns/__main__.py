"""Run campaigns: ``python -m tests.campaigns --minutes 60 --at-once 6 --only worker-kill --store postgres``.

Goes on where the book ends: what is furthest from its goal is next, several pieces at a time, until every
goal is reached or the time is over. Interrupted, only the pieces that were under way are lost. One piece
again, as its seed drew it: ``python -m tests.campaigns.single``.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from tests.campaigns.book import BOOK, read, tallies
from tests.campaigns.crew import AT_ONCE, Crew, Row
from tests.campaigns.page import write_page
from tests.campaigns.places import STORES
from tests.campaigns.roster import CAMPAIGNS


def main() -> int:
    """Do what was asked for; fail if any promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="begin nothing after about so long")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="how many pieces run at the same time")
    parser.add_argument("--only", action="append", choices=list(CAMPAIGNS), help="this campaign; may repeat")
    parser.add_argument("--store", action="append", choices=STORES, help="this store; may repeat")
    parser.add_argument("--goal", type=int, help="ask for so many of each instead of the roster's number")
    parser.add_argument("--book", type=Path, default=BOOK, help="the file that lines are appended to")
    parser.add_argument("--render", action="store_true", help="do nothing, and write the page anew")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    rows = _rows(arguments.only, arguments.store)
    failed = 0
    try:
        if not arguments.render:
            crew = Crew(
                rows,
                arguments.book,
                at_once=arguments.at_once,
                seconds=arguments.minutes * 60,
                goal=arguments.goal,
            )
            failed = crew.run()
            print(_left(rows, arguments.book, arguments.goal), flush=True)
    finally:
        if arguments.book == BOOK:
            write_page()
    return 1 if failed else 0


def _rows(only: list[str] | None, stores: list[str] | None) -> list[Row]:
    """Return what is asked for, of all that there is."""
    return [
        (name, store)
        for name, campaign in CAMPAIGNS.items()
        for store in campaign.stores
        if (not only or name in only) and (not stores or store in stores)
    ]


def _left(rows: list[Row], book: Path, goal: int | None) -> str:
    """Say what is left to do."""
    sums = tallies(read(book))
    lines = []
    for row in rows:
        done, wanted = sums[row].n if row in sums else 0, goal or CAMPAIGNS[row[0]].goal
        if done < wanted:
            lines.append(f"  {' on '.join(row)}: {done} of {wanted}")
    return "\n".join(["left to do:", *lines]) if lines else "every goal is reached"


if __name__ == "__main__":
    raise SystemExit(main())
