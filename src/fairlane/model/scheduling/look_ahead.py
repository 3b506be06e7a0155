"""How much a lane claims before a slot is free for it, and what it may never claim so (S68).

A handler that does nothing ends long before the next job can come from a store. So a lane claims, beside what
it can start now, what it expects to start during one round trip. The expectation is learned: how long the
tasks run, how long round trips take, how fast the worker starts jobs.
"""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import JobRecord

MAX_WORK_AHEAD: Final[Micros] = SECOND // 20
"""The most work that is claimed ahead, in time of the lane."""

MAX_WORK_A_CLAIM_HERE: Final[Micros] = SECOND // 100
"""The most that one claim takes ahead where the store works in this process, as SQLite does.

There a round trip is work and no journey: more jobs make it longer, which would ask for yet more. A tenant
that comes meanwhile waits for the rest of one such claim and for the next.
"""

MAX_WAIT_AHEAD: Final[Micros] = SECOND // 10
"""What has waited this long for its start goes back: a job before it turned out long."""

_FIRST_START_INTERVAL: Final[Micros] = 100
"""The assumed time between two starts while jobs wait, before any was measured."""

_MIN_START_INTERVAL: Final[Micros] = 20
"""Faster than this no worker starts jobs, whatever was measured: so at most 2,500 are claimed ahead."""

_MAX_GROWTH: Final = 3
"""A round trip counts as this many times the usual one at most."""

_RECENT_RUNS: Final = 10
_RECENT_TRIPS: Final = 8
"""A moving average moves so much, as a part, towards each new value."""


def may_be_ahead(job: JobRecord, *, has_gate: bool, has_rate: bool) -> bool:
    """Whether a claim that ends before its handler starts costs this job nothing.

    A killed worker's claim is a loss: that costs a suspect and a job that runs at most once something, and a
    job on its last attempt is spared it as well. A rate and a key that lasts until `started` are not given
    back, and a gate's slot is not to be held by what does not run.
    """
    is_last_attempt = job.failures + 1 >= job.max_attempts
    frees_key = job.dedup_key is not None and job.dedup_until == "started"
    return not (job.is_suspect or job.at_most_once or is_last_attempt or frees_key or has_gate or has_rate)


class LookAhead:
    """What one lane has learned of its jobs and its store. Times are microseconds.

    A lane of 4 slots whose handlers run for a millisecond starts a job every 250 µs. A round trip of 5 ms
    needs twenty of them; if handlers take longer than a round trip, none:

    >>> lane = LookAhead(slots=4)
    >>> lane.round_trip_took(5_000)
    >>> lane.handler_took("mail", "send", 1_000)
    >>> lane.jobs, lane.max_jobs
    (20, 200)
    >>> for _ in range(20):
    ...     lane.handler_took("mail", "report", 60_000)
    >>> lane.jobs, round(lane.expected("mail", "send"))
    (0, 1000)
    """

    def __init__(self, slots: int, max_a_claim: Micros = MAX_WORK_AHEAD) -> None:
        """Start with nothing learned: the first claims are for free slots only."""
        self._slots = slots
        self._max_a_claim = max_a_claim
        self._run_times: dict[tuple[str, str], float] = {}
        self._run_time: float | None = None
        self._round_trip: float | None = None
        self._start_interval: float = _FIRST_START_INTERVAL

    # ── what is learned ───────────────────────────────────────────────────────

    def handler_took(self, queue: str, task: str, took: Micros) -> None:
        """Learn how long a handler has run, or has run so far."""
        key = (queue, task)
        known = self._run_times.get(key)
        expected = self._run_times[key] = took if known is None else known + (took - known) / _RECENT_RUNS
        recent = self._run_time
        self._run_time = expected if recent is None else recent + (expected - recent) / _RECENT_RUNS

    def round_trip_took(self, took: Micros) -> None:
        """Learn how long a claim took. A single slow one, as after an outage, tells little."""
        known = self._round_trip
        if known is None:
            self._round_trip = took
        else:
            self._round_trip = known + (min(took, _MAX_GROWTH * known + 1) - known) / _RECENT_TRIPS

    def starts_took(self, jobs: int, took: Micros) -> None:
        """Learn how fast jobs are started while others wait; so few that all had slots tell nothing."""
        if jobs > self._slots:
            self._start_interval += (took / jobs - self._start_interval) / _RECENT_TRIPS

    # ── what is expected ──────────────────────────────────────────────────────

    def expected(self, queue: str, task: str) -> float:
        """Return how long a job of this task is expected to run; 0 if none has."""
        return self._run_times.get((queue, task), 0)

    def ends_soon(self, queue: str, task: str, age: Micros) -> bool:
        """Whether a handler that has run for so long is expected to end during one round trip.

        Not before its task is known to be that short: a handler that never ended yet may be an hour's work.
        """
        known, round_trip = self._run_times.get((queue, task)), self._round_trip or 0
        return known is not None and known < round_trip and age < round_trip

    @property
    def jobs(self) -> int:
        """How many jobs are expected to start during one round trip, if there are that many."""
        if self._run_time is None or self._round_trip is None or self._run_time >= self._round_trip:
            return 0
        return max(1, int(min(self._round_trip, self._max_a_claim) / self._interval))

    @property
    def max_jobs(self) -> int:
        """How many jobs are as much work as may be claimed ahead."""
        return max(1, int(MAX_WORK_AHEAD / self._interval))

    @property
    def _interval(self) -> float:
        return max((self._run_time or 0) / self._slots, self._start_interval, _MIN_START_INTERVAL)
