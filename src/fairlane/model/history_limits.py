"""Check limits against what was certainly held and started (S43-S45). Knows no job but by its claims.

Every time here is of the one recording clock. A claim counts from its `Started` line, which is after the
store gave it, until its end was sent, which is before the store took it: what overlaps here overlapped there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from fairlane.model.history_life import FOREVER, Life
from fairlane.model.history_verdict import Kind, Violation, accuse
from fairlane.model.ledger import Bound, Enqueue, Moment, Started

Subject: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Queue, tenant, task and gate; None stands for any."""

_FIELDS: Final = ("queue", "tenant", "task", "gate")


class Watch(msgspec.Struct):
    """What happened to the subject of some bounds: its starts, and those of them with a certain end."""

    bounds: list[Bound] = []
    starts: list[Started] = []
    holds: list[tuple[Moment, Moment, Started]] = []


class Watches:
    """All the subjects that bounds name. Cost per job: one look-up per shape of subject."""

    def __init__(self, bounds: Iterable[Bound]) -> None:
        self._watches: dict[Subject, Watch] = {}
        for bound in bounds:
            self._watches.setdefault(_subject(bound), Watch()).bounds.append(bound)
        self._shapes = {tuple(part is not None for part in subject) for subject in self._watches}

    def note(self, life: Life) -> None:
        """Add the claims of a job to every subject that it is of."""
        work = life.work
        found = [self._find(work, shape) for shape in self._shapes] if work else []
        if not any(found):
            return
        starts = [claim.started[0] for claim in life.starts]
        holds = [(started.at, until, started) for started, until in life.holds()]
        for watch in filter(None, found):
            watch.starts += starts
            watch.holds += holds

    def violations(self) -> Iterator[Violation]:
        """Give one violation for each bound that was exceeded, with the first excess as proof."""
        for subject, watch in self._watches.items():
            name = ", ".join(f"{field} {part}" for field, part in zip(_FIELDS, subject, strict=True) if part)
            watch.starts.sort(key=_order)
            watch.holds.sort(key=lambda hold: (hold[0], hold[1], _order(hold[2])))
            for bound in watch.bounds:
                check = _held if bound.per is None else _paced
                yield from check(name, bound, watch)

    def _find(self, work: Enqueue, shape: tuple[bool, ...]) -> Watch | None:
        parts = (work.queue, work.tenant, work.task, work.gate)
        picked = [part if wanted else None for part, wanted in zip(parts, shape, strict=True)]
        # A job without a gate must not fall under the same subject without its gate.
        if any(wanted and part is None for part, wanted in zip(picked, shape, strict=True)):
            return None
        queue, tenant, task, gate = picked
        return self._watches.get((queue, tenant, task, gate))


def _subject(bound: Bound) -> Subject:
    return bound.queue, bound.tenant, bound.task, bound.gate


def _order(started: Started) -> tuple[Moment, str, int]:
    return started.at, started.job, started.fence


def _is_bound(bound: Bound, at: Moment) -> bool:
    """Whether the claim of a handler that started then was certainly made while the bound was in force."""
    after = -FOREVER if bound.from_at is None else bound.from_at + bound.slack
    return after <= at < (FOREVER if bound.until is None else bound.until)


def _held(name: str, bound: Bound, watch: Watch) -> Iterator[Violation]:
    """No start while as many claims are held as may be; older ones may outlive a lowered limit (S45)."""
    held: list[tuple[Moment, int]] = []
    proof: list[Started] = []
    excess = 0
    for index, (at, until, _) in enumerate(watch.holds):
        while held and held[0][0] <= at:
            heapq.heappop(held)
        heapq.heappush(held, (until, index))
        if len(held) > bound.limit and _is_bound(bound, at):
            excess += 1
            proof = proof or [watch.holds[one][2] for _, one in held]
    if proof:
        story = (
            f"{len(proof)} claims of {name} were held at once, the limit is {bound.limit}; {excess} in all"
        )
        yield accuse(Kind.LIMIT_EXCEEDED, name, story, bound, *proof)


def _paced(name: str, bound: Bound, watch: Watch) -> Iterator[Violation]:
    """No more starts in any span than GCRA lets through, the slack added to the span (S44).

    The interval is rounded down, so that a store may round it to whole microseconds either way.
    """
    interval = (bound.per or 0) // bound.limit
    tolerance = (bound.burst - 1) * interval + bound.slack
    arrival, count = -FOREVER, 0
    first: Started | None = None
    proof: tuple[str, Started, Started] | None = None
    excess = 0
    for started in watch.starts:
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
        story = f"{told}, {rate}; {excess} in all"
        yield accuse(Kind.RATE_EXCEEDED, name, story, bound, *starts)
