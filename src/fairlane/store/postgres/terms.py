"""Work out what a policy means from one instant to the next, as numbers that SQL can look up. Pure.

A row holds from `since` on and before `until`. The claim then needs no model: the limits of a tenant in a
queue are those of the first of (its own for the queue, its own for every queue, everyone's for the queue,
everyone's for every queue, the queue's) that has a row at the instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec

from fairlane.model.fairness import stride
from fairlane.model.instants import Instant
from fairlane.model.layers import (
    EVERY,
    GateRules,
    Kind,
    Override,
    QueueRules,
    Rules,
    Subject,
    TaskRules,
    TenantRules,
    is_living,
)
from fairlane.model.limits import Limits, Rate
from fairlane.store.policy import EVERYONE, Policy, in_force

FOREVER: Final[Instant] = 2**63 - 1
"""The end of what ends by nobody's clock."""

_HIGHEST: Final = 2**31 - 1
_LARGEST_BURST: Final = 10**8
"""Limits beyond these bind nobody; SQL's numbers, and a burst times a day, stay within their range."""


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `term`, in the order of its columns. `queue` is empty, a queue's name, or `*`."""

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
    pace: str | None = None
    max_waiting: int | None = None
    cost: str | None = None
    gate: str | None = None
    most: int | None = None


def terms(subject: Subject, policy: Policy, everyone: Policy) -> list[Term]:
    """Give the rows for a subject; none where nothing is declared or overridden.

    >>> from fairlane.model.layers import Change
    >>> above = Override(change=Change(limit=2), who="ops", set_at=0, until=10)
    >>> rows = terms(Subject(Kind.GATE, "fax"), Policy(GateRules(limit=5), above), Policy())
    >>> [(row.since, row.until == FOREVER, row.most) for row in rows]
    [(0, False, 2), (10, True, 5)]
    """
    above = (policy.override, everyone.override if leans_on_everyone(subject, policy) else None)
    found: list[Term] = []
    for since, until in pairwise((0, *_ends(*above), FOREVER)):
        is_lifted = policy.override is not None and is_living(policy.override.until, since)
        if policy.declared is not None or is_lifted:
            span = Term(kind=subject.kind.value, name=subject.name, since=since, until=until)
            found += _rows(span, in_force(subject, policy, everyone, since))
    return found


def leans_on_everyone(subject: Subject, policy: Policy) -> bool:
    """Whether a tenant's rows change with those of everyone: it has an override and is not declared."""
    is_somebody = subject.kind is Kind.TENANT and subject != EVERYONE
    return is_somebody and policy.declared is None and policy.override is not None


def _ends(*overrides: Override | None) -> list[Instant]:
    """Give the instants at which overrides end by themselves, each once."""
    ends = {one.until for one in overrides if one is not None and one.until is not None}
    return sorted(end for end in ends if end > 0)


def _rows(span: Term, rules: Rules) -> Iterator[Term]:
    change = msgspec.structs.replace
    match rules:
        case TenantRules():
            yield change(span, stride=stride(rules.weight))
            for queue, limits in rules.limits.items():
                yield _limited(span, queue, limits)
        case QueueRules():
            yield change(_paced(span, rules.rate), max_waiting=_bounded(rules.max_waiting), cost=rules.cost)
            yield _limited(span, EVERY, rules.limits)
        case TaskRules():
            yield change(_paced(span, rules.rate), gate=rules.gate)
        case GateRules():
            yield change(_paced(span, rules.rate), most=_bounded(rules.limit))


def _limited(span: Term, queue: str, limits: Limits) -> Term:
    term = msgspec.structs.replace(
        span,
        queue=queue,
        waiting=_bounded(limits.waiting),
        on_full=limits.on_full,
        running=_bounded(limits.running),
    )
    return _paced(term, limits.rate)


def _paced(span: Term, rate: Rate | None) -> Term:
    if rate is None:
        return span
    burst = min(rate.burst, _LARGEST_BURST)
    return msgspec.structs.replace(span, rate_every=rate.interval, rate_burst=burst, pace=rate.pace)


def _bounded(limit: int | None) -> int | None:
    return None if limit is None else min(limit, _HIGHEST)
