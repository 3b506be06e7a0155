"""Measure what failures cost: a storm of them, many dead letters, and the round trips of a settlement.

    python -m benchmarks.failing --rounds 3
    python -m benchmarks.failing --only letters --url redis://… --letters 100000

Each round plays every scenario on an empty store: a file, or with --url a schema or key prefix of its own on
that server, removed afterwards. Timings on a shared machine are noisy: do not compare figures of two runs.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any, Final

from benchmarks import letters, round_trips, storm
from benchmarks.command import Scenarios, options, run
from benchmarks.figures import Amounts
from fairlane.lab.bench.report import Amount, Goal, ratio

SCENARIOS: Final = ("storm", "letters", "round trips")

_QUICK: Final = Goal("at most 300 ms", 300)
_SPREAD: Final = Goal("at most 2 × the mean", 2)
AGAIN: Final = "all of one cause run again"
OTHERS: Final = "wait of other tenants, p99, against calm"
FULLEST: Final = "retries in the fullest second"
AT_ONE_INSTANT: Final = {policy: f"if all fail at one instant: {policy}" for policy in storm.POLICIES}
MORE: Final = "more of jobs that die than of jobs that succeed"

GOALS: Final = {
    **dict.fromkeys(letters.LOOKS, _QUICK),
    AGAIN: Goal("at most 5 s", 5),
    FULLEST: _SPREAD,
    **dict.fromkeys(AT_ONE_INSTANT.values(), _SPREAD),
    OTHERS: Goal("at most 2 ×", 2),
    MORE: Goal("none", 0),
}


def of_storm(found: dict[str, Any]) -> Amounts:
    """Return the figures of a storm: the spread of its retries, and what other tenants feel of it."""
    calm, hit = found["calm"]["small_tenants_wait"], found["storm"]["small_tenants_wait"]
    calm_p99, hit_p99 = Amount(calm["p99_ms"], "ms"), Amount(hit["p99_ms"], "ms")
    return {
        FULLEST: Amount(found["storm"]["retries"]["most_by_mean"], "× the mean"),
        **{
            AT_ONE_INSTANT[policy]: Amount(one["most_by_mean"], "× the mean")
            for policy, one in found["at_one_instant"].items()
        },
        "wait of other tenants, p99, calm": calm_p99,
        "wait of other tenants, p99, in the storm": hit_p99,
        OTHERS: ratio(hit_p99, calm_p99),
        "jobs that died": Amount(found["storm"]["told"]["deaths"], "jobs"),
        "events that tell of them": Amount(found["storm"]["told"]["events"], ""),
    }


def of_letters(found: dict[str, Any]) -> Amounts:
    """Return the figures of many dead letters."""
    looks = {name: Amount(one["median_ms"], "ms") for name, one in found["looks"].items()}
    again = found["again"]
    return {
        "dead letters": Amount(found["letters"], "jobs"),
        **looks,
        AGAIN: Amount(again["seconds"], "s"),
        "jobs that run again": Amount(again["jobs"], "jobs"),
    }


def of_round_trips(found: dict[str, int]) -> Amounts:
    """Return how many requests a settlement sends."""
    asked = {f"{round_trips.JOBS} jobs that {ending}": Amount(n, "") for ending, n in found.items()}
    return {**asked, MORE: Amount(found["die"] - found["succeed"], "")}


_NUMBERS: Final = {
    "jobs": (100_000, "jobs that fail in the storm"),
    "letters": (100_000, "dead letters in the store"),
    "again": (10_000, "dead letters that run again"),
    "rounds": (3, "how often each is measured"),
}


def main() -> int:
    """Read the arguments, measure, print."""
    given = options("failing", __doc__, SCENARIOS, _NUMBERS).parse_args()

    def make(folder: str) -> Scenarios:
        place = given.url or folder
        return {
            "storm": lambda n: of_storm(asyncio.run(storm.measure(place, given.jobs, n))),
            "letters": lambda n: of_letters(
                asyncio.run(letters.measure(place, given.letters, given.again, n))
            ),
            **({} if given.url is None else {"round trips": partial(_round_trips, place)}),  # a file has none
        }

    return run(given, make, GOALS, given.rounds)


def _round_trips(place: str, n: int) -> Amounts:
    return of_round_trips(asyncio.run(round_trips.measure(place, f"trips{n}")))


if __name__ == "__main__":
    sys.exit(main())
