"""`/queues`: find, pause, close and limit queues, and see what is in them.

All tenants share the queues: for a caller of one tenant they are not there (S9). Its jobs by queue are part
of its tenant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET

from fairlane.app.admin.queue_stats import QueueStats
from fairlane.app.admin.rates import RateView
from fairlane.app.admin.views import QueueView
from fairlane.model.access import Role
from fairlane.model.lifecycle.states import State
from fairlane.web.api.job_replies import JobSummary, summaries
from fairlane.web.api.policies import (
    Count,
    HoldBody,
    RateValue,
    TenantLimitsBody,
    count_in,
    end_in,
    limits_in,
    rate_in,
    reason_in,
    shown,
)
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup

QUEUES: Final = EndpointGroup("queues", "Queues: their jobs by state, limits, rates, pauses and closes.")

MOST_READ: Final = 10_000
"""How many delayed jobs, and how many ready ones, the statistics of a queue read at most."""


class QueueList(msgspec.Struct, frozen=True):
    """All queues, by name."""

    items: Sequence[QueueView]


class StatsQuery(Body, frozen=True, kw_only=True):
    """How many delayed and how many ready jobs may be read."""

    most: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = MOST_READ


class ContentsQuery(Body, frozen=True, kw_only=True):
    """How many jobs of each state, and of which tenant."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    tenant: str | None = None


class QueueContents(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs in a queue: counts by state, and the first of each state that is not finished.

    `ready` is in the order in which they would be claimed now, without those that may not be claimed;
    `delayed` and `running` begin with the newest enqueue.
    """

    counts: Mapping[State, int]
    ready: Sequence[JobSummary]
    delayed: Sequence[JobSummary]
    running: Sequence[JobSummary]


class RateList(msgspec.Struct, frozen=True):
    """Rates, and how far they are used."""

    items: Sequence[RateView]


class RemovedQueue(msgspec.Struct, frozen=True):
    """The queue that was removed."""

    name: str


class QueueLimitsBody(TenantLimitsBody, frozen=True, kw_only=True):
    """Limits of each tenant in a queue; `rate` and `max_waiting` are for all tenants together."""

    tenant_rate: RateValue = UNSET
    rate: RateValue = UNSET
    max_waiting: Count = UNSET


@QUEUES.get("/queues", "queues.find", tenants="all")
async def find(call: WebCall) -> QueueList:
    """Return all queues by name, with their jobs by state.

    Those declared in code or file, and those known to the store.
    """
    return QueueList(tuple(map(shown, await call.app.queues.alist())))


@QUEUES.get("/queues/{queue}", "queues.get", tenants="all")
async def get(call: WebCall, queue: str) -> QueueView:
    """Return one queue: jobs by state, effective and declared limits, override, pause and close.

    An unknown name has no limits and no jobs.
    """
    return shown(await call.app.queues.aget(queue))


@QUEUES.get("/queues/{queue}/statistics", "queues.stats", tenants="all")
async def stats(call: WebCall, queue: str, query: StatsQuery) -> QueueStats:
    """Return a queue's jobs by state, how many wait for a retry, and how long the oldest has waited.

    The numbers by state are exact; the others come from reading a bounded number of jobs.
    """
    return await call.app.queues.astats(queue, most=query.most)


@QUEUES.get("/queues/{queue}/contents", "queues.contents")
async def contents(call: WebCall, queue: str, query: ContentsQuery) -> QueueContents:
    """Return the first jobs of a queue by state, without what they carry.

    A caller of one tenant sees that tenant's jobs, in the order as if no other had any.
    """
    jobs, tenant = call.app.jobs, query.tenant or None
    by_state = {
        state: (await jobs.afind(queue=queue, tenant=tenant, state=state, limit=query.limit)).items
        for state in (State.DELAYED, State.RUNNING)
    }
    ready = await jobs.apeek(queue, query.limit, tenant=tenant)
    return QueueContents(
        counts=dict(await jobs.acount(queue=queue, tenant=tenant)),
        ready=await summaries(call.app, ready),
        delayed=await summaries(call.app, by_state[State.DELAYED]),
        running=await summaries(call.app, by_state[State.RUNNING]),
    )


@QUEUES.get("/queues/{queue}/rates", "queues.rates", tenants="all")
async def rates(call: WebCall, queue: str) -> RateList:
    """Return how many starts the rate of a queue allows now, and when the next one.

    The rates of tenants that have jobs in the queue follow.
    """
    return RateList(await call.app.queues.arates(queue))


@QUEUES.post("/queues/{queue}/pause", "queues.pause", least=Role.OPERATOR, tenants="all")
async def pause(call: WebCall, queue: str, body: HoldBody) -> QueueView:
    """Claim none of the queue's jobs until it is resumed. Enqueues go on, running jobs finish."""
    await call.app.queues.apause(queue, reason=reason_in(body), until=await end_in(call, body))
    return await get(call, queue)


@QUEUES.post("/queues/{queue}/resume", "queues.resume", least=Role.OPERATOR, tenants="all")
async def resume(call: WebCall, queue: str, body: Change) -> QueueView:
    """End the pause of a queue."""
    await call.app.queues.aresume(queue, note=body.note)
    return await get(call, queue)


@QUEUES.post("/queues/{queue}/close", "queues.close", least=Role.OPERATOR, tenants="all")
async def close(call: WebCall, queue: str, body: HoldBody) -> QueueView:
    """Refuse new jobs of a queue until it is opened. Stored jobs go on."""
    await call.app.queues.aclose(queue, reason=reason_in(body), until=await end_in(call, body))
    return await get(call, queue)


@QUEUES.post("/queues/{queue}/open", "queues.open", least=Role.OPERATOR, tenants="all")
async def open_(call: WebCall, queue: str, body: Change) -> QueueView:
    """End the close of a queue."""
    await call.app.queues.areopen(queue, note=body.note)
    return await get(call, queue)


@QUEUES.patch("/queues/{queue}", "queues.set", least=Role.ADMIN, tenants="all")
async def set_(call: WebCall, queue: str, body: QueueLimitsBody) -> QueueView:
    """Override the limits of each tenant in a queue, its rate, or how many jobs may wait in it.

    What is left out stays as it is.
    """
    before = await call.app.queues.aget(queue)
    view = await call.app.queues.aset(
        queue,
        limits=limits_in(body, rate_in("tenant_rate", body.tenant_rate), before.limits),
        rate=rate_in("rate", body.rate),
        max_waiting=count_in(body.max_waiting),
        note=body.note,
        until=await end_in(call, body),
    )
    return shown(view)


@QUEUES.post("/queues/{queue}/reset", "queues.reset", least=Role.ADMIN, tenants="all")
async def reset(call: WebCall, queue: str, body: Change) -> QueueView:
    """Remove the override, so that the declared values apply again."""
    return shown(await call.app.queues.areset(queue, note=body.note))


@QUEUES.delete("/queues/{queue}", "queues.remove", least=Role.ADMIN, tenants="all")
async def remove(call: WebCall, queue: str, body: Change) -> RemovedQueue:
    """Remove a queue in which no job waits or runs, with its limits, override, pause and close.

    A worker that declares the queue declares it again when it starts.
    """
    await call.app.queues.aremove(queue, note=reason_in(body))
    return RemovedQueue(queue)
