"""What is allowed, kept twice: as it was set, for us, and worked out into plain numbers, for scripts."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlane.model.fairness import stride
from fairlane.model.instants import Instant
from fairlane.model.layers import (
    DEFAULTS,
    EVERY,
    Change,
    GateRules,
    Hold,
    Kind,
    Override,
    QueueRules,
    Rules,
    Subject,
    TaskRules,
    TenantRules,
    is_living,
    overlay,
)
from fairlane.model.limits import Limits, Rate
from fairlane.store.contract.policies import PolicyView
from fairlane.store.redis.rows import pack

EVERYONE: Final = Subject(Kind.TENANT, EVERY)


class Policy(msgspec.Struct, frozen=True):
    """Everything stored about one subject."""

    declared: Rules | None = None
    override: Override | None = None
    paused: Hold | None = None
    closed: Hold | None = None


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """A policy as it is kept; what is declared can only be read by its kind."""

    declared: msgspec.Raw
    override: Override | None
    paused: Hold | None
    closed: Hold | None


_RULES: Final[dict[Kind, Any]] = {
    Kind.QUEUE: msgspec.msgpack.Decoder(QueueRules | None),
    Kind.TENANT: msgspec.msgpack.Decoder(TenantRules | None),
    Kind.TASK: msgspec.msgpack.Decoder(TaskRules | None),
    Kind.GATE: msgspec.msgpack.Decoder(GateRules | None),
}
_STORED: Final = msgspec.msgpack.Decoder(_Stored)


def read_policy(kind: Kind, stored: bytes | None) -> Policy:
    """Read what is kept of a subject; nothing is the empty policy."""
    if not stored:
        return Policy()
    found = _STORED.decode(stored)
    return Policy(_RULES[kind].decode(found.declared), found.override, found.paused, found.closed)


def write_policy(policy: Policy) -> bytes:
    """Pack a policy as it was set; one that says nothing is nothing."""
    return (
        b"" if policy == Policy() else pack((policy.declared, policy.override, policy.paused, policy.closed))
    )


def write_rules(policy: Policy) -> bytes:
    """Pack a policy as scripts read it: no end is 0, a value that an override takes away is false."""
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


def view_of(subject: Subject, policy: Policy, everyone: Policy, now: Instant) -> PolicyView:
    """Say all that holds for a subject now; what has ended by itself is not shown."""
    beneath = policy.declared
    if beneath is None:
        is_somebody = subject.kind is Kind.TENANT and subject != EVERYONE
        beneath = DEFAULTS[subject.kind]
        if is_somebody:
            beneath = overlay(everyone.declared or beneath, everyone.override, now)
    override = policy.override
    if override is not None and not is_living(override.until, now):
        override = None
    return PolicyView(
        subject,
        policy.declared,
        override,
        overlay(beneath, override, now),
        _living(policy.paused, now),
        _living(policy.closed, now),
    )


def _living(hold: Hold | None, now: Instant) -> Hold | None:
    return hold if hold is not None and is_living(hold.until, now) else None


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
            values = {"gate": rules.gate}
        case GateRules():
            values = {"limit": rules.limit}
    values["rate"] = None if rules.rate is None else _rate(rules.rate)
    return {name: value for name, value in values.items() if value is not None}


def _changed(change: Change) -> dict[str, Any]:
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
    return {"interval": rate.interval, "burst": rate.burst, "pace": rate.pace}
