"""The registry facet of the oracle."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import SECOND, Micros
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
from tests.oracle.core import Core


class OracleRegistry:
    """Who is there."""

    def __init__(self, core: Core) -> None:
        """Share the books with the other facets."""
        self._core = core

    def _beat(self, view: WorkerView, renew_every: Micros) -> None:
        books, now = self._core.books, self._core.now()
        books.workers[view.card.id] = view
        if is_gap(books.beat_at, now, renew_every):
            books.resumed_at = now
        books.beat_at = now
        for card in view.card.tasks:
            books.tasks[key_of(card)] = TaskView(card, now)

    async def expect(self, calls: int, *, waits: bool) -> None:
        """See the contract: nothing is to be reached."""

    async def register(self, request: RegisterRequest) -> None:
        """See the contract."""
        now = self._core.now()
        view = WorkerView(card=request.card, state="starting", started_at=now, beat_at=now)
        self._beat(view, request.renew_every)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """See the contract."""
        view = self._core.books.workers.get(request.worker)
        if view is None:
            return False
        changed = msgspec.structs.replace(
            view,
            state=request.state,
            beat_at=self._core.now(),
            running=request.running,
            settled=request.settled,
            failed=request.failed,
        )
        self._beat(changed, request.renew_every)
        return True

    async def leave(self, request: LeaveRequest) -> None:
        """See the contract."""
        books = self._core.books
        books.workers.pop(request.worker, None)
        books.leads = {name: lead for name, lead in books.leads.items() if lead[0] != request.worker}

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        """See the contract."""
        now = self._core.now()
        views = sorted(self._core.books.workers.values(), key=lambda view: view.card.id)
        within = request.seen_within
        return tuple(view for view in views if within is None or now - view.beat_at <= within)

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        """See the contract."""
        return listed(((view.card, view.seen_at) for view in self._core.books.tasks.values()), request)

    async def clean(self, request: CleanRequest) -> tuple[str, ...]:
        """See the contract."""
        books, now = self._core.books, self._core.now()
        silent = sorted(id for id, view in books.workers.items() if now - view.beat_at >= request.silent_for)
        for id in silent:
            del books.workers[id]
        return tuple(silent)

    async def lead(self, request: LeadRequest) -> LeadReply:
        """See the contract."""
        books, now = self._core.books, self._core.now()
        holder, until = books.leads.get(request.name, ("", 0))
        if holder == request.worker or until <= now:
            holder, until = request.worker, now + request.lease
            books.leads[request.name] = (holder, until)
        return LeadReply(holder, until)

    async def pulse(self, request: Request) -> Pulse:
        """See the contract."""
        books = self._core.books
        return Pulse(self._core.now(), books.beat_at, books.resumed_at)

    async def wake(self, request: WakeRequest) -> None:
        """See the contract."""
        self._core.hint(request.queues, request.workers)

    async def wait(self, request: WaitRequest) -> bool:
        """See the contract."""
        return await self._core.await_hint(request.worker, request.queues, request.at_most / SECOND)
