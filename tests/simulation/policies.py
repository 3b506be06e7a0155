"""What is allowed, as an onlooker knows who has heard every change. Stores nothing and asks nobody."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from fairlane.model.instants import Instant
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    DEFAULTS,
    EVERY,
    BreakerRules,
    GateRules,
    Override,
    PolicyChange,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
    is_active,
    limits_of,
    overlay,
)
from fairlane.model.scheduling.fairness import stride
from fairlane.store.contract.policies import HoldRequest, OverrideRequest, PutRequest

R = TypeVar("R", bound=Rules)


class Mirror:
    """Declared values, overrides and pauses, as every change that the store accepted has left them."""

    def __init__(self) -> None:
        """Begin with nothing declared."""
        self._declared: dict[Subject, Rules] = {}
        self._overrides: dict[Subject, Override] = {}
        self._paused: dict[Subject, Instant | None] = {}

    def note(self, verb: str, request: Any) -> bool:
        """Hear an accepted change; say whether anything is different now."""
        before = (dict(self._declared), dict(self._overrides), dict(self._paused))
        match verb:
            case "put":
                self._declared.update(cast("PutRequest", request).rules)
            case "override":
                asked = cast("OverrideRequest", request)
                self._overrides[asked.subject] = Override(
                    change=asked.change, who=asked.who, set_at=0, until=asked.until
                )
            case "reset":
                self._overrides.pop(request.subject, None)
            case "pause":
                held = cast("HoldRequest", request)
                self._paused[held.subject] = held.until
            case "resume":
                self._paused.pop(request.subject, None)
        return before != (self._declared, self._overrides, self._paused)

    def override(self, subject: Subject, now: Instant) -> PolicyChange | None:
        """Return what lies above the declared values of a subject, if it still holds."""
        one = self._overrides.get(subject)
        return None if one is None or not is_active(one.until, now) else one.change

    def _rules(self, kind: SubjectKind, name: str, now: Instant, of: type[R]) -> R:
        subject = Subject(kind, name)
        beneath = self._declared.get(subject)
        if beneath is None and kind is SubjectKind.TENANT and name != EVERY:
            beneath = self._rules(kind, EVERY, now, TenantRules)
        rules = overlay(beneath or DEFAULTS[kind], self._overrides.get(subject), now)
        assert isinstance(rules, of)
        return rules

    def limits(self, queue: str, tenant: str, now: Instant) -> Limits:
        """Return the limits of a tenant in a queue."""
        own = self._rules(SubjectKind.TENANT, tenant, now, TenantRules)
        everyone = self._rules(SubjectKind.TENANT, EVERY, now, TenantRules)
        return limits_of(queue, own, everyone, self._rules(SubjectKind.QUEUE, queue, now, QueueRules))

    def gate(self, task: str, now: Instant) -> tuple[str | None, int | None]:
        """Return the gate of a task and how many may hold it."""
        gate = self._rules(SubjectKind.TASK, task, now, TaskRules).gate
        return gate, None if gate is None else self._rules(SubjectKind.GATE, gate, now, GateRules).limit

    def rate(self, task: str, now: Instant) -> Rate | None:
        """Return the rate of a task."""
        return self._rules(SubjectKind.TASK, task, now, TaskRules).rate

    def breaker(self, task: str, now: Instant) -> str | None:
        """Return the breaker of a task."""
        return self._rules(SubjectKind.TASK, task, now, TaskRules).breaker

    def breaker_rules(self, name: str, now: Instant) -> BreakerRules:
        """Return the rules of a breaker."""
        return self._rules(SubjectKind.BREAKER, name, now, BreakerRules)

    def budget(self, task: str, now: Instant) -> tuple[str | None, BudgetRules]:
        """Return the budget of a task with its rules."""
        name = self._rules(SubjectKind.TASK, task, now, TaskRules).budget
        return name, BudgetRules() if name is None else self.budget_rules(name, now)

    def budget_rules(self, name: str, now: Instant) -> BudgetRules:
        """Return the rules of a budget."""
        return self._rules(SubjectKind.BUDGET, name, now, BudgetRules)

    def stride(self, tenant: str, now: Instant) -> int:
        """Return what a job of this tenant costs in virtual time."""
        return stride(self._rules(SubjectKind.TENANT, tenant, now, TenantRules).weight)

    def counts_jobs(self, queue: str, now: Instant) -> bool:
        """Whether turns in a queue are counted in jobs."""
        return self._rules(SubjectKind.QUEUE, queue, now, QueueRules).cost == "jobs"

    def is_free(self, queue: str, tenant: str, now: Instant) -> bool:
        """Whether nothing can hold back a tenant's jobs without a gate in a queue."""
        rate = self._rules(SubjectKind.QUEUE, queue, now, QueueRules).rate
        limits = self.limits(queue, tenant, now)
        return rate is None and limits.running is None and limits.rate is None and not self._paused

    def is_paused(self, queue: str, tenant: str, task: str, now: Instant) -> bool:
        """Whether jobs of this strand must not be handed out."""
        subjects = (
            Subject(SubjectKind.QUEUE, queue),
            Subject(SubjectKind.TENANT, tenant),
            Subject(SubjectKind.TASK, task),
        )
        return any(one in self._paused and is_active(self._paused[one], now) for one in subjects)
