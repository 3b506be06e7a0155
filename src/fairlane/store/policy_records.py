"""Encode the policy of a subject as bytes, and compute its effective rules. Reads and writes no store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import (
    DEFAULTS,
    EVERY,
    BreakerRules,
    GateRules,
    Hold,
    Override,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
    is_active,
    overlay,
)
from fairlane.store.contract.policies import PolicyView

EVERYONE: Final = Subject(SubjectKind.TENANT, EVERY)

_RULES: Final[dict[SubjectKind, Any]] = {
    SubjectKind.QUEUE: msgspec.msgpack.Decoder(QueueRules),
    SubjectKind.TENANT: msgspec.msgpack.Decoder(TenantRules),
    SubjectKind.TASK: msgspec.msgpack.Decoder(TaskRules),
    SubjectKind.GATE: msgspec.msgpack.Decoder(GateRules),
    SubjectKind.BREAKER: msgspec.msgpack.Decoder(BreakerRules),
    SubjectKind.BUDGET: msgspec.msgpack.Decoder(BudgetRules),
}
_OVERRIDE: Final = msgspec.msgpack.Decoder(Override)
_HOLD: Final = msgspec.msgpack.Decoder(Hold)
_pack = msgspec.msgpack.Encoder().encode


class StoredPolicy(msgspec.Struct, frozen=True):
    """The stored policy of one subject."""

    declared: Rules | None = None
    override: Override | None = None
    paused: Hold | None = None
    closed: Hold | None = None


NO_POLICY: Final = StoredPolicy()


def pack_policy(policy: StoredPolicy) -> tuple[bytes | None, ...]:
    """Encode a policy as four columns."""
    values = (policy.declared, policy.override, policy.paused, policy.closed)
    return tuple(None if value is None else _pack(value) for value in values)


def unpack_policy(kind: SubjectKind, row: Sequence[bytes | None]) -> StoredPolicy:
    """Decode what `pack_policy` returned.

    >>> unpack_policy(SubjectKind.GATE, pack_policy(StoredPolicy(GateRules(limit=3))))
    StoredPolicy(declared=GateRules(limit=3, rate=None), override=None, paused=None, closed=None)
    """
    declared, override, paused, closed = row
    return StoredPolicy(
        None if declared is None else _RULES[kind].decode(declared),
        None if override is None else _OVERRIDE.decode(override),
        None if paused is None else _HOLD.decode(paused),
        None if closed is None else _HOLD.decode(closed),
    )


def in_force(subject: Subject, policy: StoredPolicy, everyone: StoredPolicy, now: Instant) -> Rules:
    """Return the effective rules of a subject; an undeclared tenant inherits those of everyone.

    >>> everyone = StoredPolicy(TenantRules(weight=2.0))
    >>> in_force(Subject(SubjectKind.TENANT, "acme"), NO_POLICY, everyone, 0).weight
    2.0
    """
    declared = policy.declared
    if declared is None:
        is_one_tenant = subject.kind is SubjectKind.TENANT and subject != EVERYONE
        declared = in_force(EVERYONE, everyone, everyone, now) if is_one_tenant else DEFAULTS[subject.kind]
    return overlay(declared, policy.override, now)


def hold_in_force(hold: Hold | None, now: Instant) -> Hold | None:
    """Return a pause or close if it is still in force, else None."""
    return hold if hold is not None and is_active(hold.until, now) else None


def view(subject: Subject, policy: StoredPolicy, everyone: StoredPolicy, now: Instant) -> PolicyView:
    """Return the policy of a subject without what has ended."""
    override = policy.override
    if override is not None and not is_active(override.until, now):
        override = None
    return PolicyView(
        subject,
        policy.declared,
        override,
        in_force(subject, policy, everyone, now),
        hold_in_force(policy.paused, now),
        hold_in_force(policy.closed, now),
    )
