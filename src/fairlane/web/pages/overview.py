"""The first page, which says whether any tenant is affected and what needs attention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlane.app.admin.breakers import BreakerView
from fairlane.app.admin.gates import GateView
from fairlane.app.admin.paging import count_all
from fairlane.app.admin.tenant_budgets import tenant_budgets
from fairlane.app.admin.views import Held, QueueView, held_view
from fairlane.app.admin.workers import Worker
from fairlane.app.ambient import scope_for
from fairlane.app.dead.views import DeadGroup
from fairlane.model.lifecycle.states import WAITING, State
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.runtime.loops import read_together
from fairlane.store.contract.policies import ReadRequest
from fairlane.web.api.breakers import breaker_shown
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.html.budget_bars import BudgetBar, bars_of_tenant, pressing
from fairlane.web.page import PageGroup, PageView
from fairlane.web.pages.schedules import failing_schedules
from fairlane.web.personal import CHOICES, RANGES, Range, personal_of

OVERVIEW: Final = PageGroup("Overview", section="start", icon="overview", key="o")

_TOP: Final = 6
_GROUPS: Final = 5
_BUDGETS: Final = 4
_FAILURES_READ: Final = 500

Numbers = dict[State, int]


class OverviewQuery(Body, frozen=True, kw_only=True):
    """How far back the page looks for what happened; what the user chose if the URL does not say."""

    range: Range | None = None


class Totals(msgspec.Struct):
    """Numbers of jobs by state: of all, of each queue and of each tenant."""

    all: Numbers
    queues: dict[str, Numbers]
    tenants: dict[str, Numbers]


class Machinery(msgspec.Struct, frozen=True):
    """What only those see who see all tenants: workers, queues, breakers that are not closed, full gates."""

    workers: Sequence[Worker]
    queues: Sequence[QueueView]
    breakers: Sequence[BreakerView]
    gates: Sequence[GateView]

    @property
    def live(self) -> Sequence[Worker]:
        """The workers that sent a heartbeat lately."""
        return [one for one in self.workers if one.is_live]

    @property
    def slots(self) -> int:
        """The slots of all live workers."""
        return sum(one.slots for one in self.live)

    def unserved(self, totals: Totals) -> Sequence[str]:
        """Return the queues that have waiting jobs, and no live worker that serves them."""
        served = {queue for one in self.live for queue in one.queues}
        return [
            name for name, numbers in sorted(totals.queues.items()) if waiting(numbers) and name not in served
        ]


@OVERVIEW.page("/", "overview")
async def overview(call: WebCall, query: OverviewQuery) -> PageView:
    """Show what there is, what waits for a person, and what failed lately."""
    chosen: Range = query.range or personal_of(call.request.cookies).range
    sees_dead = call.may("dead.groups")
    totals, machinery, budgets, (awaiting, groups), failures, failing = await read_together(
        _totals(call),
        _machinery(call),
        _budgets(call),
        _dead(call, sees_dead=sees_dead),
        call.app.jobs.afailures(since=RANGES[chosen], most=_FAILURES_READ),
        failing_schedules(call),
    )
    values: dict[str, Any] = {
        "totals": totals,
        "waiting": waiting,
        "pressed": (pressed := _pressed(totals)),
        "paused_tenants": await _paused(call, [name for name, _ in pressed]),
        "machinery": machinery,
        "budgets": budgets[:_BUDGETS],
        "pressing": [one for one in budgets if one.is_near],
        "unserved": () if machinery is None else machinery.unserved(totals),
        "groups": groups,
        "awaiting": awaiting,
        "sees_dead": sees_dead,
        "range": chosen,
        "ranges": CHOICES["range"],
        "failures": failures,
        "failing": failing,
    }
    return PageView("overview/overview.html", values)


def waiting(numbers: Mapping[State, int]) -> int:
    """Return how many jobs are delayed or ready."""
    return sum(numbers[state] for state in WAITING)


async def _totals(call: WebCall) -> Totals:
    """Add up the counters, read once."""
    nothing = dict.fromkeys(State, 0)
    queues, tenants = (defaultdict[str, Numbers](nothing.copy) for _ in range(2))
    async for one in count_all(call.app.client.store, scope_for(None)):
        queues[one.queue][one.state] += one.jobs
        tenants[one.tenant][one.state] += one.jobs
    every = {state: sum(numbers[state] for numbers in queues.values()) for state in State}
    return Totals(every, dict(queues), dict(tenants))


def _pressed(totals: Totals) -> Sequence[tuple[str, Numbers]]:
    """Return the tenants with the most waiting jobs."""
    most = sorted(totals.tenants.items(), key=lambda item: (-waiting(item[1]), item[0]))
    return [(name, numbers) for name, numbers in most[:_TOP] if waiting(numbers) or numbers[State.RUNNING]]


async def _paused(call: WebCall, tenants: Sequence[str]) -> Mapping[str, Held]:
    """Return which of these tenants are paused, and by whom."""
    subjects = tuple(Subject(SubjectKind.TENANT, name) for name in tenants)
    request = ReadRequest(scope=scope_for(None), subjects=subjects)
    views = await call.app.client.store.policies.read(request)
    held = {subject.name: held_view(view.paused) for subject, view in views.items()}
    return {name: one for name, one in held.items() if one is not None}


async def _dead(call: WebCall, *, sees_dead: bool) -> tuple[int, Sequence[DeadGroup]]:
    """Return how many dead letters await a decision, and their commonest causes."""
    awaiting = (await call.app.dead.acount(review="pending"))["pending"] if sees_dead else 0
    return awaiting, await call.app.dead.agroups(limit=_GROUPS, review="pending") if awaiting else ()


async def _machinery(call: WebCall) -> Machinery | None:
    if call.principal.tenant is not None:
        return None
    app = call.app
    opened = [breaker_shown(one) for one in await app.breakers.alist() if one.state != "closed"]
    full = [gate for gate in await app.gates.alist() if gate.free == 0]
    return Machinery(await app.workers.alist(), await app.queues.alist(), opened, full)


async def _budgets(call: WebCall) -> Sequence[BudgetBar]:
    """Return the budgets nearest to their ceiling first; to a caller of one tenant what that has spent."""
    tenant = call.principal.tenant
    if tenant is None:
        return pressing(await call.app.budgets.alist())
    return bars_of_tenant(await tenant_budgets(call.app.client.store, tenant, sees_others=False))
