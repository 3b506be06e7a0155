"""`/workers`: the worker processes, what they do now, and orders to them. They serve all tenants (S9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from starlette.responses import PlainTextResponse

from fairlane.app.admin.worker_status import WorkerStatus
from fairlane.app.admin.workers import ASK_TIMEOUT, Worker
from fairlane.model.access import Role
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup

WORKERS: Final = EndpointGroup(
    "workers", "Workers: what they serve and run, their status and stacks, and orders to them."
)

AtMost = Annotated[float, msgspec.Meta(gt=0, le=ASK_TIMEOUT)]
"""For how many seconds to wait for a worker's answer."""


class WorkersQuery(Body, frozen=True, kw_only=True):
    """Which workers: those with a heartbeat in the last 15 seconds, or with `live=false` all."""

    live: bool = True


class AskQuery(Body, frozen=True, kw_only=True):
    """How long to wait for the answer."""

    at_most: AtMost = ASK_TIMEOUT


class DumpQuery(AskQuery, frozen=True, kw_only=True):
    """With `memory` also what holds memory."""

    memory: bool = False


class OrderBody(Change, frozen=True, kw_only=True):
    """An order to a worker, and how long to wait for its answer."""

    at_most: AtMost = ASK_TIMEOUT


class WorkerList(msgspec.Struct, frozen=True):
    """All workers, by id."""

    items: Sequence[Worker]


@WORKERS.get("/workers", "workers.find", tenants="all")
async def find(call: WebCall, query: WorkersQuery) -> WorkerList:
    """Return the live workers by id, as of their last heartbeat; with `live=false` all.

    One that stopped in good order is not listed; one that died is `silent` until its record is deleted.
    """
    return WorkerList(await call.app.workers.alist(live=query.live))


@WORKERS.get("/workers/{worker}", "workers.get", tenants="all")
async def get(call: WebCall, worker: str) -> Worker:
    """Return one worker as of its last heartbeat. The beginning of an id is enough if no other begins so."""
    return await call.app.workers.aget(worker)


@WORKERS.get("/workers/{worker}/status", "workers.status", tenants="all", limited=False)
async def status(call: WebCall, worker: str, query: AskQuery) -> WorkerStatus:
    """Ask a worker what it does now: each slot, its lanes, its memory. It answers within some seconds."""
    return await call.app.workers.astatus(worker, at_most=query.at_most)


@WORKERS.get(
    "/workers/{worker}/dump",
    "workers.dump",
    least=Role.ADMIN,
    tenants="all",
    produces="text/plain",
    limited=False,
)
async def dump(call: WebCall, worker: str, query: DumpQuery) -> PlainTextResponse:
    """Ask a worker for the stacks of all its threads and tasks; no values are shown."""
    text = await call.app.workers.adump(worker, memory=query.memory, at_most=query.at_most)
    return PlainTextResponse(text)


@WORKERS.post("/workers/{worker}/pause", "workers.pause", least=Role.OPERATOR, tenants="all")
async def pause(call: WebCall, worker: str, body: OrderBody) -> WorkerStatus:
    """Let a worker claim nothing until it is resumed, or ends. Running jobs go on."""
    return await call.app.workers.apause(worker, at_most=body.at_most, note=body.note)


@WORKERS.post("/workers/{worker}/resume", "workers.resume", least=Role.OPERATOR, tenants="all")
async def resume(call: WebCall, worker: str, body: OrderBody) -> WorkerStatus:
    """Let a paused worker claim again."""
    return await call.app.workers.aresume(worker, at_most=body.at_most, note=body.note)


@WORKERS.post("/workers/{worker}/stop", "workers.stop", least=Role.OPERATOR, tenants="all")
async def stop(call: WebCall, worker: str, body: OrderBody) -> WorkerStatus:
    """Let a worker stop as after SIGTERM: running jobs go on until its shutdown deadline."""
    return await call.app.workers.astop(worker, at_most=body.at_most, note=body.note)
