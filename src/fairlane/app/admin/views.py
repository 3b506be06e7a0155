"""Tenants and queues as users see them: effective values, declared values, run-time overrides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from fairlane.model.instants import Instant, to_datetime
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.declared import Cost
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import Hold, Override, QueueRules, Rules, TenantRules, limits_of
from fairlane.store.contract.policies import PolicyView


@dataclass(frozen=True, slots=True)
class Held:
    """A pause or a close: who set it, why, since when, and until when if it ends by itself."""

    who: str
    reason: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Overridden:
    """Values set at run time over the declared ones: the values by name, who set them, why, since, until."""

    values: Mapping[str, Any]
    who: str
    note: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant at one instant. `weight`, `labels` and `limits` (by queue) are the effective values.

    `declared` holds the values given by code, file or `declare`, None without any. `override` holds those set
    at run time. `counts` are its jobs by queue and state.
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
    """A queue at one instant. `limits` (of each tenant), `rate` and `max_waiting` are the effective values.

    `declared` holds the values given by code or file, None until a worker has written them. `override` holds
    those set at run time. `counts` are its jobs by state, over all tenants.
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


def tenant_view(
    view: PolicyView,
    everyone: TenantRules,
    queues: Mapping[str, QueueRules],
    counts: Mapping[str, Mapping[State, int]],
) -> Tenant:
    """Return the view of a tenant, with its limits in each of these queues."""
    rules = view.effective if isinstance(view.effective, TenantRules) else TenantRules()
    return Tenant(
        name=view.subject.name,
        weight=rules.weight,
        labels=rules.labels,
        limits={name: limits_of(name, rules, everyone, queue) for name, queue in queues.items()},
        counts=counts,
        paused=held_view(view.paused),
        closed=held_view(view.closed),
        declared=declared_values(view.declared),
        override=override_view(view.override),
    )


def queue_view(view: PolicyView, counts: Mapping[State, int]) -> QueueView:
    """Return the view of a queue."""
    rules = view.effective if isinstance(view.effective, QueueRules) else QueueRules()
    return QueueView(
        name=view.subject.name,
        limits=rules.limits,
        rate=rules.rate,
        max_waiting=rules.max_waiting,
        cost=rules.cost,
        counts=counts,
        paused=held_view(view.paused),
        closed=held_view(view.closed),
        declared=declared_values(view.declared),
        override=override_view(view.override),
    )


def held_view(hold: Hold | None) -> Held | None:
    """Return the view of a pause or a close."""
    if hold is None:
        return None
    return Held(hold.who, hold.reason, to_datetime(hold.set_at), to_optional_datetime(hold.until))


def declared_values(rules: Rules | None) -> Mapping[str, Any] | None:
    """Return the declared values by name."""
    return None if rules is None else msgspec.structs.asdict(rules)


def override_view(override: Override | None) -> Overridden | None:
    """Return the view of a run-time override."""
    if override is None:
        return None
    values = override.change.fields()
    by_queue = values.pop("queue_limits", None)
    if by_queue is not None:
        values["limits"] = by_queue
    since = to_datetime(override.set_at)
    return Overridden(values, override.who, override.note, since, to_optional_datetime(override.until))


def to_optional_datetime(instant: Instant | None) -> datetime | None:
    """Return an optional instant as a datetime."""
    return None if instant is None else to_datetime(instant)
