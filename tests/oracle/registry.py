"""The registry facet of the oracle."""

from __future__ import annotations

import msgspec

from fairlane.model.duty_report import DutyReports
from fairlane.model.instants import SECOND, Micros
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
from tests.oracle.core import Core


class OracleRegistry:
    """Workers, tasks, leaders and hints."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    def _beat(self, view: WorkerView, renew_every: Micros) -> None:
        books, now = self._core.books, self._core.now()
        books.workers[view.record.id] = view
        if is_gap(books.beat_at, now, renew_every):
            books.resumed_at = now
        books.beat_at = now
        for record in view.record.tasks:
            books.tasks[task_key(record)] = TaskView(record, now)

    async def expect(self, calls: int, *, waits: bool) -> None:
        """Do nothing: memory needs no connections."""

    async def register(self, request: RegisterRequest) -> None:
        now = self._core.now()
        view = WorkerView(record=request.record, state="starting", started_at=now, beat_at=now)
        self._beat(view, request.renew_every)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
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
            memory=request.memory,
            cpu=request.cpu,
        )
        self._beat(changed, request.renew_every)
        return True

    async def leave(self, request: LeaveRequest) -> None:
        books = self._core.books
        books.workers.pop(request.worker, None)
        books.leads = {name: lead for name, lead in books.leads.items() if lead[0] != request.worker}

    async def workers(self, request: WorkersRequest) -> tuple[WorkerView, ...]:
        now = self._core.now()
        views = sorted(self._core.books.workers.values(), key=lambda view: view.record.id)
        within = request.seen_within
        return tuple(view for view in views if within is None or now - view.beat_at <= within)

    async def tasks(self, request: TasksRequest) -> tuple[TaskView, ...]:
        return list_tasks(((view.record, view.seen_at) for view in self._core.books.tasks.values()), request)

    async def clean(self, request: ForgetWorkersRequest) -> tuple[str, ...]:
        books, now = self._core.books, self._core.now()
        silent = sorted(id for id, view in books.workers.items() if now - view.beat_at >= request.silent_for)
        for id in silent:
            del books.workers[id]
        return tuple(silent)

    async def lead(self, request: LeadRequest) -> LeadReply:
        books, now = self._core.books, self._core.now()
        holder, until = books.leads.get(request.name, ("", 0))
        if holder == request.worker or until <= now:
            holder, until = request.worker, now + request.lease
            books.leads[request.name] = (holder, until)
        if request.reports is not None and holder == request.worker:
            books.duty_reports[request.name] = request.reports
        return LeadReply(holder, until)

    async def duties(self, request: DutiesRequest) -> DutiesReply:
        books, now = self._core.books, self._core.now()
        holder, until = books.leads.get(request.name, ("", 0))
        leader = LeadReply(holder, until) if until > now else None
        reports = books.duty_reports.get(request.name, DutyReports())
        return DutiesReply(now=now, leader=leader, reports=reports)

    async def status(self, request: Request) -> StoreStatus:
        books = self._core.books
        return StoreStatus(self._core.now(), books.beat_at, books.resumed_at)

    async def wake(self, request: WakeRequest) -> None:
        self._core.hint(request.queues, request.workers)

    async def wait(self, request: WaitRequest) -> bool:
        return await self._core.await_hint(request.worker, request.queues, request.at_most / SECOND)
