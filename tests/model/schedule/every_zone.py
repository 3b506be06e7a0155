"""Compare our slots with the reference, for every zone: ``python -m tests.model.schedule.every_zone``.

It looks at ten years: at each minute of the day before and after each change of a clock, and of one ordinary
day of each year, with every way to treat missing and repeated times. It prints what differed, and exits with
1 if anything did. ``--keep`` writes docs/proofs/dst, ``--render`` the page of what was compared before.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, date, datetime, timedelta
from itertools import product
from random import Random
from typing import Final, get_args
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from fairlane.model.instants import Instant, to_datetime, to_instant
from fairlane.model.schedule.slots import slots_between
from fairlane.model.schedule.timing import Cron, Missing, Repeated
from fairlane.runtime.zone_data import zone_data_version
from tests.model.schedule.dst_page import PAGE, Compared, page
from tests.model.schedule.reference import Rule, changes, slots

FIRST: Final = date(2024, 1, 1)
LAST: Final = date(2034, 1, 1)
DAY: Final = timedelta(days=1)
MOST_SLOTS: Final = 100_000

EXPRESSIONS: Final = (
    ("30 2 * * *", None),
    ("0 0 * * *", None),
    ("*/20 0-3 * * *", None),
    ("15,45 1,2,23 * * *", None),
    ("*/7 * * * *", None),
    ("10 * * * *", None),
    ("59 1 1-31/2 * *", None),
    ("0 2 */3 3,4,10,11 0,6", None),
    ("*/10 * * * *", ("01:30", "02:30")),
)
"""Each with a window. Clocks are set at night."""

RULES: Final = [
    Rule(expression, missing, repeated, between)
    for (expression, between), missing, repeated in product(
        EXPRESSIONS, get_args(Missing), get_args(Repeated)
    )
]


class Outcome(msgspec.Struct):
    """What was compared of one zone, and what differed."""

    changes: int = 0
    slots: int = 0
    differences: list[str] = []


def zone_names() -> list[str]:
    """Return every zone but those that are another one on each machine."""
    return sorted(available_timezones() - {"localtime", "posixrules", "Factory"})


def compare(name: str, first: date = FIRST, last: date = LAST) -> Outcome:
    """Compare one zone between two days."""
    zone = ZoneInfo(name)
    found = Outcome()
    for change in changes(zone, first, last):
        found.changes += 1
        _compare(name, zone, change - DAY, change + DAY, found)
    for year in range(first.year, last.year):
        ordinary = datetime(year, 1, 1, tzinfo=UTC) + Random(f"{name}{year}").randrange(365) * DAY
        _compare(name, zone, ordinary, ordinary + DAY, found)
    return found


def _compare(name: str, zone: ZoneInfo, start: datetime, end: datetime, found: Outcome) -> None:
    for rule, expected in zip(RULES, slots(RULES, zone, start, end), strict=True):
        ours = list(_ours(name, rule, start, end))
        found.slots += len(expected)
        if ours != expected:
            wrong = sorted(set(ours) ^ set(expected))[:2]
            found.differences.append(f"{name}: {rule}: {', '.join(map(str, wrong)) or 'another order'}")


def _ours(name: str, rule: Rule, start: datetime, end: datetime) -> Iterator[datetime]:
    cron = Cron(
        rule.expression,
        timezone=name,
        missing=rule.missing,
        repeated=rule.repeated,
        between=rule.between,
    )
    after: Instant = to_instant(start) - 1
    yield from map(to_datetime, slots_between(cron, after, to_instant(end) - 1, MOST_SLOTS))


def clock_of(name: str) -> tuple[object, ...]:
    """Return all that a zone's clock does in these years: many zones are other names of one."""
    zone = ZoneInfo(name)
    instants = [datetime(FIRST.year, 1, 1, tzinfo=UTC), *changes(zone, FIRST, LAST)]
    return tuple((instant, instant.astimezone(zone).utcoffset()) for instant in instants)


def compare_all(names: Iterable[str], processes: int) -> Iterator[Outcome]:
    """Compare zones on all cores."""
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(compare, names, chunksize=4)


def main() -> int:
    """Compare them all; 1 if anything differed."""
    parser = argparse.ArgumentParser(prog="python -m tests.model.schedule.every_zone", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write docs/proofs/dst")
    parser.add_argument("--render", action="store_true", help="write the page of what was compared before")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.render:
        PAGE.write()
        return 0
    names = zone_names()
    clocks = {clock_of(name): name for name in names}
    outcomes = list(compare_all(clocks.values(), given.processes))
    differences = [line for outcome in outcomes for line in outcome.differences]
    compared = Compared(
        zone_data=zone_data_version(),
        first=f"{FIRST}",
        last=f"{LAST - DAY}",
        zones=len(names),
        clocks=len(clocks),
        changing=sum(outcome.changes > 0 for outcome in outcomes),
        changes=sum(outcome.changes for outcome in outcomes),
        rules=len(RULES),
        slots=sum(outcome.slots for outcome in outcomes),
        differences=len(differences),
        expressions=[expression for expression, _ in EXPRESSIONS],
    )
    sys.stdout.write("".join(f"{line}\n" for line in differences[:20]) + page(compared))
    if given.keep:
        PAGE.keep(compared)
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
