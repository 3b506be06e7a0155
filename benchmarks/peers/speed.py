"""One run of one peer: fill its store in bulk, drain it with one worker, bring single jobs to an idle one."""

from __future__ import annotations

import time
from random import Random
from typing import Any, Final

from benchmarks.peers import marks
from benchmarks.peers.processes import Ask, Cast, RunError, Worker, producer, worker
from fairlane.bench.report import Amount, Check, Round
from fairlane.stage.figures import percentile

DRAINED: Final = "drained"
BULK: Final = "bulk enqueue"
PICKED_P50: Final = "pick-up p50"
PICKED_P95: Final = "pick-up p95"
ENQUEUE: Final = "enqueue p99"
MEMORY: Final = "memory"

_WARM: Final = 5
"""Single jobs that are not counted: the first calls load code."""

_GAP: Final = (0.01, 0.03)
_REST: Final = 0.5
_SETTLED_WITHIN: Final = 20.0


def play(cast: Cast, number: int, jobs: int, singles: int) -> Round:
    """Take all figures of one round."""
    total = jobs + _WARM + singles
    with producer(cast) as ask:
        filled = ask(do="many", first=0, jobs=jobs, tenants=cast.peer.tenants, millis=0)
        with worker(cast) as busy:
            busy.until(jobs)
            time.sleep(_REST)
            brought, took = _bring(ask, busy, cast, range(jobs, total), number)
            time.sleep(_REST)
            memory = busy.memory()
            booked = _booked(ask, total)
    left = marks.read(cast.marks)
    verdict = marks.judge(left, total)
    check = _check(cast, number, total, verdict, booked)
    if verdict.lost:
        raise RunError(f"{verdict} of {total:,} jobs")
    picked = marks.waits(left, brought)
    return Round(
        {
            DRAINED: Amount(marks.rate(left, jobs), "jobs/s"),
            BULK: Amount(jobs * 1e9 / (filled["after"] - filled["before"]), "jobs/s"),
            PICKED_P50: Amount(percentile(picked, 0.5) / 1e3, "ms"),
            PICKED_P95: Amount(percentile(picked, 0.95) / 1e3, "ms"),
            ENQUEUE: Amount(percentile(took, 0.99) / 1e6, "ms"),
            MEMORY: Amount(memory, "MB"),
        },
        [check],
    )


def _bring(ask: Ask, idle: Worker, cast: Cast, numbers: range, seed: int) -> tuple[dict[int, int], list[int]]:
    """Bring jobs one by one, each when the one before has run; give when, and how long that took."""
    draw = Random(seed)
    brought: dict[int, int] = {}
    took: list[int] = []
    for number in numbers:
        said = ask(do="one", number=number, tenant=f"t{number % cast.peer.tenants}", millis=0)
        idle.until(number + 1)
        if number >= numbers.start + _WARM:
            brought[number] = said["before"]
            took.append(said["after"] - said["before"])
        time.sleep(draw.uniform(*_GAP))
    return brought, took


def _booked(ask: Ask, jobs: int) -> int | None:
    """Ask for the peer's own count until it has all of them; None if it keeps none."""
    until = time.monotonic() + _SETTLED_WITHIN
    while True:
        found: Any = ask(do="finished")["finished"]
        if found is None or found >= jobs or time.monotonic() > until:
            return found if found is None else int(found)
        time.sleep(0.05)


def _check(cast: Cast, number: int, jobs: int, verdict: marks.Verdict, booked: int | None) -> Check:
    """Say whether every job ran once and, of a peer with books, whether they agree."""
    history = jobs - verdict.lost if booked is None else booked
    return Check(
        scenario="speed",
        case=cast.peer.name,
        round=number + 1,
        jobs=jobs,
        expected=jobs,
        history=history,
        verdict=str(verdict),
        ok=verdict.ok and history == jobs,
    )
