"""The registry facet: workers, tasks, the lead, wake-ups."""

from __future__ import annotations

import asyncpg

from fairlane.model.instants import SECOND, Micros
from fairlane.model.outage import GAP_MARGIN
from fairlane.store.contract.published import key_of, listed
from fairlane.store.contract.registry import (
    CleanRequest,
    HeartbeatRequest,
    LeadReply,
    LeadRequest,
    LeaveRequest,
    Pulse,
    RegisterRequest,
    TasksRequest,
    TaskView,
    WaitRequest,
    WakeRequest,
    WorkersRequest,
    WorkerView,
)
from fairlane.store.contract.request import Request
from fairlane.store.postgres.cards import pack, read_card, read_task
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.wake import Wake


class PostgresRegistry:
    """Who is there."""

    def __init__(self, server: Server, wake: Wake) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._wake = wake
        self._sql = load("registry", server.schema)

    async def expect(self, calls: int, *, waits: bool) -> None:
        """See the contract."""
        await self._server.expect(calls + waits)

    async def register(self, request: RegisterRequest) -> None:
        """See the contract."""
        card = request.card
        tasks = {key_of(task): pack(task) for task in sorted(card.tasks, key=key_of)}
        values = (card.id, pack(card), list(tasks), list(tasks.values()), _gap(request.renew_every))
        await self._server.fetch(self._sql.register, self._server.now(), *values)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """See the contract."""
        said = (request.state, request.running, request.settled, request.failed)
        values = (request.worker, *said, _gap(request.renew_every))
        return bool(await self._server.value(self._sql.heartbeat, self._server.now(), *values))

    async def leave(self, request: LeaveRequest) -> None:
        """See the contract."""
        await self._server.fetch(self._sql.leave, request.worker)

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        """See the contract."""
        rows = await self._server.fetch(self._sql.workers, self._server.now(), request.seen_within)
        return tuple(map(_view, rows))

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        """See the contract."""
        rows = await self._server.fetch(self._sql.tasks)
        return listed(((read_task(card), seen_at) for card, seen_at in rows), request)

    async def clean(self, request: CleanRequest) -> tuple[str, ...]:
        """See the contract."""
        rows = await self._server.fetch(self._sql.clean, self._server.now(), request.silent_for)
        return tuple(sorted(worker for (worker,) in rows))

    async def lead(self, request: LeadRequest) -> LeadReply:
        """See the contract."""
        values = (request.name, request.worker, request.lease)
        (row,) = await self._server.fetch(self._sql.lead, self._server.now(), *values)
        return LeadReply(*row)

    async def pulse(self, request: Request) -> Pulse:  # noqa: ARG002 (the contract's shape)
        """See the contract."""
        (row,) = await self._server.fetch(self._sql.pulse, self._server.now())
        return Pulse(*row)

    async def wake(self, request: WakeRequest) -> None:
        """See the contract."""
        self._server.hint(request.queues, request.workers)

    async def wait(self, request: WaitRequest) -> bool:
        """See the contract."""
        return await self._wake.wait(request.worker, request.queues, request.at_most / SECOND)


def _gap(renew_every: Micros) -> Micros:
    """Say how long all may be silent, by the rule of the worker that speaks, before it is an outage (S38)."""
    return renew_every + GAP_MARGIN


def _view(row: asyncpg.Record) -> WorkerView:
    values = dict(row)
    return WorkerView(card=read_card(values.pop("card")), **values)
