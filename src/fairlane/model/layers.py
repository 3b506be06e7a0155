"""Put a run-time override above declared values (S54), and find the limits that hold for a tenant.

Declared values come from code, file and environment at a worker's start; an override is set by a person,
survives deploys, and ends by reset or by its `until`. Here they are laid over each other; nothing is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.model.fairness import stride
from fairlane.model.instants import Instant
from fairlane.model.limits import NO_LIMITS, Limits, Rate
from fairlane.model.policy import Cost

EVERY: Final = "*"
"""Stands for every queue in a tenant's limits, and for every undeclared tenant; no legal name equals it."""


class Kind(StrEnum):
    """What a policy, a pause or a close can be about."""

    QUEUE = "queue"
    TENANT = "tenant"
    TASK = "task"
    GATE = "gate"


class Subject(msgspec.Struct, frozen=True, order=True):
    """What a policy is about: one queue, tenant, task or gate.

    >>> str(Subject(Kind.QUEUE, "bulk"))
    'queue bulk'
    """

    kind: Kind
    name: str

    def __str__(self) -> str:
        """Name it as `explain` does."""
        return f"{self.kind.value} {self.name}"


class QueueRules(msgspec.Struct, frozen=True):
    """What a store must know of a queue; `limits` are those of each tenant in it."""

    limits: Limits = NO_LIMITS
    rate: Rate | None = None
    max_waiting: int | None = None
    cost: Cost = "jobs"


class TenantRules(msgspec.Struct, frozen=True):
    """What a store must know of a tenant; `limits` by queue, `*` for every other queue."""

    weight: float = 1.0
    labels: Mapping[str, str] = {}
    limits: Mapping[str, Limits] = {}

    def __post_init__(self) -> None:
        """Refuse a weight that means nothing."""
        stride(self.weight)


class TaskRules(msgspec.Struct, frozen=True):
    """What a store must know of a task: its rate over all tenants and its gate."""

    rate: Rate | None = None
    gate: str | None = None


class GateRules(msgspec.Struct, frozen=True):
    """What a store must know of a gate."""

    limit: int | None = None
    rate: Rate | None = None


Rules: TypeAlias = QueueRules | TenantRules | TaskRules | GateRules

DEFAULTS: Final[Mapping[Kind, Rules]] = {
    Kind.QUEUE: QueueRules(),
    Kind.TENANT: TenantRules(),
    Kind.TASK: TaskRules(),
    Kind.GATE: GateRules(),
}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The values an override sets; what is UNSET stays as declared. `limits` of a tenant go by queue."""

    limits: Limits | UnsetType = UNSET
    queue_limits: Mapping[str, Limits] | UnsetType = UNSET
    rate: Rate | UnsetType | None = UNSET
    max_waiting: int | UnsetType | None = UNSET
    weight: float | UnsetType = UNSET
    limit: int | UnsetType | None = UNSET

    def fields(self) -> dict[str, object]:
        """Give the values that are set, by name."""
        named = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in named if value is not UNSET}


_SETTABLE: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.QUEUE: frozenset({"limits", "rate", "max_waiting"}),
    Kind.TENANT: frozenset({"weight", "queue_limits"}),
    Kind.TASK: frozenset({"rate"}),
    Kind.GATE: frozenset({"limit", "rate"}),
}


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """A change above declared values: who set it, why, and until when."""

    change: Change
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


def _settable(kind: Kind) -> str:
    return ", ".join(sorted(name.removeprefix("queue_") for name in _SETTABLE[kind]))


def misfits(kind: Kind, change: Change) -> list[str]:
    """Name the values of a change that this kind of subject does not have, and bad ones.

    >>> misfits(Kind.GATE, Change(limit=3, weight=2.0))
    ['weight cannot be set on a gate']
    """
    problems = [
        f"{name} cannot be set on a {kind.value}" for name in change.fields() if name not in _SETTABLE[kind]
    ]
    if not change.fields():
        problems.append(f"nothing is set; give one of: {_settable(kind)}")
    for name in ("max_waiting", "limit"):
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
    """Give the values in force: the declared ones with a living override on top.

    >>> above = Override(change=Change(max_waiting=5), who="ops", set_at=0, until=10)
    >>> overlay(QueueRules(), above, 9).max_waiting, overlay(QueueRules(), above, 10).max_waiting
    (5, None)
    """
    if override is None or not is_living(override.until, now):
        return rules
    values = override.change.fields()
    by_queue = values.pop("queue_limits", None)
    if by_queue is not None and isinstance(rules, TenantRules):
        values["limits"] = {**rules.limits, **by_queue}  # type: ignore[dict-item]
    return msgspec.structs.replace(rules, **values)


def is_living(until: Instant | None, now: Instant) -> bool:
    """Whether something with an optional end still holds.

    >>> is_living(None, 5), is_living(5, 5), is_living(6, 5)
    (True, False, True)
    """
    return until is None or now < until


def limits_of(queue: str, tenant: TenantRules, everyone: TenantRules, rules: QueueRules) -> Limits:
    """Choose the limits of a tenant in a queue: the most specific that is given, as a whole.

    The tenant's own for the queue, its own for every queue, the same of undeclared tenants, the queue's.

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
