"""`/tenants`: find, pause, close and limit tenants, cancel their waiting jobs, forget them.

A caller of one tenant sees that tenant alone, and changes no policy, also not its own (S9).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET

from fairlane.app.admin.controls import DrainBy
from fairlane.app.admin.views import Tenant
from fairlane.model.access import Role
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.web.api.policies import (
    HoldBody,
    RateValue,
    TenantLimitsBody,
    end_in,
    every_queue,
    limits_in,
    rate_in,
    reason_in,
    shown,
)
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup
from fairlane.web.reading import bad_field

TENANTS: Final = EndpointGroup("tenants", "Tenants: their jobs, weights, limits, pauses and closes.")

Label = Annotated[str, msgspec.Meta(pattern="^[^=]+=", description="as in plan=pro")]


class TenantQuery(Body, frozen=True, kw_only=True):
    """Which tenants: those that have all these labels."""

    label: tuple[Label, ...] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100
    cursor: str | None = None


class TenantPage(msgspec.Struct, frozen=True):
    """One page of tenants, by name. Without a cursor there are no more."""

    items: Sequence[Tenant]
    cursor: str | None


class TenantSetBody(TenantLimitsBody, frozen=True, kw_only=True):
    """A tenant's weight, or its limits: in one queue, or in every queue."""

    weight: Annotated[float, msgspec.Meta(ge=0.01, le=1_000)] | None = None
    queue: str | None = None
    rate: RateValue = UNSET


class TenantDeclareBody(Change, frozen=True, kw_only=True):
    """A tenant with a weight and labels."""

    weight: Annotated[float, msgspec.Meta(ge=0.01, le=1_000)] = 1.0
    label: tuple[Label, ...] = ()


class DrainBody(Change, frozen=True, kw_only=True):
    """How to drain: `pause` it until none of its jobs runs, or `close` it until none is ready or runs.

    `wait`: for how many seconds the answer may wait for that. `note` says why and must not be empty.
    """

    by: DrainBy = "pause"
    wait: Annotated[float, msgspec.Meta(ge=0, le=30)] = 0.0


class DrainReply(msgspec.Struct, frozen=True):
    """Whether nothing is left that the drain waits for, and what of the tenant is ready and runs."""

    is_drained: bool
    ready: int
    running: int


class QueueOfTenantBody(Change, frozen=True, kw_only=True):
    """One queue, or all that a tenant uses."""

    queue: str | None = None


class CancelledJobs(msgspec.Struct, frozen=True):
    """How many jobs were cancelled."""

    cancelled: int


class ErasedJobs(msgspec.Struct, frozen=True):
    """Of how many jobs the contents were erased."""

    erased: int


@TENANTS.get("/tenants", "tenants.find")
async def find(call: WebCall, query: TenantQuery) -> TenantPage:
    """Return one page of the known tenants by name, or of those that have all these labels."""
    page = await call.app.tenants.alist(
        labels=labels_in(query.label), limit=query.limit, cursor=query.cursor or None
    )
    return TenantPage(tuple(map(shown, page.items)), page.cursor)


@TENANTS.get("/tenants/{tenant}", "tenants.get")
async def get(call: WebCall, tenant: str) -> Tenant:
    """Return one tenant: jobs by queue and state, weight, effective and declared limits, override, pause.

    An unknown name has the values of undeclared tenants.
    """
    return shown(await call.app.tenants.aget(tenant))


@TENANTS.post("/tenants/{tenant}/declare", "tenants.declare", least=Role.ADMIN, tenants="all")
async def declare(call: WebCall, tenant: str, body: TenantDeclareBody) -> Tenant:
    """Declare a tenant with a weight and labels."""
    view = await call.app.tenants.adeclare(
        tenant, weight=body.weight, labels=labels_in(body.label), note=body.note
    )
    return shown(view)


@TENANTS.post("/tenants/{tenant}/pause", "tenants.pause", least=Role.OPERATOR, tenants="all")
async def pause(call: WebCall, tenant: str, body: HoldBody) -> Tenant:
    """Claim none of the tenant's jobs until it is resumed. Enqueues go on, running jobs finish."""
    await call.app.tenants.apause(tenant, reason=reason_in(body), until=await end_in(call, body))
    return await get(call, tenant)


