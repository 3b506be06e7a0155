"""The rules that stores enforce, overrides above declared rules (S54), and the limits of a tenant in a queue.

Declared rules come from code, file and environment at a worker's start. An override is set by a person at
run time, survives deploys, and ends by reset or by its `until`. Stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.model.instants import MINUTE, Instant, Micros
from fairlane.model.policy.amounts import Millionths
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.declared import BreakerPer, Cost, OnOpen
from fairlane.model.policy.limits import NO_LIMITS, Limits, Rate
from fairlane.model.scheduling.fairness import stride

EVERY: Final = "*"
"""Every queue in a tenant's limits, or every undeclared tenant; it is no legal name."""


class SubjectKind(StrEnum):
    """What a policy, a pause or a close applies to."""

    QUEUE = "queue"
    TENANT = "tenant"
    TASK = "task"
    GATE = "gate"
    BREAKER = "breaker"
    BUDGET = "budget"


class Subject(msgspec.Struct, frozen=True, order=True):
    """What a policy applies to: one queue, tenant, task, gate, breaker or budget.

    >>> str(Subject(SubjectKind.QUEUE, "bulk"))
    'queue bulk'
    """

    kind: SubjectKind
    name: str

    def __str__(self) -> str:
        """Return the kind and the name, as `explain` shows it."""
        return f"{self.kind.value} {self.name}"


class QueueRules(msgspec.Struct, frozen=True):
    """What a store enforces for a queue; `limits` are those of each tenant in it."""

    limits: Limits = NO_LIMITS
    rate: Rate | None = None
    max_waiting: int | None = None
    cost: Cost = "jobs"


class TenantRules(msgspec.Struct, frozen=True):
    """What a store enforces for a tenant; `limits` by queue, `*` for every other queue."""

    weight: float = 1.0
    labels: Mapping[str, str] = {}
    limits: Mapping[str, Limits] = {}

    def __post_init__(self) -> None:
        """Refuse a meaningless weight."""
        stride(self.weight)


class TaskRules(msgspec.Struct, frozen=True):
    """What a store enforces for a task: its rate over all tenants, its gate, its budget and its breaker."""

    rate: Rate | None = None
    gate: str | None = None
    budget: str | None = None
    breaker: str | None = None


class GateRules(msgspec.Struct, frozen=True):
    """What a store enforces for a gate."""

    limit: int | None = None
    rate: Rate | None = None


class BreakerRules(msgspec.Struct, frozen=True):
    """When a breaker opens, for how long, and how it closes (S58)."""

    failures: int = 5
    window: Micros = MINUTE
    open_for: Micros = MINUTE
    per: BreakerPer = "all"
    on_open: OnOpen = "snooze"
    ramp: int = 8


Rules: TypeAlias = QueueRules | TenantRules | TaskRules | GateRules | BreakerRules | BudgetRules

DEFAULTS: Final[Mapping[SubjectKind, Rules]] = {
    SubjectKind.QUEUE: QueueRules(),
    SubjectKind.TENANT: TenantRules(),
    SubjectKind.TASK: TaskRules(),
    SubjectKind.GATE: GateRules(),
    SubjectKind.BREAKER: BreakerRules(),
    SubjectKind.BUDGET: BudgetRules(),
}


class PolicyChange(msgspec.Struct, frozen=True, kw_only=True):
    """The values that an override sets; UNSET keeps the declared one. Limits of a tenant are per queue."""

    limits: Limits | UnsetType = UNSET
    queue_limits: Mapping[str, Limits] | UnsetType = UNSET
    rate: Rate | UnsetType | None = UNSET
    max_waiting: int | UnsetType | None = UNSET
    weight: float | UnsetType = UNSET
    limit: int | UnsetType | None = UNSET
    ceiling: Millionths | UnsetType = UNSET

    def fields(self) -> dict[str, object]:
        """Return the set values by name."""
        named = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in named if value is not UNSET}


_SETTABLE: Final[Mapping[SubjectKind, frozenset[str]]] = {
    SubjectKind.QUEUE: frozenset({"limits", "rate", "max_waiting"}),
    SubjectKind.TENANT: frozenset({"weight", "queue_limits"}),
    SubjectKind.TASK: frozenset({"rate"}),
    SubjectKind.GATE: frozenset({"limit", "rate"}),
    SubjectKind.BREAKER: frozenset(),
    SubjectKind.BUDGET: frozenset({"ceiling"}),
}


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """A change above declared rules: who set it, why, and until when."""

    change: PolicyChange
    who: str
    note: str = ""
    set_at: Instant
    until: Instant | None = None


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A pause or a close: who, why, since when, and until when."""

    who: str
    reason: str
    set_at: Instant
    until: Instant | None = None


def _settable(kind: SubjectKind) -> str:
    return ", ".join(sorted(name.removeprefix("queue_") for name in _SETTABLE[kind]))


def change_problems(kind: SubjectKind, change: PolicyChange) -> list[str]:
    """Return what is wrong with a change: values that this kind of subject lacks, and illegal ones.

    >>> change_problems(SubjectKind.GATE, PolicyChange(limit=3, weight=2.0))
    ['weight cannot be set on a gate']
    """
    problems = [
        f"{name} cannot be set on a {kind.value}" for name in change.fields() if name not in _SETTABLE[kind]
    ]
    if not change.fields():
        problems.append(f"nothing is set; give one of: {_settable(kind)}")
    for name in ("max_waiting", "limit", "ceiling"):
        count = change.fields().get(name)
        if isinstance(count, int) and count < 0:
            problems.append(f"{name} must be 0 or more, not {count}")
    try:
        stride(1.0 if change.weight is UNSET else change.weight)
    except ValueError as error:
        problems.append(str(error))
    return problems


_R = TypeVar("_R", bound=Rules)


def overlay(rules: _R, override: Override | None, now: Instant) -> _R:
    """Return the effective rules: the declared ones with an active override on top.

    >>> above = Override(change=PolicyChange(max_waiting=5), who="ops", set_at=0, until=10)
    >>> overlay(QueueRules(), above, 9).max_waiting, overlay(QueueRules(), above, 10).max_waiting
    (5, None)
    """
    if override is None or not is_active(override.until, now):
        return rules
    values = override.change.fields()
    by_queue = values.pop("queue_limits", None)
    if by_queue is not None and isinstance(rules, TenantRules):
        values["limits"] = {**rules.limits, **by_queue}  # type: ignore[dict-item]
    return msgspec.structs.replace(rules, **values)


def is_active(until: Instant | None, now: Instant) -> bool:
    """Whether an override, pause or close with an optional end is still in force.

    >>> is_active(None, 5), is_active(5, 5), is_active(6, 5)
    (True, False, True)
    """
    return until is None or now < until


def limits_of(queue: str, tenant: TenantRules, everyone: TenantRules, rules: QueueRules) -> Limits:
    """Return the limits of a tenant in a queue: the most specific ones, taken as a whole.

    In this order: the tenant's own for the queue, its own for every queue, the same two of undeclared
    tenants, the queue's.

    >>> own = TenantRules(limits={"bulk": Limits(running=8)})
    >>> limits_of("bulk", own, TenantRules(), QueueRules(limits=Limits(running=4))).running
    8
    >>> limits_of("mail", own, TenantRules(), QueueRules(limits=Limits(running=4))).running
    4
    """
    for given in (tenant.limits, everyone.limits):
        for key in (queue, EVERY):
            if key in given:
                return given[key]
    return rules.limits
