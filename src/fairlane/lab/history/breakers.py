"""Check breakers: nobody passes while one is open, and then one at first, and more step by step (S110, S111).

A permit counts from its line, which is after the store gave it, until its outcome was told or its claim
ended. So permits that overlap here overlapped there. Whoever fails takes those of all others with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from fairlane.lab.history.job_history import FOREVER, ClaimHistory, JobHistory, RunConditions
from fairlane.lab.history.verdict import Violation, ViolationKind, make_violation
from fairlane.lab.ledger import Moment, Opened, Permitted, Started

Key: TypeAlias = tuple[str, str | None]
"""A breaker, and the tenant if it is of one alone."""


class _Pass(NamedTuple):
    """A job with a permit, which it certainly had from `at` to `until`; with the end that it told."""

    at: Moment
    until: Moment
    permit: Permitted
    told_at: Moment
    passed: bool | None


class BreakerPasses:
    """All that passed the breakers of a run."""

    def __init__(self, openings: Sequence[Opened]) -> None:
        self._openings: defaultdict[Key, list[Opened]] = defaultdict(list)
        for one in sorted(openings, key=attrgetter("at")):
            self._openings[one.breaker, one.tenant].append(one)
        self._passes: defaultdict[Key, list[_Pass]] = defaultdict(list)
        self._starts: defaultdict[Key, list[Started]] = defaultdict(list)

    def note(self, history: JobHistory, conditions: RunConditions) -> None:
        """Add the starts and the permits of a job."""
        work = history.work
        for claim in history.claims:
            for permit in claim.permits:
                found = _pass(claim, permit)
                if not conditions.had_outage(found.at, found.until):  # it may have taken the permit
                    self._passes[permit.breaker, permit.tenant].append(found)
            if work is not None and work.breaker is not None:
                self._starts[work.breaker, None] += claim.started
                self._starts[work.breaker, work.tenant] += claim.started

    def violations(self) -> Iterator[Violation]:
        """Check every opening until the next one."""
        for key, openings in self._openings.items():
            passes = sorted(self._passes[key], key=attrgetter("at", "permit.job", "permit.fence"))
            ends = [*(one.at - one.slack for one in openings[1:]), FOREVER]
            for opening, ends_at in zip(openings, ends, strict=True):
                mine = [one for one in passes if opening.at + opening.slack <= one.at < ends_at]
                begun = [one for one in self._starts[key] if opening.at + opening.slack <= one.at < ends_at]
                yield from _passed_open(opening, [*(one.permit for one in mine), *begun])
                yield from _beside_others(opening, mine)


def _pass(claim: ClaimHistory, permit: Permitted) -> _Pass:
    told = [one for one in claim.released if one.breaker == permit.breaker and one.at >= permit.at]
    first = min(told, key=attrgetter("at"), default=None)
    ends = [*told, *claim.ends]
    until = max(permit.at, min((one.at for one in ends), default=permit.at))
    return _Pass(permit.at, until, permit, first.at if first else FOREVER, first.passed if first else None)


def _name(opening: Opened) -> str:
    return opening.breaker if opening.tenant is None else f"{opening.breaker} of {opening.tenant}"


def _passed_open(opening: Opened, passed: list[Permitted | Started]) -> Iterator[Violation]:
    """Find who passed before anybody might."""
    early = [one for one in passed if one.at < opening.until]
    if early:
        description = f"{len(early)} passed breaker {_name(opening)} while it was open"
        yield make_violation(ViolationKind.PASSED_OPEN, opening.breaker, description, opening, *early)


def _beside_others(opening: Opened, passes: list[_Pass]) -> Iterator[Violation]:
    """Find the first pass beside which too many had a permit."""
    for index, new in enumerate(passes):
        failed = [one.told_at for one in passes if one.passed is False and one.told_at <= new.at]
        beside = {
            one.permit.job: one.permit
            for one in passes[: index + 1]
            if one.until > new.at and all(at < one.at - opening.slack for at in failed)
        }
        succeeded = sum(one.passed is True and one.told_at <= new.at for one in passes)
        allowed = _allowed(succeeded, opening.ramp)
        if len(beside) > allowed:
            description = (
                f"{len(beside)} had a permit of breaker {_name(opening)} at once, after {succeeded} "
                f"successes {allowed} may"
            )
            yield make_violation(
                ViolationKind.PROBE_DOUBLED, opening.breaker, description, opening, *beside.values()
            )
            return


def _allowed(succeeded: int, ramp: int) -> int:
    """Return how many may have a permit at once after so many successes.

    >>> [_allowed(successes, 4) for successes in range(8)] == [1, 2, 2, 4, 4, 4, 4, 1 << 63]
    True
    """
    slots = 1
    while succeeded >= slots:
        succeeded -= slots
        slots *= 2
        if slots > ramp:
            return FOREVER  # it is closed
    return slots