@TENANTS.post("/tenants/{tenant}/resume", "tenants.resume", least=Role.OPERATOR, tenants="all")
async def resume(call: WebCall, tenant: str, body: Change) -> Tenant:
    """End the pause of a tenant."""
    await call.app.tenants.aresume(tenant, note=body.note)
    return await get(call, tenant)


@TENANTS.post("/tenants/{tenant}/close", "tenants.close", least=Role.OPERATOR, tenants="all")
async def close(call: WebCall, tenant: str, body: HoldBody) -> Tenant:
    """Refuse new jobs of a tenant until it is opened. Stored jobs go on."""
    await call.app.tenants.aclose(tenant, reason=reason_in(body), until=await end_in(call, body))
    return await get(call, tenant)


@TENANTS.post("/tenants/{tenant}/open", "tenants.open", least=Role.OPERATOR, tenants="all")
async def open_(call: WebCall, tenant: str, body: Change) -> Tenant:
    """End the close of a tenant."""
    await call.app.tenants.areopen(tenant, note=body.note)
    return await get(call, tenant)


@TENANTS.post(
    "/tenants/{tenant}/drain",
    "tenants.drain",
    least=Role.OPERATOR,
    tenants="all",
    done="Tenant {tenant} drains; this page shows what is left.",
    limited=False,
)
async def drain(call: WebCall, tenant: str, body: DrainBody) -> DrainReply:
    """Pause or close a tenant, and say whether it is drained. Ask again until it is; running jobs finish.

    It stays paused or closed afterwards. Delayed jobs do not count: closed, they still run when they are due.
    """
    is_drained = await call.app.tenants.adrain(tenant, reason=reason_in(body), by=body.by, timeout=body.wait)
    counts = (await call.app.tenants.aget(tenant)).counts.values()
    ready, running = (sum(one[state] for one in counts) for state in (State.READY, State.RUNNING))
    return DrainReply(is_drained, ready, running)


@TENANTS.patch("/tenants/{tenant}", "tenants.set", least=Role.ADMIN, tenants="all")
async def set_(call: WebCall, tenant: str, body: TenantSetBody) -> Tenant:
    """Override a tenant's weight, or its limits in one queue or in every queue.

    What is left out stays as it is.
    """
    queue = body.queue or None
    before = await call.app.tenants.aget(tenant)
    now = every_queue(before) if queue is None else before.limits.get(queue, Limits())
    limits = limits_in(body, rate_in("rate", body.rate), now)
    if queue is not None and limits is None:
        raise bad_field("queue", "is given without a limit", "a weight holds in all queues", "invalid")
    view = await call.app.tenants.aset(
        tenant, queue=queue, weight=body.weight, limits=limits, note=body.note, until=await end_in(call, body)
    )
    return shown(view)


@TENANTS.post("/tenants/{tenant}/reset", "tenants.reset", least=Role.ADMIN, tenants="all")
async def reset(call: WebCall, tenant: str, body: QueueOfTenantBody) -> Tenant:
    """Remove the override, or only its limits in one queue; the declared values apply again."""
    return shown(await call.app.tenants.areset(tenant, queue=body.queue or None, note=body.note))


@TENANTS.post("/tenants/{tenant}/purge", "tenants.purge", least=Role.MANAGER)
async def purge(call: WebCall, tenant: str, body: QueueOfTenantBody) -> CancelledJobs:
    """Cancel all waiting jobs of a tenant, in one queue or in all."""
    cancelled = await call.app.tenants.apurge(tenant, queue=body.queue or None, reason=reason_in(body))
    return CancelledJobs(cancelled)


@TENANTS.post("/tenants/{tenant}/forget", "tenants.forget", least=Role.ADMIN)
async def forget(call: WebCall, tenant: str, body: Change) -> ErasedJobs:
    """Erase payloads, results, errors and keys of a tenant's jobs, and its names in budgets.

    This cannot be undone. What it has spent stays counted, as that of others.

    Waiting jobs are cancelled. Running jobs are asked to stop: call again when they have ended.
    """
    return ErasedJobs(await call.app.tenants.aforget(tenant, reason=reason_in(body)))


def labels_in(labels: Sequence[str]) -> dict[str, str] | None:
    """Return labels by name.

    >>> labels_in(["plan=pro", "eu="]), labels_in([])
    ({'plan': 'pro', 'eu': ''}, None)
    """
    return {name: value for name, _, value in (label.partition("=") for label in labels)} or None
