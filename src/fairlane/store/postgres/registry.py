"""The registry facet: workers, tasks, the lead, wake-ups."""

from __future__ import annotations

import asyncpg

from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle.outage import GAP_MARGIN
from fairlane.store.contract.registry import (
    DutiesReply,
    DutiesRequest,
    ForgetWorkersRequest,
    HeartbeatRequest,
    LeadReply,
    LeadRequest,
    LeaveRequest,
    RegisterRequest,
    StoreStatus,
    TasksRequest,
    TaskView,
    WaitRequest,
    WakeRequest,
    WorkersRequest,
    WorkerView,
)
from fairlane.store.contract.request import Request
from fairlane.store.contract.task_versions import list_tasks, task_key
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.wake import Wake
from fairlane.store.registry_records import (
    pack_record,
    pack_reports,
    read_reports,
    read_task,
    read_worker,
    reports_key,
)


class PostgresRegistry:
    """Workers, published tasks, the lead, wake-ups."""

    def __init__(self, server: Server, wake: Wake) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._wake = wake
        self._sql = load("registry", server.schema)

    async def expect(self, calls: int, *, waits: bool) -> None:
        await self._server.expect(calls + waits)

    async def register(self, request: RegisterRequest) -> None:
        record = request.record
        tasks = {task_key(task): pack_record(task) for task in sorted(record.tasks, key=task_key)}
        values = (
            record.id,
            pack_record(record),
            list(tasks),
            list(tasks.values()),
            _gap(request.renew_every),
        )
        await self._server.fetch(self._sql.register, self._server.now(), *values)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        counts = (request.running, request.settled, request.failed)
        values = (
            request.worker,
            request.state,
            *counts,
            _gap(request.renew_every),
            request.memory,
            request.cpu,
        )
        return bool(await self._server.value(self._sql.heartbeat, self._server.now(), *values))

    async def leave(self, request: LeaveRequest) -> None:
        await self._server.fetch(self._sql.leave, request.worker)

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        rows = await self._server.fetch(self._sql.workers, self._server.now(), request.seen_within)
        return tuple(map(_view, rows))

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        rows = await self._server.fetch(self._sql.tasks)
        return list_tasks(((read_task(record), seen_at) for record, seen_at in rows), request)

    async def clean(self, request: ForgetWorkersRequest) -> tuple[str, ...]:
        rows = await self._server.fetch(self._sql.clean, self._server.now(), request.silent_for)
        return tuple(sorted(worker for (worker,) in rows))

    async def lead(self, request: LeadRequest) -> LeadReply:
        values = (request.name, request.worker, request.lease)
        if request.reports is None:
            (row,) = await self._server.fetch(self._sql.lead, self._server.now(), *values)
        else:
            kept = (reports_key(request.name), pack_reports(request.reports).decode())
            (row,) = await self._server.fetch(self._sql.lead_and_report, self._server.now(), *values, *kept)
        return LeadReply(*row)

    async def duties(self, request: DutiesRequest) -> DutiesReply:
        values = (request.name, reports_key(request.name))
        (row,) = await self._server.fetch(self._sql.duties, self._server.now(), *values)
        now, worker, until, stored = row
        leader = None if worker is None or until <= now else LeadReply(worker, until)
        return DutiesReply(now=now, leader=leader, reports=read_reports(stored))

    async def status(self, request: Request) -> StoreStatus:  # noqa: ARG002 (the contract's shape)
        (row,) = await self._server.fetch(self._sql.status, self._server.now())
        return StoreStatus(*row)

    async def wake(self, request: WakeRequest) -> None:
        self._server.hint(request.queues, request.workers)

    async def wait(self, request: WaitRequest) -> bool:
        return await self._wake.wait(request.worker, request.queues, request.at_most / SECOND)


def _gap(renew_every: Micros) -> Micros:
    """Return how long all workers may be silent, by the rule of this one, before it is an outage (S38)."""
    return renew_every + GAP_MARGIN


def _view(row: asyncpg.Record) -> WorkerView:
    values = dict(row)
    return WorkerView(record=read_worker(values.pop("record")), **values)
