"""Measure what breakers and budgets keep and cost: claims of others, probes, ceiling, processor time.

    python -m benchmarks.guards --jobs 100000 --pairs 5
    python -m benchmarks.guards --only behind --url postgresql://…

Each round plays every scenario on an empty store: a file, or with --url a schema or key prefix of its own on
that server, removed afterwards. `--jobs` of them wait behind an open breaker while others are claimed. What
the server of a store computes is not in the processor time. Timings on a shared machine are noisy: do not
compare figures of two runs.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from typing import Any, Final

from benchmarks import guarded, open_breaker, opening, spending
from benchmarks.command import Scenarios, options, run
from benchmarks.figures import Amounts
from fairlane.lab.bench.report import Amount, Goal, ratio

SCENARIOS: Final = ("behind", "opening", "probe", "budget", "cost")

OTHERS: Final = "others' claims, against none behind it"
LATE: Final = "calls by jobs that were claimed after the opening"
WHILE_OPEN: Final = "claims that pass while it is open"
MOST: Final = "jobs that pass at once when it may be tried, at most"
LEAST: Final = "the same, at least"
BEYOND: Final = "spent beyond the ceiling and the excess of 16 running jobs"
COSTS: Final = "processor time of a job with a closed breaker and a budget, against none"

GOALS: Final = {
    OTHERS: Goal("at most 1.1 ×", 1.1),
    LATE: Goal("none", 0),
    WHILE_OPEN: Goal("none", 0),
    MOST: Goal("exactly 1", 1),
    LEAST: Goal("exactly 1", 1, is_least=True),
    BEYOND: Goal("none", 0),
    COSTS: Goal("at most 1.05 ×", 1.05),
}

_NUMBERS: Final = {
    "jobs": (1_000_000, "jobs behind the open breaker"),
    "claims": (400, "claims of others beside them"),
    "opening": (4_000, "jobs of 16 workers whose service goes down"),
    "turns": (20, "how often the breaker is tried"),
    "spending": (10_000, "jobs under the budget"),
    "pairs": (20, "how often the processor time is measured with and without guards"),
    "guarded": (5_000, "jobs of each of these measurements"),
    "rounds": (1, "how often each is measured"),
}


def of_behind(found: dict[str, float]) -> Amounts:
    """Return what jobs behind an open breaker cost the claims of others."""
    alone, beside = Amount(found["alone"], "ms"), Amount(found["beside"], "ms")
    return {
        "claim of 10, p50, none behind it": alone,
        "claim of 10, p50, beside those behind it": beside,
        OTHERS: ratio(beside, alone),
    }


def of_opening(found: dict[str, int]) -> Amounts:
    """Return who still calls what is down."""
    return {
        "calls before and after the opening": Amount(found["calls"], ""),
        LATE: Amount(found["late"], ""),
    }


def of_probe(found: dict[str, Any]) -> Amounts:
    """Return who passes."""
    return {
        "times that it was tried": Amount(found["turns"], ""),
        WHILE_OPEN: Amount(found["while_open"], ""),
        MOST: Amount(found["most"], ""),
        LEAST: Amount(found["least"], ""),
    }


def of_budget(found: dict[str, int]) -> Amounts:
    """Return what was spent, against the ceiling."""
    beyond = found["spent"] - found["ceiling"]
    return {
        "jobs that ran before the budget was spent": Amount(found["ran"], "jobs"),
        "spent, against the ceiling": ratio(Amount(found["spent"], ""), Amount(found["ceiling"], "")),
        BEYOND: Amount(max(0, beyond - found["allowed"]), "millionths"),
    }


def of_cost(pairs: list[dict[guarded.Guards, float]]) -> Amounts:
    """Return the medians over all pairs; ratios are those of each pair."""
    times: dict[guarded.Guards, list[float]] = {
        guards: [pair[guards] for pair in pairs] for guards in ("none", "breaker", "both")
    }
    ratios: dict[guarded.Guards, float] = {
        guards: statistics.median(pair[guards] / pair["none"] for pair in pairs)
        for guards in ("breaker", "both")
    }
    return {
        **{f"processor time of a job: {_TEXTS[name]}": _median(found) for name, found in times.items()},
        "processor time of a job with a closed breaker, against none": Amount(ratios["breaker"], "×"),
        COSTS: Amount(ratios["both"], "×"),
    }


_TEXTS: Final[dict[guarded.Guards, str]] = {
    "none": "no guard",
    "breaker": "a closed breaker",
    "both": "a closed breaker and a budget",
}


def _median(found: list[float]) -> Amount:
    return Amount(statistics.median(found), "µs/job")


def cost(place: str, jobs: int, pairs: int, number: int) -> list[dict[guarded.Guards, float]]:
    """Measure each in turn; every other turn begins at the other end."""
    order: tuple[guarded.Guards, ...] = ("none", "breaker", "both")
    found = []
    for turn in range(pairs):
        names = order if turn % 2 == 0 else order[::-1]
        found.append({one: guarded.measure(place, jobs, one, number * pairs + turn) for one in names})
    return found


def main() -> int:
    """Read the arguments, measure, print."""
    given = options("guards", __doc__, SCENARIOS, _NUMBERS).parse_args()

    def make(folder: str) -> Scenarios:
        place = given.url or folder
        return {
            "behind": lambda n: of_behind(
                asyncio.run(open_breaker.behind(place, given.jobs, given.claims, n))
            ),
            "opening": lambda n: of_opening(asyncio.run(opening.measure(place, given.opening, n))),
            "probe": lambda n: of_probe(asyncio.run(open_breaker.tried(place, given.turns, n))),
            "budget": lambda n: of_budget(asyncio.run(spending.measure(place, given.spending, n))),
            "cost": lambda n: of_cost(cost(place, given.guarded, given.pairs, n)),
        }

    return run(given, make, GOALS, given.rounds)


if __name__ == "__main__":
    sys.exit(main())
