"""One tenant: does it get its share, why do its jobs wait, what limits it, and what can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.app.admin.breakers import BreakerView
from fairlane.app.admin.explain import Waiting
from fairlane.app.admin.rates import RateView, rate_views
from fairlane.app.admin.shares.views import QueueShare
from fairlane.app.admin.tenant_budgets import tenant_budgets
from fairlane.app.admin.views import Tenant
from fairlane.app.ambient import scope_for
from fairlane.model.errors import JobNotFound
from fairlane.model.instants import to_datetime
from fairlane.model.lifecycle.states import HOT, State
from fairlane.model.names import tenant_hint
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import EVERY, Subject, SubjectKind
from fairlane.store.contract.line import FirstRequest, JobLine
from fairlane.web.api.breakers import breaker_shown
from fairlane.web.api.policies import every_queue, shown
from fairlane.web.api.shares import shown_shares
from fairlane.web.call import WebCall
from fairlane.web.html.budget_bars import bars_of_tenant
from fairlane.web.page import PageView
from fairlane.web.pages.job import REASONS
from fairlane.web.personal import RANGES, personal_of
from fairlane.web.problem import NOT_FOUND, HttpProblem

_LINES: Final = 12
_LOOKED_AT: Final = 10_000
_FAILURES_READ: Final = 500


class WaitingLine(msgspec.Struct, frozen=True):
    """The ready jobs of a tenant in a queue, the first of them, and why that one does not run."""

    queue: str
    ready: int
    since: datetime
    job: UUID
    why: Waiting


async def show_tenant(call: WebCall, tenant: str) -> PageView:
    """Show one tenant; to a caller of one tenant every other is not there."""
    if call.principal.tenant not in {None, tenant} or tenant_hint(tenant) is not None or tenant == EVERY:
        raise HttpProblem(404, "not_found", NOT_FOUND)
    return await tenant_view(call, tenant)


async def tenant_view(call: WebCall, name: str) -> PageView:
    """Return the view of a tenant. What others hold is part of it only for those who may see them."""
    app = call.app
    tenant = shown(await app.tenants.aget(name))
    totals = {state: sum(counts[state] for counts in tenant.counts.values()) for state in State}
    sees_others = call.principal.tenant is None
    shares = shown_shares(await app.tenants.ashare(name)) if sees_others else None
    delayed = await app.jobs.acount(tenant=name, state=State.DELAYED, because=True, most=_LOOKED_AT)
    sees_dead = call.may("dead.groups")
    range_ = personal_of(call.request.cookies).range
    values: dict[str, Any] = {
        "tenant": tenant,
        "totals": totals,
        "is_known": bool(tenant.counts or tenant.declared or tenant.override) or _is_held(tenant),
        "share": shares.items[0] if shares is not None else None,
        "places": {one.queue: one for one in shares.items[0].queues} if shares is not None else {},
        "contended": [one for one in shares.queues if _takes_part(one.queue, shares.items[0].queues)]
        if shares is not None
        else (),
        "lines": await waiting_lines(call, name, tenant.counts),
        "reasons": REASONS,
        "delayed": delayed,
        "queues": sorted(_shown_queues(tenant)),
        "general": every_queue(tenant),
        "rates": await _rates(call, tenant),
        "breakers": await _opened(call, name) if sees_others else (),
        "budgets": bars_of_tenant(await tenant_budgets(app.client.store, name, sees_others=sees_others)),
        "sees_others": sees_others,
        "sees_dead": sees_dead,
        "awaiting": (await app.dead.acount(tenant=name, review="pending"))["pending"] if sees_dead else 0,
        "range": range_,
        "failures": await app.jobs.afailures(since=RANGES[range_], tenant=name, most=_FAILURES_READ),
    }
    return PageView("tenants/tenant.html", values)


async def waiting_lines(
    call: WebCall, tenant: str, counts: Mapping[str, Mapping[State, int]]
) -> Sequence[WaitingLine]:
    """Return where a tenant's ready jobs wait and why the first of them does, longest first."""
    busy = sorted(
        (queue for queue, states in counts.items() if states[State.READY]),
        key=lambda queue: -counts[queue][State.READY],
    )
    lines = tuple(JobLine(tenant, queue) for queue in busy[:_LINES])
    found: list[WaitingLine] = []
    for one in await call.app.client.store.jobs.first_in_line(
        FirstRequest(scope=scope_for(None), lines=lines)
    ):
        with suppress(JobNotFound):  # it started between the two calls, and was removed
            why = await call.app.jobs.aexplain(one.id)
            ready = counts[one.line.queue][State.READY]
            found.append(WaitingLine(one.line.queue, ready, to_datetime(one.ready_at), one.id, why))
    return sorted(found, key=lambda line: line.since)


async def _opened(call: WebCall, tenant: str) -> Sequence[BreakerView]:
    """Return the breakers that are not closed: those of all tenants, and its own."""
    return [
        breaker_shown(one)
        for one in await call.app.breakers.alist()
        if one.state != "closed" and one.tenant in {None, tenant}
    ]


def _is_held(tenant: Tenant) -> bool:
    return tenant.paused is not None or tenant.closed is not None


def _takes_part(queue: str, places: Sequence[QueueShare]) -> bool:
    return any(one.queue == queue and (one.is_over or one.is_slowed) for one in places)


def _shown_queues(tenant: Tenant) -> set[str]:
    """Return the queues in which it has jobs, or a limit that is not simply that of every queue."""
    limited = {queue for queue, limits in tenant.limits.items() if limits != Limits()}
    return {queue for queue, states in tenant.counts.items() if any(states.values())} | limited


async def _rates(call: WebCall, tenant: Tenant) -> Mapping[str, RateView]:
    """Return how far its rates are used, by queue; of queues in which it has unfinished jobs."""
    subject, found = Subject(SubjectKind.TENANT, tenant.name), dict[str, RateView]()
    for queue, limits in tenant.limits.items():
        states = tenant.counts.get(queue, {})
        if limits.rate is not None and any(states.get(one) for one in HOT):
            scope = scope_for(None)
            (view,) = await rate_views(call.app.client.store, scope, {subject: limits.rate}, queue=queue)
            found[queue] = view
    return found
