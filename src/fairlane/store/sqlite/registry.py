"""The registry facet: workers and their heartbeats, published tasks, leads, wake-ups."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.outage import is_gap
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
from fairlane.store.registry_records import (
    pack_record,
    pack_reports,
    read_reports,
    read_task,
    read_worker,
    reports_key,
)
from fairlane.store.sqlite.query import all_rows, one_row, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction
from fairlane.store.sqlite.wake import Wake

_SQL = load("registry")
_SEEN: Final = WorkerView.__struct_fields__[1:]
"""What the statement `workers` returns behind the record."""


class SqliteRegistry:
    """Workers, the tasks that they run, and who leads."""

    def __init__(self, writer: WriterThread, reader: ReaderThread, wake: Wake) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._wake = wake

    async def expect(self, calls: int, *, waits: bool) -> None:
        """Do nothing: there is one writer, whoever calls."""

    async def register(self, request: RegisterRequest) -> None:
        record = request.record

        def add(tx: Transaction) -> None:
            tx.db.execute(_SQL.register, (record.id, pack_record(record), tx.now))
            for task in record.tasks:
                tx.db.execute(_SQL.publish, (task_key(task), pack_record(task), tx.now))
            _beat(tx, request.renew_every)

        await self._writer.run(add)
        await self._wake.remember_version(record.id)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        def beat(tx: Transaction) -> bool:
            values = (request.state, tx.now, request.running, request.settled, request.failed, request.worker)
            row = one_row(tx.db, _SQL.heartbeat, (*values, request.memory, request.cpu))
            if row is None:
                return False
            for task in read_worker(row[0]).tasks:
                tx.db.execute(_SQL.publish, (task_key(task), pack_record(task), tx.now))
            _beat(tx, request.renew_every)
            return True

        return await self._writer.run(beat)

    async def leave(self, request: LeaveRequest) -> None:
        def remove(tx: Transaction) -> None:
            tx.db.execute(_SQL.leave, (request.worker,))
            tx.db.execute(_SQL.end_leads, (request.worker,))

        await self._writer.run(remove)

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        def read(tx: Transaction) -> tuple[WorkerView, ...]:
            since = 0 if request.seen_within is None else tx.now - request.seen_within
            rows = tx.db.execute(_SQL.workers, (since,))
            return tuple(
                WorkerView(record=read_worker(record), **dict(zip(_SEEN, seen, strict=True)))
                for record, *seen in rows
            )

        return await self._reader.run(read)

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        def read(tx: Transaction) -> tuple[TaskView, ...]:
            found = ((read_task(record), seen_at) for record, seen_at in tx.db.execute(_SQL.tasks))
            return list_tasks(found, request)

        return await self._reader.run(read)

    async def clean(self, request: ForgetWorkersRequest) -> tuple[str, ...]:
        def remove(tx: Transaction) -> tuple[str, ...]:
            rows = all_rows(tx.db, _SQL.clean, (tx.now - request.silent_for,))
            return tuple(sorted(worker for (worker,) in rows))

        return await self._writer.run(remove)

    async def lead(self, request: LeadRequest) -> LeadReply:
        def ask(tx: Transaction) -> LeadReply:
            tx.db.execute(_SQL.lead, (request.name, request.worker, tx.now + request.lease, tx.now))
            (row,) = all_rows(tx.db, _SQL.leader, (request.name,))
            if request.reports is not None and row[0] == request.worker:
                tx.db.execute(_SQL.remember, (reports_key(request.name), pack_reports(request.reports)))
            return LeadReply(*row)

        return await self._writer.run(ask)

    async def duties(self, request: DutiesRequest) -> DutiesReply:
        def read(tx: Transaction) -> DutiesReply:
            row = one_row(tx.db, _SQL.leader, (request.name,))
            leader = None if row is None or row[1] <= tx.now else LeadReply(*row)
            stored = one_value(tx.db, _SQL.recall, (reports_key(request.name),))
            return DutiesReply(now=tx.now, leader=leader, reports=read_reports(stored))

        return await self._reader.run(read)

    async def status(self, request: Request) -> StoreStatus:  # noqa: ARG002 (the contract's shape)
        def read(tx: Transaction) -> StoreStatus:
            return StoreStatus(tx.now, _meta(tx, "beat_at"), _meta(tx, "resumed_at"))

        return await self._reader.run(read)

    async def wake(self, request: WakeRequest) -> None:
        self._wake.send(set(request.queues), set(request.workers))

    async def wait(self, request: WaitRequest) -> bool:
        return await self._wake.wait(request.worker, request.queues, request.at_most / SECOND)


def _beat(tx: Transaction, renew_every: int) -> None:
    if is_gap(_meta(tx, "beat_at"), tx.now, renew_every):
        tx.db.execute(_SQL.remember, ("resumed_at", tx.now))
    tx.db.execute(_SQL.remember, ("beat_at", tx.now))


def _meta(tx: Transaction, name: str) -> int | None:
    found: int | None = one_value(tx.db, _SQL.recall, (name,))
    return found
