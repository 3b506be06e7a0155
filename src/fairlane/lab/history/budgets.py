"""Check budgets: nothing starts beyond a ceiling, and what was spent is counted once (S59, S113).

Whatever its order, a claim that was accepted holds its estimate until it ends, and what it spent afterwards.
So at every start these may be added up over all that had started: they passed the ceiling when the last one
of them was claimed, or never.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from fairlane.lab.history.job_history import FOREVER, ClaimHistory, JobHistory
from fairlane.lab.history.verdict import Violation, ViolationKind, make_violation
from fairlane.lab.ledger import Ceiling, Counted, Moment, Record, Settled, Started


class _Reservation(NamedTuple):
    """A claim under a budget: it certainly reserved from `at` to `until`, and spent so much afterwards."""

    at: Moment
    until: Moment
    tenant: str
    spent: int
    started: Started


class _Spend(msgspec.Struct):
    """What the jobs of a task and tenant have spent of a budget: surely, and at most."""

    least: int = 0
    most: int = 0
    proof: list[Record] = []


class BudgetUsages:
    """All budgets of a run."""

    def __init__(self, ceilings: Sequence[Ceiling], counted: Sequence[Counted]) -> None:
        self._ceilings = ceilings
        self._estimates: defaultdict[str, int] = defaultdict(int)
        for one in ceilings:
            self._estimates[one.budget] = max(self._estimates[one.budget], one.estimate)
        self._counted = {(one.budget, one.tenant, one.task): one for one in counted}
        self._is_counted = {one.budget for one in counted}
        self._holds: defaultdict[str, list[_Reservation]] = defaultdict(list)
        self._spends: defaultdict[tuple[str, str, str], _Spend] = defaultdict(_Spend)

    def note(self, history: JobHistory) -> None:
        """Add a job's claims to its budget, if it has one."""
        work = history.work
        if work is None or work.budget is None:
            return
        ends = {claim.fence: max(map(_reported, claim.settled), default=0) for claim in history.claims}
        self._holds[work.budget] += [
            _Reservation(started.at, until, work.tenant, ends[started.fence], started)
            for started, until in history.held_intervals()
        ]
        spend, estimate = self._spends[work.budget, work.tenant, work.task], self._estimates[work.budget]
        for claim in history.claims:
            spend.least += ends[claim.fence]
            spend.most += _most(claim, estimate)
            spend.proof += [*claim.paid, *claim.settled, *claim.reclaimed]
        # A claim of which nobody has written may have been ended by others, and count its estimate.
        seen = sum(not claim.is_unstarted for claim in history.claims)
        spend.most += estimate * sum(max(0, row.attempt - seen) for row in history.found)

    def violations(self) -> Iterator[Violation]:
        """Find ceilings that were passed by a start, and spend that was counted twice or not at all."""
        for ceiling in self._ceilings:
            yield from _exceeded(ceiling, self._holds[ceiling.budget])
        keys = {*self._counted, *(key for key in self._spends if key[0] in self._is_counted)}
        for budget, tenant, task in sorted(keys):
            row = self._counted.get((budget, tenant, task), Counted(budget=budget, tenant=tenant, task=task))
            spend = self._spends[budget, tenant, task]
            told = f"{row.spent} of budget {budget} is counted for {task} of {tenant}, but "
            if row.spent > spend.most:
                description = f"{told}it has spent {spend.most} at most"
                yield make_violation(ViolationKind.SPEND_DOUBLED, budget, description, row, *spend.proof)
            elif row.spent < spend.least:
                description = f"{told}{spend.least} was reported and accepted"
                yield make_violation(ViolationKind.SPEND_LOST, budget, description, row, *spend.proof)


def _reported(end: Settled) -> int:
    return end.spent or 0


def _most(claim: ClaimHistory, estimate: int) -> int:
    """Return what may count for a claim: if others have ended it, at least its estimate."""
    paid = max((one.total for one in claim.paid), default=0)
    is_told = any(end.spent is not None for end in claim.settled) and not claim.reclaimed
    return paid if is_told else max(paid, estimate)


def _exceeded(ceiling: Ceiling, holds: list[_Reservation]) -> Iterator[Violation]:
    """Find the first start that had no room; what is reserved or spent never becomes less than is added."""
    after = -FOREVER if ceiling.from_at is None else ceiling.from_at + ceiling.slack
    until = FOREVER if ceiling.until is None else ceiling.until
    held: list[tuple[Moment, int]] = []
    used = 0
    proof: list[Record] = []
    for hold in sorted(holds, key=attrgetter("at", "until", "started.job", "started.fence")):
        if not after <= hold.at < until or ceiling.tenant not in {None, hold.tenant}:
            continue
        while held and held[0][0] <= hold.at:
            _, spent = heapq.heappop(held)
            used += min(spent, ceiling.estimate) - ceiling.estimate
        heapq.heappush(held, (hold.until, hold.spent))
        used += ceiling.estimate
        proof.append(hold.started)
        if used > ceiling.ceiling:
            owner = "" if ceiling.tenant is None else f" of {ceiling.tenant}"
            description = (
                f"{used} of budget {ceiling.budget}{owner} was reserved and spent when job "
                f"{hold.started.job} ran, the ceiling is {ceiling.ceiling}"
            )
            yield make_violation(ViolationKind.CEILING_EXCEEDED, ceiling.budget, description, ceiling, *proof)
            return
