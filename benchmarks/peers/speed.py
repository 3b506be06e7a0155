"""Measure one run of one peer: fill in bulk, drain with one worker, then single jobs to an idle worker."""

from __future__ import annotations

import time
from random import Random
from typing import Any, Final

from benchmarks.peers import marks
from benchmarks.peers.processes import Ask, PeerError, PeerRun, Worker, producer, worker
from fairlane.lab.bench.report import Amount, Check, RoundResult
from fairlane.lab.workload.stats import percentile

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


def play(run: PeerRun, number: int, jobs: int, singles: int) -> RoundResult:
    """Measure all figures of one round."""
    total = jobs + _WARM + singles
    with producer(run) as ask:
        filled = ask(do="many", first=0, jobs=jobs, tenants=run.peer.tenants, millis=0)
        with worker(run) as busy:
            busy.until(jobs)
            time.sleep(_REST)
            brought, took = _bring(ask, busy, run, range(jobs, total), number)
            time.sleep(_REST)
            memory = busy.memory()
            booked = _booked(ask, total)
    left = marks.read(run.marks)
    verdict = marks.judge(left, total)
    check = _check(run, number, total, verdict, booked)
    if verdict.lost:
        raise PeerError(f"{verdict} of {total:,} jobs")
    picked = marks.waits(left, brought)
    return RoundResult(
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


def _bring(
    ask: Ask, idle: Worker, run: PeerRun, numbers: range, seed: int
) -> tuple[dict[int, int], list[int]]:
    """Enqueue jobs one by one, each after the previous one has run; return when, and how long each took."""
    draw = Random(seed)
    brought: dict[int, int] = {}
    took: list[int] = []
    for number in numbers:
        said = ask(do="one", number=number, tenant=f"t{number % run.peer.tenants}", millis=0)
        idle.until(number + 1)
        if number >= numbers.start + _WARM:
            brought[number] = said["before"]
            took.append(said["after"] - said["before"])
        time.sleep(draw.uniform(*_GAP))
    return brought, took


def _booked(ask: Ask, jobs: int) -> int | None:
    """Ask for the peer's own count until it has all jobs; None if it does not count."""
    until = time.monotonic() + _SETTLED_WITHIN
    while True:
        found: Any = ask(do="finished")["finished"]
        if found is None or found >= jobs or time.monotonic() > until:
            return found if found is None else int(found)
        time.sleep(0.05)


def _check(run: PeerRun, number: int, jobs: int, verdict: marks.MarksVerdict, booked: int | None) -> Check:
    """Check that every job ran once and, if the peer counts, that its count agrees."""
    history = jobs - verdict.lost if booked is None else booked
    return Check(
        scenario="speed",
        case=run.peer.name,
        round=number + 1,
        jobs=jobs,
        expected=jobs,
        history=history,
        verdict=str(verdict),
        ok=verdict.ok and history == jobs,
    )
