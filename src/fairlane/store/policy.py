"""What a store keeps about one subject, as bytes, and what is in force of it. Reads and writes no store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.layers import (
    DEFAULTS,
    EVERY,
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
from fairlane.store.contract.policies import PolicyView

EVERYONE: Final = Subject(Kind.TENANT, EVERY)

_RULES: Final[dict[Kind, Any]] = {
    Kind.QUEUE: msgspec.msgpack.Decoder(QueueRules),
    Kind.TENANT: msgspec.msgpack.Decoder(TenantRules),
    Kind.TASK: msgspec.msgpack.Decoder(TaskRules),
    Kind.GATE: msgspec.msgpack.Decoder(GateRules),
}
_OVERRIDE: Final = msgspec.msgpack.Decoder(Override)
_HOLD: Final = msgspec.msgpack.Decoder(Hold)
_pack = msgspec.msgpack.Encoder().encode


class Policy(msgspec.Struct, frozen=True):
    """Everything stored about one subject."""

    declared: Rules | None = None
    override: Override | None = None
    paused: Hold | None = None
    closed: Hold | None = None


NOTHING: Final = Policy()


def packed(policy: Policy) -> tuple[bytes | None, ...]:
    """Give a policy as four columns keep it."""
    values = (policy.declared, policy.override, policy.paused, policy.closed)
    return tuple(None if value is None else _pack(value) for value in values)


def unpacked(kind: Kind, row: Sequence[bytes | None]) -> Policy:
    """Read what `packed` gave.

    >>> unpacked(Kind.GATE, packed(Policy(GateRules(limit=3))))
    Policy(declared=GateRules(limit=3, rate=None), override=None, paused=None, closed=None)
    """
    declared, override, paused, closed = row
    return Policy(
        None if declared is None else _RULES[kind].decode(declared),
        None if override is None else _OVERRIDE.decode(override),
        None if paused is None else _HOLD.decode(paused),
        None if closed is None else _HOLD.decode(closed),
    )


def in_force(subject: Subject, policy: Policy, everyone: Policy, now: Instant) -> Rules:
    """Give what is in force for a subject; a tenant that is not declared has what holds for everyone beneath.

    >>> in_force(Subject(Kind.TENANT, "acme"), NOTHING, Policy(TenantRules(weight=2.0)), 0).weight
    2.0
    """
    beneath = policy.declared
    if beneath is None:
        is_somebody = subject.kind is Kind.TENANT and subject != EVERYONE
        beneath = in_force(EVERYONE, everyone, everyone, now) if is_somebody else DEFAULTS[subject.kind]
    return overlay(beneath, policy.override, now)


def living(hold: Hold | None, now: Instant) -> Hold | None:
    """Give a pause or close that still holds."""
    return hold if hold is not None and is_living(hold.until, now) else None


def view(subject: Subject, policy: Policy, everyone: Policy, now: Instant) -> PolicyView:
    """Show what holds for a subject; what has ended by itself is not shown."""
    override = policy.override
    if override is not None and not is_living(override.until, now):
        override = None
    return PolicyView(
        subject,
        policy.declared,
        override,
        in_force(subject, policy, everyone, now),
        living(policy.paused, now),
        living(policy.closed, now),
    )
