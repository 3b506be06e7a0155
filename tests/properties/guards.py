"""Breakers and budgets in the state machine: every store against the oracle (S58, S59, S110-S115)."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from fairlane.model.guards.breaker import Outcomes
from fairlane.model.instants import DAY, SECOND
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import (
    BreakerRules,
    PolicyChange,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
)
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakerOutcomes,
    BreakersRequest,
    BreakerVerb,
    ChangeBreakerRequest,
    EnterRequest,
    ReportRequest,
)
from fairlane.store.contract.budgets import AccountsRequest, SpendRequest
from fairlane.store.contract.policies import OverrideRequest, PutRequest, SubjectRequest
from tests.properties.machine import TASKS, TENANTS, mostly_all, seeds
from tests.properties.schedules import ScheduleMachine

ALL = Scope.all()
BREAKER, BUDGET = "calls", "ai"
_BUDGET = Subject(SubjectKind.BUDGET, BUDGET)


def _breaker(rng: random.Random) -> BreakerRules:
    return BreakerRules(
        failures=rng.choice((1, 2, 3)),
        window=rng.choice((1, 60)) * SECOND,
        open_for=rng.choice((1, 2, 2)) * SECOND,
        per=rng.choice(("all", "tenant")),
        ramp=rng.choice((1, 2, 4)),
    )


def _budget(rng: random.Random) -> BudgetRules:
    return BudgetRules(
        ceiling=rng.choice((None, 0, 12, 40, 90)),
        currency="USD",
        per=rng.choice(("day", "month")),
        timezone=rng.choice(("UTC", "America/Los_Angeles")),  # where the clock of a run begins at midnight
        estimate=rng.choice((0, 3, 5)),
        on_spent=rng.choice(("fail", "park")),
        per_tenant=rng.choice((False, True)),
        alert_at=rng.choice(((), (80, 100))),
    )


class GuardMachine(ScheduleMachine):
    """Declares guards before tasks, reports, enters, operates and reads."""

    @initialize(seed=seeds)
    def declare(self, seed: int) -> None:
        """Begin with guards before some tasks."""
        for task in TASKS:
            self.guard(seed, task)
        super().declare(seed)

    def _work_step(self, step: str, rng: random.Random) -> None:
        """Use guards in between, as workers do."""
        if rng.random() < 0.3:
            rng.choice((self._report, self._report, self._report, self._enter, self._operate))(rng, ALL)
        super()._work_step(step, rng)

    @rule(seed=seeds, task=st.sampled_from(TASKS))
    def guard(self, seed: int, task: str) -> None:
        """Put a task behind a breaker or under a budget, or take it out again; and change their rules."""
        rng = random.Random(seed)
        rules: dict[Subject, Rules] = {
            Subject(SubjectKind.TASK, task): TaskRules(
                gate="screens" if task == "shoot" else None,
                breaker=rng.choice((None, None, BREAKER)),
                budget=rng.choice((None, None, BUDGET)),
            ),
            Subject(SubjectKind.BREAKER, BREAKER): _breaker(rng),
            _BUDGET: _budget(rng),
        }
        self.both(lambda s: s.policies.put(PutRequest(scope=ALL, rules=rules)))

    @rule(seed=seeds, scope=mostly_all)
    def use_guards(self, seed: int, scope: Scope) -> None:
        """Do some things with both: one rule, so that all others keep their turns."""
        rng = random.Random(seed)
        steps = (self._report, self._report, self._enter, self._operate, self._set_a_ceiling, self._go_on)
        for step in rng.choices(steps, k=4):
            step(rng, scope)
        limit = rng.choice((1, 100))
        self.both(lambda s: s.breakers.list(BreakersRequest(scope=scope, limit=limit)))
        self.both(lambda s: s.budgets.accounts(AccountsRequest(scope=scope, budget=BUDGET, limit=limit)))
        self.both(lambda s: _spent(s, scope))

    def _report(self, rng: random.Random, scope: Scope) -> None:
        """Tell what was seen, of jobs with a permit and of others."""
        reports = tuple(
            BreakerOutcomes(BREAKER, self._outcomes(rng, scope.tenant)) for _ in range(rng.randint(1, 3))
        )
        self.both(lambda s: s.breakers.report(ReportRequest(scope=scope, reports=reports)))

    def _outcomes(self, rng: random.Random, tenant: str | None) -> Outcomes:
        if self.claims and rng.random() < 0.6:
            job = rng.choice(self.claims[-4:]).job
            passed = rng.choice((True, True, False, None))
            return Outcomes(job.tenant, int(passed is True), int(passed is False), job.id)
        owner = rng.choice(TENANTS[:3]) if tenant is None or rng.random() < 0.2 else tenant
        return Outcomes(owner, rng.choice((0, 1)), rng.choice((0, 1, 2)))

    def _enter(self, rng: random.Random, scope: Scope) -> None:
        """Ask whether a job may pass, which runs, has run, or is none."""
        claim = rng.choice(self.claims) if self.claims and rng.random() < 0.8 else None
        tenant = rng.choice(TENANTS[:3]) if claim is None else claim.job.tenant
        request = EnterRequest(
            scope=scope, name=BREAKER, tenant=tenant, job=None if claim is None else claim.job.id
        )
        self.both(lambda s: s.breakers.enter(request))

    def _until(self, rng: random.Random) -> int | None:
        seconds = rng.choice((None, 1, 1, 1, 3))
        return None if seconds is None else self.clock.now() + seconds * SECOND

    def _operate(self, rng: random.Random, scope: Scope) -> None:
        """Open, close or reset a breaker as an operator does."""
        verbs: tuple[BreakerVerb, ...] = ("open", "open", "open", "close", "reset")
        request = ChangeBreakerRequest(
            scope=scope,
            key=BreakerKey(BREAKER, rng.choice(("", "", *TENANTS[:2]))),
            verb=rng.choice(verbs),
            who="ops",
            reason="drill",
            until=self._until(rng),
            operation=self.operation,
        )
        self.both(lambda s: s.breakers.change(request))

    def _set_a_ceiling(self, rng: random.Random, _: Scope) -> None:
        """Change what may be spent, or change it back."""
        ceiling = rng.choice((None, 0, 20, 90))
        if ceiling is None:
            plain = SubjectRequest(scope=ALL, subject=_BUDGET, who="ops", operation=self.operation)
            self.both(lambda s: s.policies.reset(plain))
            return
        request = OverrideRequest(
            scope=ALL,
            subject=_BUDGET,
            change=PolicyChange(ceiling=ceiling),
            who="ops",
            until=self._until(rng),
            operation=self.operation,
        )
        self.both(lambda s: s.policies.override(request))

    def _go_on(self, rng: random.Random, _: Scope) -> None:
        """Let time pass, now and then a day, or set the clock back: perhaps across a midnight."""
        self.clock.advance(rng.choice((*(1, 3) * 4, -3, DAY / SECOND)))


async def _spent(store: Store, scope: Scope) -> list[Any]:
    """Read the breakdown of every period."""
    first = await store.budgets.spend(SpendRequest(scope=scope, budget=BUDGET))
    return [
        first,
        *[
            await store.budgets.spend(SpendRequest(scope=scope, budget=BUDGET, starts_at=at))
            for at in first.periods
        ],
    ]
