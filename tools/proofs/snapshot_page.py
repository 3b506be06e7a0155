"""Render the output of `tests.postgres.old_snapshot`: the cost of jobs beside a snapshot that stays open."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.lab.bench.report import Amount, Goal, Measure, RoundResult, conclude
from tests.postgres.old_snapshot import FLAT, GOAL, Course, Courses
from tools.proofs.measurement import Measurement, circumstances

PROCESSOR: Final = "speed at the end, by the processor"
CLOCK: Final = "jobs a second at the end"

_HEAD: Final = """\
# Beside a snapshot that nobody closes, on PostgreSQL

Generated from `docs/proofs/{name}.json`, which `make proofs` writes; do not edit by hand.

Jobs of 20 tenants, half of them of one, come and go, 20 at a time on one connection, while another session
holds a snapshot from before: no dead row is removed and no dead entry of an index. *First* and *last*: the
average of the first and of the last tenth of the rounds, 400 jobs each. The duties pass {duties}.
*Pages*: read by the server for a job, by whoever vacuums, too. *Processor*: milliseconds of the server's
session for a job. *Same*: milliseconds for a query that has to do with no table, how fast the machine was at
the start and at the end. *Left*: of the speed of the start, by the processor and by the clock, had the
machine been as fast at the end; asked is at least {goal:.0%} of both where a goal stands. The other ways walk
over what they leave behind: [why](../explanation/postgresql.md).
"""
_NUMBERS: Final = (
    *("minutes", "jobs", "same first", "last", "pages first", "last", "processor first", "last", "left"),
    *("jobs/s first", "last", "left"),
)


def figures(measurement: Measurement) -> list[Measure]:
    """Return what is left of the initial speed, for each way."""
    found: list[Measure] = []
    for course in _courses(measurement).courses:
        amounts = {
            PROCESSOR: Amount(100 * course.by_processor, "%"),
            CLOCK: Amount(100 * course.by_clock, "%"),
        }
        least = Goal(f"at least {GOAL:.0%}", 100 * GOAL, is_least=True)
        goals = dict.fromkeys(amounts, least) if course.way in FLAT else {}
        found += conclude(course.way, [RoundResult(amounts)], lambda _, goals=goals: goals)  # type: ignore[misc]
    return found


def page(measurement: Measurement, name: str) -> str:
    """Return the page."""
    courses = _courses(measurement)
    lines = [
        _HEAD.format(name=name, goal=GOAL, duties=courses.duties),
        *circumstances(measurement, courses.host),
        f"| way | {' | '.join(_NUMBERS)} | goal | met |",
        f"|---|{'---:|' * len(_NUMBERS)}---|---|",
        *(f"| {' | '.join(_cells(course))} |" for course in courses.courses),
    ]
    return "\n".join(lines) + "\n"


def _courses(measurement: Measurement) -> Courses:
    return msgspec.json.decode(measurement.report, type=Courses)


def _cells(course: Course) -> list[str]:
    first, last = course.first, course.last
    goal = [f"{GOAL:.0%}", "yes" if course.is_flat else "**no**"] if course.way in FLAT else ["", ""]
    return [
        course.way,
        f"{course.seconds / 60:.1f}",
        f"{course.jobs:,}",
        f"{first.same:.2f}",
        f"{last.same:.2f}",
        f"{first.pages:.0f}",
        f"{last.pages:.0f}",
        f"{first.cost:.3f}",
        f"{last.cost:.3f}",
        f"{course.by_processor:.0%}",
        f"{first.rate:,.0f}",
        f"{last.rate:,.0f}",
        f"{course.by_clock:.0%}",
        *goal,
    ]
