"""The registry facet: workers, tasks, the lead, wake-ups."""

from __future__ import annotations

from fairlane.model.instants import SECOND
from fairlane.model.outage import is_gap
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
from fairlane.store.sqlite.asking import all_rows, one_row, one_value
from fairlane.store.sqlite.cards import pack, read_card, read_task
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx
from fairlane.store.sqlite.wake import Wake
from fairlane.store.sqlite.writer import Reader, Writer

_SQL = load("registry")


class SqliteRegistry:
    """Who is there."""

    def __init__(self, writer: Writer, reader: Reader, wake: Wake) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._wake = wake

    async def expect(self, calls: int, *, waits: bool) -> None:
        """See the contract: there is one writer, whoever calls."""

    async def register(self, request: RegisterRequest) -> None:
        """See the contract."""
        card = request.card

        def add(tx: Tx) -> None:
            tx.db.execute(_SQL.register, (card.id, pack(card), tx.now))
            for task in card.tasks:
                tx.db.execute(_SQL.publish, (key_of(task), pack(task), tx.now))
            _beat(tx, request.renew_every)

        await self._writer.run(add)
        await self._wake.look(card.id)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """See the contract."""

        def beat(tx: Tx) -> bool:
            values = (request.state, tx.now, request.running, request.settled, request.failed, request.worker)
            row = one_row(tx.db, _SQL.heartbeat, values)
            if row is None:
                return False
            for task in read_card(row[0]).tasks:
                tx.db.execute(_SQL.publish, (key_of(task), pack(task), tx.now))
            _beat(tx, request.renew_every)
            return True

        return await self._writer.run(beat)

    async def leave(self, request: LeaveRequest) -> None:
        """See the contract."""

        def remove(tx: Tx) -> None:
            tx.db.execute(_SQL.leave, (request.worker,))
            tx.db.execute(_SQL.end_leads, (request.worker,))

        await self._writer.run(remove)

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        """See the contract."""

        def read(tx: Tx) -> tuple[WorkerView, ...]:
            since = 0 if request.seen_within is None else tx.now - request.seen_within
            return tuple(
                WorkerView(
                    card=read_card(card),
                    state=state,
                    started_at=started_at,
                    beat_at=beat_at,
                    running=running,
                    settled=settled,
                    failed=failed,
                )
                for card, state, started_at, beat_at, running, settled, failed in tx.db.execute(
                    _SQL.workers, (since,)
                )
            )

        return await self._reader.run(read)

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        """See the contract."""

        def read(tx: Tx) -> tuple[TaskView, ...]:
            found = ((read_task(card), seen_at) for card, seen_at in tx.db.execute(_SQL.tasks))
            return listed(found, request)

        return await self._reader.run(read)

    async def clean(self, request: CleanRequest) -> tuple[str, ...]:
        """See the contract."""

        def remove(tx: Tx) -> tuple[str, ...]:
            rows = all_rows(tx.db, _SQL.clean, (tx.now - request.silent_for,))
            return tuple(sorted(worker for (worker,) in rows))

        return await self._writer.run(remove)

    async def lead(self, request: LeadRequest) -> LeadReply:
        """See the contract."""

        def ask(tx: Tx) -> LeadReply:
            tx.db.execute(_SQL.lead, (request.name, request.worker, tx.now + request.lease, tx.now))
            (row,) = all_rows(tx.db, _SQL.leader, (request.name,))
            return LeadReply(*row)

        return await self._writer.run(ask)

    async def pulse(self, request: Request) -> Pulse:  # noqa: ARG002 (the contract's shape)
        """See the contract."""

        def read(tx: Tx) -> Pulse:
            return Pulse(tx.now, _meta(tx, "beat_at"), _meta(tx, "resumed_at"))

        return await self._reader.run(read)

    async def wake(self, request: WakeRequest) -> None:
        """See the contract."""
        self._wake.send(set(request.queues), set(request.workers))

    async def wait(self, request: WaitRequest) -> bool:
        """See the contract."""
        return await self._wake.wait(request.worker, request.queues, request.at_most / SECOND)


def _beat(tx: Tx, renew_every: int) -> None:
    if is_gap(_meta(tx, "beat_at"), tx.now, renew_every):
        tx.db.execute(_SQL.remember, ("resumed_at", tx.now))
    tx.db.execute(_SQL.remember, ("beat_at", tx.now))


def _meta(tx: Tx, name: str) -> int | None:
    found: int | None = one_value(tx.db, _SQL.recall, (name,))
    return found
