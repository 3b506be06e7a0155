"""Measure fairness: quiet tenants' jobs alone, and behind one tenant's flood, on Fairlane and on a peer.

A peer has no tenants, so its jobs are all alike; whose they are is known only here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Final

from benchmarks.peers import marks
from benchmarks.peers.processes import Ask, PeerError, PeerRun, producer, worker
from fairlane.lab.bench.report import Amount, Check
from fairlane.lab.workload.arrivals import Arrival, about_every_second
from fairlane.lab.workload.stats import percentile
from fairlane.model.instants import SECOND

SLOTS: Final = 16
MILLIS: Final = 10
QUIET: Final = 20
ALONE: Final = "alone p95"
FLOODED: Final = "flood p95"
BACKLOGGED: Final = "still backlogged"


def arrivals(seed: int, seconds: float) -> list[Arrival]:
    """Return the quiet tenants' jobs, about one per second each; the same list for a seed.

    >>> [one.tenant for one in arrivals(1, 0.1)]
    ['quiet-13', 'quiet-18', 'quiet-09']
    """
    draw = Random(seed)
    names = [f"quiet-{number:02}" for number in range(1, QUIET + 1)]
    return sorted(one for name in names for one in about_every_second(draw, name, 0, seconds))


def play(run: PeerRun, number: int, jobs: int, due: Sequence[Arrival]) -> tuple[dict[str, Amount], Check]:
    """Do one run: a flood of `jobs`, or none, before the worker starts; then each job when it is due."""
    # Without a flood, one job says when the worker is there.
    first = max(1, jobs)
    with producer(run) as ask:
        ask(do="many", first=0, jobs=first, tenants=1, millis=MILLIS)
        with worker(run) as busy:
            busy.until(1)
            brought = _bring(ask, first, due)
            busy.until(first + len(due))
    left = marks.read(run.marks)
    verdict = marks.judge(left, first + len(due))
    if verdict.lost:
        raise PeerError(f"{verdict} of {first + len(due):,} jobs")
    waits = marks.waits(left, brought)
    amounts = {FLOODED if jobs else ALONE: Amount(percentile(waits, 0.95) / 1e3, "ms")}
    if jobs:
        last_start = max(mark.at for mark in left if mark.number < first)
        amounts[BACKLOGGED] = Amount(float(last_start >= max(brought.values())), "")
    return amounts, _check(run, number, first + len(due), verdict, is_flooded=bool(jobs))


def _bring(ask: Ask, first: int, due: Sequence[Arrival]) -> dict[int, int]:
    """Enqueue each job when it is due, or after the previous one; return when each was about to be sent."""
    began_at = time.monotonic()
    brought: dict[int, int] = {}
    for number, one in enumerate(due, first):
        time.sleep(max(0.0, began_at + one.at / SECOND - time.monotonic()))
        brought[number] = ask(do="one", number=number, tenant=one.tenant, millis=MILLIS)["before"]
    return brought


def _check(run: PeerRun, number: int, jobs: int, verdict: marks.MarksVerdict, *, is_flooded: bool) -> Check:
    return Check(
        scenario="flood" if is_flooded else "alone",
        case=run.peer.name,
        round=number + 1,
        jobs=jobs,
        expected=jobs,
        history=jobs - verdict.lost,
        verdict=str(verdict),
        ok=verdict.ok,
    )
