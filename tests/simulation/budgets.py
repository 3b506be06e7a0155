"""Check that budgets hold (S59, S113, S115): what is reserved and spent, counted anew claim by claim.

Believes none of the store's accounts: it adds up what workers reported, and compares at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, time
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from fairlane.lab import ledger
from fairlane.lab.ledger import Moment, Record
from fairlane.model.instants import Instant, Micros, to_datetime, to_instant
from fairlane.model.job import Claim
from fairlane.model.policy.budget import BudgetRules
from tests.simulation.policies import Mirror

Spent = Counter[tuple[str, str, str]]
"""What was spent, by budget, tenant and task."""


class Purse(msgspec.Struct):
    """What is spent of a budget by one tenant or by all, in the day that began at `day`, and reserved."""

    day: Instant = 0
    spent: int = 0
    reserved: int = 0


class Reserved(msgspec.Struct):
    """A claim under a budget."""

    budget: str
    purse: tuple[str, str]
    tenant: str
    task: str
    estimate: int
    counted: int = 0
    day: Instant = 0
    is_abandoned: bool = False


class BudgetsCheck:
    """Every budget of a run, and every claim under one."""

    def __init__(self, policies: Mirror, clock: Callable[[], Instant], elapsed: Callable[[], Micros]) -> None:
        """Ask these for rules and for both clocks."""
        self.spent: Spent = Counter()
        self.is_clock_set_back = False
        self.figures = {"reserved": 0, "spent out": 0, "periods": 0}
        self._policies = policies
        self._clock = clock
        self._elapsed = elapsed
        self._purses: dict[tuple[str, str], Purse] = {}
        self._held: dict[tuple[UUID, int], Reserved] = {}
        self._ceilings: dict[tuple[str, str], tuple[BudgetRules, Moment | None]] = {}

    def _purse(self, of: tuple[str, str], rules: BudgetRules) -> Purse:
        """Return a purse in its present day; a day that has begun never ends because a clock is set back."""
        purse, now = self._purses.setdefault(of, Purse()), self._clock()
        zone = ZoneInfo(rules.timezone)
        day = to_instant(datetime.combine(to_datetime(now).astimezone(zone).date(), time(), zone))
        if day > purse.day:
            if purse.day:
                self.figures["periods"] += 1
                self.changed(of[0])
            purse.day, purse.spent = day, 0
        return purse

    def changed(self, budget: str) -> None:
        """Note that a ceiling or a period is not what it was at first."""
        now = self._elapsed()
        for of, (rules, until) in self._ceilings.items():
            if of[0] == budget and until is None:
                self._ceilings[of] = (rules, now)

    def claimed(self, claim: Claim) -> Iterator[str]:
        """Note a claim; say why it should not have been made, or not so."""
        job, now = claim.job, self._clock()
        name, rules = self._policies.budget(job.task, now)
        if name is None or rules.ceiling is None:
            return
        of = (name, job.tenant if rules.per_tenant else "")
        purse = self._purse(of, rules)
        self._ceilings.setdefault(of, (rules, None))
        if claim.is_over_budget:
            self.figures["spent out"] += 1
            may_have_room = self._has_room(purse.spent, rules) and not self.is_clock_set_back
            if rules.on_spent != "fail" or may_have_room:
                yield f"job {job.id} is dead of budget {name}, which has room: {purse}"
            return
        if not self._has_room(purse.spent + purse.reserved, rules):
            yield f"job {job.id} was claimed beyond the {rules.ceiling} of budget {name}: {purse}"
        self.figures["reserved"] += 1
        purse.reserved += rules.estimate
        held = Reserved(name, of, job.tenant, job.task, rules.estimate, day=purse.day)
        self._held[job.id, claim.fence] = held

    def _has_room(self, used: int, rules: BudgetRules) -> bool:
        if self.is_clock_set_back:  # which day it is for the store is not known
            return not rules.ceiling or used < rules.ceiling
        return used < (rules.ceiling or 0) and used + rules.estimate <= (rules.ceiling or 0)

    def forgot(self, claim: Claim) -> None:
        """Let go of a claim that the store has lost."""
        held = self._held.pop((claim.job.id, claim.fence), None)
        if held is not None:
            self._purses[held.purse].reserved -= held.estimate

    def reported(self, id: UUID, fence: int, total: int, *, is_over: bool) -> None:
        """Count what a worker reports: the sum so far."""
        held = self._held.get((id, fence))
        if held is None or (held.is_abandoned and not is_over):
            return
        purse = self._purse(held.purse, self._policies.budget_rules(held.budget, self._clock()))
        before = self._reserved(held)
        may_be_less = held.is_abandoned and held.day == purse.day
        self._count(held, purse, total if may_be_less else max(total, held.counted))
        if is_over:
            del self._held[id, fence]
        purse.reserved -= before - (0 if is_over else self._reserved(held))

    def abandoned(self, id: UUID, fence: int) -> None:
        """Count a claim that somebody else than its worker has ended."""
        held = self._held.get((id, fence))
        if held is not None:
            purse = self._purse(held.purse, self._policies.budget_rules(held.budget, self._clock()))
            purse.reserved -= self._reserved(held)
            self._count(held, purse, max(held.counted, held.estimate))
            held.is_abandoned = True

    def _reserved(self, held: Reserved) -> int:
        return 0 if held.is_abandoned else max(held.estimate - held.counted, 0)

    def _count(self, held: Reserved, purse: Purse, counted: int) -> None:
        more, held.counted, held.day = counted - held.counted, counted, purse.day
        purse.spent += more
        self.spent[held.budget, held.tenant, held.task] += more

    # ── the end ───────────────────────────────────────────────────────────────

    def differs(self, told: Spent) -> Iterator[str]:
        """Say what the store counts as spent and should not, or the other way round."""
        for key in sorted({*told, *self.spent}):
            if told[key] != self.spent[key]:
                budget, tenant, task = key
                yield f"{told[key]} of budget {budget} is spent by {task} of {tenant}, not {self.spent[key]}"

    def records(self, told: Spent) -> list[Record]:
        """Return what an outside ledger would hold: the first ceilings, and the reading of what is spent."""
        ceilings: list[Record] = [
            ledger.Ceiling(
                budget=name,
                ceiling=rules.ceiling or 0,
                estimate=rules.estimate,
                tenant=tenant or None,
                until=0 if self.is_clock_set_back else until,
            )
            for (name, tenant), (rules, until) in self._ceilings.items()
        ]
        counted = [
            ledger.Counted(budget=budget, tenant=tenant, task=task, spent=told[budget, tenant, task])
            for budget, tenant, task in sorted({*told, *self.spent})
        ]
        return [*ceilings, *counted]
