"""Encode policies, twice: as they were set, for Python, and as plain numbers, for scripts."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    BreakerRules,
    GateRules,
    PolicyChange,
    QueueRules,
    Rules,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.model.scheduling.fairness import stride
from fairlane.store.policy_records import NO_POLICY, StoredPolicy, pack_policy, unpack_policy
from fairlane.store.redis.records.job import pack

_PARTS: Final = msgspec.msgpack.Decoder(tuple[bytes | None, bytes | None, bytes | None, bytes | None])


def read_policy(kind: SubjectKind, stored: bytes) -> StoredPolicy:
    """Decode the stored policy of a subject; empty bytes are no policy."""
    return unpack_policy(kind, _PARTS.decode(stored)) if stored else NO_POLICY


def write_policy(policy: StoredPolicy) -> bytes:
    """Encode a policy as it was set; no policy is empty bytes."""
    return b"" if policy == NO_POLICY else pack(pack_policy(policy))


def write_rules(policy: StoredPolicy) -> bytes:
    """Encode a policy for scripts: no end is 0, a value that an override removes is false."""
    values: dict[str, Any] = {}
    if policy.declared is not None:
        values["declared"] = _plain(policy.declared)
    if policy.override is not None:
        values["override"] = _changed(policy.override.change)
        values["override_until"] = policy.override.until or 0
    if policy.paused is not None:
        values["paused_until"] = policy.paused.until or 0
    if policy.closed is not None:
        values["closed_until"] = policy.closed.until or 0
        values["closed_because"] = policy.closed.reason
    return pack(values)


def _plain(rules: Rules) -> dict[str, Any]:
    values: dict[str, Any]
    match rules:
        case QueueRules():
            values = {"limits": _limits(rules.limits), "cost": rules.cost, "max_waiting": rules.max_waiting}
        case TenantRules():
            return {
                "stride": stride(rules.weight),
                "limits": {queue: _limits(limits) for queue, limits in rules.limits.items()},
            }
        case TaskRules():
            values = {"gate": rules.gate, "budget": rules.budget, "breaker": rules.breaker}
        case BreakerRules():
            return {}  # claims read its state
        case GateRules():
            values = {"limit": rules.limit}
        case BudgetRules():
            plain = msgspec.structs.asdict(rules)
            return {name: value for name, value in plain.items() if value is not None}
    values["rate"] = None if rules.rate is None else _rate(rules.rate)
    return {name: value for name, value in values.items() if value is not None}


def _changed(change: PolicyChange) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in change.fields().items():
        match name, value:
            case "weight", float() | int():
                values["stride"] = stride(value)
            case "limits", Limits():
                values["limits"] = _limits(value)
            case "queue_limits", dict():
                values["queue_limits"] = {queue: _limits(limits) for queue, limits in value.items()}
            case "rate", Rate():
                values["rate"] = _rate(value)
            case _:
                values[name] = False if value is None else value
    return values


def _limits(limits: Limits) -> dict[str, Any]:
    values = {
        "waiting": limits.waiting,
        "on_full": limits.on_full,
        "running": limits.running,
        "rate": None if limits.rate is None else _rate(limits.rate),
    }
    return {name: value for name, value in values.items() if value is not None}


def _rate(rate: Rate) -> dict[str, Any]:
    # "pace" is the rate id: schema 1 has it under this name.
    return {"interval": rate.interval, "burst": rate.burst, "pace": rate.rate_id}
