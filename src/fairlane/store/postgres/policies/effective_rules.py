"""Turn a policy into rows of `effective_rule`: numbers that SQL can look up, each for a span of time.

A row is in force from `since` on and before `until`. So a claim needs no model: the limits of a tenant in a
queue are those of the first of (its own for the queue, its own for every queue, everyone's for the queue,
everyone's for every queue, the queue's) that has a row at the instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    EVERY,
    BreakerRules,
    GateRules,
    Override,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
    is_active,
)
from fairlane.model.scheduling.fairness import stride
from fairlane.store.policy_records import EVERYONE, StoredPolicy, in_force

FOREVER: Final[Instant] = 2**63 - 1
"""The end of what does not end by itself."""

_MAX_INT: Final = 2**31 - 1
_MAX_BURST: Final = 10**8
"""Higher limits bind nobody; with these, SQL's integers and a burst times a day stay within their range."""


class EffectiveRule(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `effective_rule`, in the order of its columns. `queue` is empty, a queue's name, or `*`."""

    kind: str
    name: str
    queue: str = ""
    since: Instant
    until: Instant
    stride: int | None = None
    waiting: int | None = None
    on_full: str | None = None
    running: int | None = None
    rate_every: int | None = None
    rate_burst: int | None = None
    rate_id: str | None = None
    max_waiting: int | None = None
    cost: str | None = None
    gate: str | None = None
    gate_limit: int | None = None
    budget: str | None = None
    ceiling: int | None = None
    currency: str | None = None
    estimate: int | None = None
    on_spent: str | None = None
    per_tenant: bool | None = None
    alert_at: tuple[int, ...] | None = None
    breaker: str | None = None


def effective_rules(subject: Subject, policy: StoredPolicy, everyone: StoredPolicy) -> list[EffectiveRule]:
    """Return the rows of a subject; none where nothing is declared or overridden.

    >>> from fairlane.model.policy.overrides import PolicyChange
    >>> above = Override(change=PolicyChange(limit=2), who="ops", set_at=0, until=10)
    >>> fax = Subject(SubjectKind.GATE, "fax")
    >>> rows = effective_rules(fax, StoredPolicy(GateRules(limit=5), above), StoredPolicy())
    >>> [(row.since, row.until == FOREVER, row.gate_limit) for row in rows]
    [(0, False, 2), (10, True, 5)]
    """
    above = (policy.override, everyone.override if depends_on_everyone(subject, policy) else None)
    found: list[EffectiveRule] = []
    for since, until in pairwise((0, *_ends(*above), FOREVER)):
        has_override = policy.override is not None and is_active(policy.override.until, since)
        if policy.declared is not None or has_override:
            span = EffectiveRule(kind=subject.kind.value, name=subject.name, since=since, until=until)
            found += _rows(span, in_force(subject, policy, everyone, since))
    return found


def depends_on_everyone(subject: Subject, policy: StoredPolicy) -> bool:
    """Whether a tenant's rows change with those of everyone: it has an override and is not declared."""
    is_somebody = subject.kind is SubjectKind.TENANT and subject != EVERYONE
    return is_somebody and policy.declared is None and policy.override is not None


def _ends(*overrides: Override | None) -> list[Instant]:
    """Return the instants at which overrides end by themselves, each once."""
    ends = {one.until for one in overrides if one is not None and one.until is not None}
    return sorted(end for end in ends if end > 0)


def _rows(span: EffectiveRule, rules: Rules) -> Iterator[EffectiveRule]:
    change = msgspec.structs.replace
    match rules:
        case TenantRules():
            yield change(span, stride=stride(rules.weight))
            for queue, limits in rules.limits.items():
                yield _with_limits(span, queue, limits)
        case QueueRules():
            yield change(
                _with_rate(span, rules.rate), max_waiting=_bounded(rules.max_waiting), cost=rules.cost
            )
            yield _with_limits(span, EVERY, rules.limits)
        case TaskRules():
            yield change(
                _with_rate(span, rules.rate), gate=rules.gate, budget=rules.budget, breaker=rules.breaker
            )
        case BreakerRules():
            pass  # claims read its state
        case GateRules():
            yield change(_with_rate(span, rules.rate), gate_limit=_bounded(rules.limit))
        case BudgetRules():
            yield change(
                span,
                ceiling=rules.ceiling,
                currency=rules.currency,
                estimate=rules.estimate,
                on_spent=rules.on_spent,
                per_tenant=rules.per_tenant,
                alert_at=rules.alert_at,
            )


def _with_limits(span: EffectiveRule, queue: str, limits: Limits) -> EffectiveRule:
    row = msgspec.structs.replace(
        span,
        queue=queue,
        waiting=_bounded(limits.waiting),
        on_full=limits.on_full,
        running=_bounded(limits.running),
    )
    return _with_rate(row, limits.rate)


def _with_rate(span: EffectiveRule, rate: Rate | None) -> EffectiveRule:
    if rate is None:
        return span
    burst = min(rate.burst, _MAX_BURST)
    return msgspec.structs.replace(span, rate_every=rate.interval, rate_burst=burst, rate_id=rate.rate_id)


def _bounded(limit: int | None) -> int | None:
    return None if limit is None else min(limit, _MAX_INT)
