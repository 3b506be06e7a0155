"""Check limits and rates against the claims that were certainly held (S43-S45). Knows jobs only by claims.

All times are of the recording clock. A claim counts from its `Started` line, which is after the store made
it, until its end was sent, which is before the store accepted it. So claims that overlap here overlapped
there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from fairlane.lab.history.job_history import FOREVER, JobHistory
from fairlane.lab.history.verdict import Violation, ViolationKind, make_violation
from fairlane.lab.ledger import Bound, Enqueue, Moment, Started

Subject: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Queue, tenant, task and gate; None means any."""

_FIELDS: Final = ("queue", "tenant", "task", "gate")


class LimitUsage(msgspec.Struct):
    """The bounds of a subject, its starts, and the intervals in which claims were certainly held."""

    bounds: list[Bound] = []
    starts: list[Started] = []
    held_intervals: list[tuple[Moment, Moment, Started]] = []


class LimitUsages:
    """The usage of all subjects that have bounds. Cost per job: one look-up per shape of subject."""

    def __init__(self, bounds: Iterable[Bound]) -> None:
        self._usages: dict[Subject, LimitUsage] = {}
        for bound in bounds:
            self._usages.setdefault(_subject(bound), LimitUsage()).bounds.append(bound)
        self._shapes = {tuple(part is not None for part in subject) for subject in self._usages}

    def note(self, history: JobHistory) -> None:
        """Add a job's claims to every subject that it belongs to."""
        work = history.work
        found = [self._find(work, shape) for shape in self._shapes] if work else []
        if not any(found):
            return
        starts = [claim.started[0] for claim in history.starts]
        held_intervals = [(started.at, until, started) for started, until in history.held_intervals()]
        for usage in filter(None, found):
            usage.starts += starts
            usage.held_intervals += held_intervals

    def violations(self) -> Iterator[Violation]:
        """Return one violation for each exceeded bound, with the first excess as proof."""
        for subject, usage in self._usages.items():
            name = ", ".join(f"{field} {part}" for field, part in zip(_FIELDS, subject, strict=True) if part)
            usage.starts.sort(key=_order)
            usage.held_intervals.sort(key=lambda hold: (hold[0], hold[1], _order(hold[2])))
            for bound in usage.bounds:
                check = _held if bound.per is None else _paced
                yield from check(name, bound, usage)

    def _find(self, work: Enqueue, shape: tuple[bool, ...]) -> LimitUsage | None:
        parts = (work.queue, work.tenant, work.task, work.gate)
        picked = [part if wanted else None for part, wanted in zip(parts, shape, strict=True)]
        # A job without a gate must not match the subject that differs only in having none.
        if any(wanted and part is None for part, wanted in zip(picked, shape, strict=True)):
            return None
        queue, tenant, task, gate = picked
        return self._usages.get((queue, tenant, task, gate))


def _subject(bound: Bound) -> Subject:
    return bound.queue, bound.tenant, bound.task, bound.gate


def _order(started: Started) -> tuple[Moment, str, int]:
    return started.at, started.job, started.fence


def _is_bound(bound: Bound, at: Moment) -> bool:
    """Whether the claim of a handler that started at this time was certainly made under the bound."""
    after = -FOREVER if bound.from_at is None else bound.from_at + bound.slack
    return after <= at < (FOREVER if bound.until is None else bound.until)


def _held(name: str, bound: Bound, usage: LimitUsage) -> Iterator[Violation]:
    """Find a start while the limit was reached; older claims may outlive a lowered limit (S45)."""
    held: list[tuple[Moment, int]] = []
    proof: list[Started] = []
    excess = 0
    for index, (at, until, _) in enumerate(usage.held_intervals):
        while held and held[0][0] <= at:
            heapq.heappop(held)
        heapq.heappush(held, (until, index))
        if len(held) > bound.limit and _is_bound(bound, at):
            excess += 1
            proof = proof or [usage.held_intervals[one][2] for _, one in held]
    if proof:
        description = (
            f"{len(proof)} claims of {name} were held at once, the limit is {bound.limit}; {excess} in all"
        )
        yield make_violation(ViolationKind.LIMIT_EXCEEDED, name, description, bound, *proof)


def _paced(name: str, bound: Bound, usage: LimitUsage) -> Iterator[Violation]:
    """Find more starts in some time than GCRA allows, with the slack added to that time (S44).

    The interval is rounded down, so that a store may round it to whole microseconds either way.
    """
    interval = (bound.per or 0) // bound.limit
    tolerance = (bound.burst - 1) * interval + bound.slack
    arrival, count = -FOREVER, 0
    first: Started | None = None
    proof: tuple[str, Started, Started] | None = None
    excess = 0
    for started in usage.starts:
        if not _is_bound(bound, started.at):
            continue
        if first is None or started.at >= arrival:
            arrival, count, first = started.at, 0, started
        count += 1
        if started.at < arrival - tolerance:
            excess += 1
            proof = proof or (f"{count} starts of {name} in {started.at - first.at} us", first, started)
        arrival += interval
    if proof:
        told, *starts = proof
        rate = f"the rate is {bound.limit} in {bound.per} us with a burst of {bound.burst}"
        description = f"{told}, {rate}; {excess} in all"
        yield make_violation(ViolationKind.RATE_EXCEEDED, name, description, bound, *starts)
