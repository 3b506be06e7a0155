"""How far rates are used now: how many starts they allow, and when the next one is (S44)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlane.model.instants import Instant, to_datetime
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Rate
from fairlane.model.policy.overrides import (
    EVERY,
    QueueRules,
    Subject,
    SubjectKind,
    TenantRules,
    limits_of,
)
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import CountRequest
from fairlane.store.contract.policies import RatesRequest, RateUse, ReadRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE

_EVERYONE: Final = Subject(SubjectKind.TENANT, EVERY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateView:
    """A rate at one instant: `allowed` is how many starts it allows now, `next_at` when it allows one.

    `kind` and `name` say whose it is: that of a queue, a tenant, a task or a gate. `ready` counts the ready
    jobs that it may hold back, None where that is not counted.
    """

    kind: str
    name: str
    rate: Rate
    allowed: int
    next_at: datetime
    ready: int | None


def rate_view(subject: Subject, rate: Rate, use: RateUse, now: Instant, ready: int | None = None) -> RateView:
    """Return the view of a rate.

    >>> rate, now = Rate(1, "second", burst=3), 60_000_000
    >>> view = rate_view(Subject(SubjectKind.GATE, "door"), rate, RateUse(rate.rate_id, now + 1_500_000), now)
    >>> view.allowed, view.next_at.second
    (1, 0)
    """
    counted = rate.next_allowed_from(use.rate_id, use.next_allowed_at)
    return RateView(
        kind=subject.kind.value,
        name=subject.name,
        rate=rate,
        allowed=rate.allowed_starts(counted, now),
        next_at=to_datetime(max(now, rate.free_at(counted))),
        ready=ready,
    )


async def rate_views(
    store: Store,
    scope: Scope,
    rates: Mapping[Subject, Rate],
    *,
    queue: str = "",
    ready: Mapping[Subject, int] | None = None,
) -> Sequence[RateView]:
    """Return the views of these rates; those of tenants are in a queue."""
    request = RatesRequest(scope=scope, subjects=tuple(rates), queue=queue)
    reply = await store.policies.rates(request)
    behind = ready or {}
    return tuple(
        rate_view(one, rate, reply.uses[one], reply.now, behind.get(one)) for one, rate in rates.items()
    )


async def rates_of_queue(store: Store, scope: Scope, queue: str) -> Sequence[RateView]:
    """Return the rate of a queue, and those of the first 1,000 tenants that have jobs in it."""
    page = await store.jobs.count(CountRequest(scope=scope, queue=queue, limit=MAX_PAGE_SIZE))
    ready = {Subject(SubjectKind.TENANT, one.tenant): 0 for one in page.counts}
    for one in page.counts:
        if one.state is State.READY:
            ready[Subject(SubjectKind.TENANT, one.tenant)] += one.jobs
    whole = Subject(SubjectKind.QUEUE, queue)
    views = await store.policies.read(ReadRequest(scope=scope, subjects=(whole, _EVERYONE, *ready)))
    rules, everyone = views[whole].effective, views[_EVERYONE].effective
    assert isinstance(rules, QueueRules)  # noqa: S101 (for the type checkers: the kind says so)
    rates = {} if rules.rate is None else {whole: rules.rate}
    for tenant in ready:
        own = views[tenant].effective
        if isinstance(own, TenantRules) and isinstance(everyone, TenantRules):
            rate = limits_of(queue, own, everyone, rules).rate
            rates |= {} if rate is None else {tenant: rate}
    return await rate_views(store, scope, rates, queue=queue, ready={whole: sum(ready.values()), **ready})
