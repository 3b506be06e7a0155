"""Tenants and queues as people see them: what holds, what was declared, what somebody has set above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from fairlane.model.instants import Instant, to_datetime
from fairlane.model.layers import Hold, Override, QueueRules, Rules, TenantRules, limits_of
from fairlane.model.lifecycle import State
from fairlane.model.limits import Limits, Rate
from fairlane.model.policy import Cost
from fairlane.store.contract.policies import PolicyView


@dataclass(frozen=True, slots=True)
class Held:
    """A pause or a close: who, why, since when, and until when if it ends by itself."""

    who: str
    reason: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Overridden:
    """What somebody has set above the declared values: the values by name, who, why, since, until."""

    values: Mapping[str, Any]
    who: str
    note: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant at one instant. `weight`, `labels` and `limits` (by queue) are what holds.

    `declared` has the values that code, file or `declare` gave, None if nobody has; `override` what was set
    above them. `counts` are its jobs by queue and state.
    """

    name: str
    weight: float
    labels: Mapping[str, str]
    limits: Mapping[str, Limits]
    counts: Mapping[str, Mapping[State, int]]
    paused: Held | None
    closed: Held | None
    declared: Mapping[str, Any] | None
    override: Overridden | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue at one instant. `limits` (each tenant's), `rate` and `max_waiting` are what holds.

    `declared` has the values that code or file gave, None if no worker has written any yet; `override` what
    was set above them. `counts` are its jobs by state, over all tenants.
    """

    name: str
    limits: Limits
    rate: Rate | None
    max_waiting: int | None
    cost: Cost
    counts: Mapping[State, int]
    paused: Held | None
    closed: Held | None
    declared: Mapping[str, Any] | None
    override: Overridden | None


def tenant_of(
    view: PolicyView,
    everyone: TenantRules,
    queues: Mapping[str, QueueRules],
    counts: Mapping[str, Mapping[State, int]],
) -> Tenant:
    """Show a tenant, with its limits in each of these queues."""
    rules = view.effective if isinstance(view.effective, TenantRules) else TenantRules()
    return Tenant(
        name=view.subject.name,
        weight=rules.weight,
        labels=rules.labels,
        limits={name: limits_of(name, rules, everyone, queue) for name, queue in queues.items()},
        counts=counts,
        paused=held_of(view.paused),
        closed=held_of(view.closed),
        declared=declared_of(view.declared),
        override=override_of(view.override),
    )


def queue_of(view: PolicyView, counts: Mapping[State, int]) -> QueueView:
    """Show a queue."""
    rules = view.effective if isinstance(view.effective, QueueRules) else QueueRules()
    return QueueView(
        name=view.subject.name,
        limits=rules.limits,
        rate=rules.rate,
        max_waiting=rules.max_waiting,
        cost=rules.cost,
        counts=counts,
        paused=held_of(view.paused),
        closed=held_of(view.closed),
        declared=declared_of(view.declared),
        override=override_of(view.override),
    )


def held_of(hold: Hold | None) -> Held | None:
    """Show a pause or a close."""
    if hold is None:
        return None
    return Held(hold.who, hold.reason, to_datetime(hold.set_at), moment_of(hold.until))


def declared_of(rules: Rules | None) -> Mapping[str, Any] | None:
    """Show what was declared, by name."""
    return None if rules is None else msgspec.structs.asdict(rules)


def override_of(override: Override | None) -> Overridden | None:
    """Show what was set above it."""
    if override is None:
        return None
    values = override.change.fields()
    by_queue = values.pop("queue_limits", None)
    if by_queue is not None:
        values["limits"] = by_queue
    since = to_datetime(override.set_at)
    return Overridden(values, override.who, override.note, since, moment_of(override.until))


def moment_of(instant: Instant | None) -> datetime | None:
    """Show an instant that may be missing."""
    return None if instant is None else to_datetime(instant)
