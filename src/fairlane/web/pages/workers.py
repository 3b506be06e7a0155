"""Workers: whether they are healthy, what runs in them, and what they say when they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from fairlane.app.admin.worker_status import WorkerStatus
from fairlane.app.admin.workers import Worker
from fairlane.app.ambient import scope_for
from fairlane.model.access import Role
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.worker_errors import WorkerSilent
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.html.worker_slots import LaneSlots, lane_slots, lanes_of_all
from fairlane.web.page import PageGroup, PageView

WORKERS: Final = PageGroup("Workers", section="machinery", icon="workers", key="w")

_ANSWER_WITHIN: Final = 8.0
"""Seconds: a worker looks for questions every two."""

_FAILURES_READ: Final = 200
_FAILURES_SHOWN: Final = 10


class WorkersPageQuery(Body, frozen=True, kw_only=True):
    """Which workers are shown: those that are alive, or also those that fell silent."""

    show: Literal["live", "all"] = "live"


class AskForm(Body, frozen=True, kw_only=True):
    """The form that asks a worker. It sends only where it stands."""

    next: str = ""


class DumpForm(AskForm, frozen=True, kw_only=True):
    """The same for its stacks; `memory`: also what holds memory."""

    memory: bool = False


class WorkerCard(msgspec.Struct, frozen=True):
    """A worker with its lanes and what runs in each slot."""

    worker: Worker
    lanes: Sequence[LaneSlots]

    @property
    def late(self) -> int:
        """How many of its jobs are close to their timeout."""
        return sum(job.is_late for lane in self.lanes for job in lane.jobs)


class WorkerFailure(msgspec.Struct, frozen=True):
    """An attempt that failed on a worker, of a job that waits for the next one or is dead."""

    job: JobRecord
    error: str
    at: Any


@WORKERS.page("/workers", "workers.list", tenants="all")
async def list_workers(call: WebCall, query: WorkersPageQuery) -> PageView:
    """Show each worker with its lanes; those that fell silent only on request."""
    workers = await call.app.workers.alist()
    live = [one for one in workers if one.is_live]
    running, now = await _running(call), await _now(call)
    cards = [
        WorkerCard(one, lane_slots(one, running.get(one.id, ()), now))
        for one in (workers if query.show == "all" else live)
    ]
    lanes = [lane for card in cards if card.worker.is_live for lane in card.lanes]
    return PageView(
        "workers/list.html",
        {
            "query": query,
            "cards": cards,
            "live": live,
            "silent": [one for one in workers if not one.is_live],
            "lanes": lanes_of_all(lanes),
            "duties": await call.app.duties.alist(),
            "leader": await call.app.duties.aleader(),
        },
    )


@WORKERS.page("/workers/{worker}", "workers.show", tenants="all")
async def show_worker(call: WebCall, worker: str) -> PageView:
    """Show one worker: its lanes, the jobs that it runs, and what failed on it lately."""
    return await _view(call, await call.app.workers.aget(worker))


@WORKERS.page("/workers/{worker}/status", "workers.status", tenants="all", method="POST", limited=False)
async def ask_worker(call: WebCall, worker: str, query: AskForm) -> PageView:  # noqa: ARG001 (it has no more)
    """Ask a worker what it does at this moment, and show its answer."""
    found = await call.app.workers.aget(worker)
    try:
        status = await call.app.workers.astatus(found.id, at_most=_ANSWER_WITHIN)
    except WorkerSilent as error:
        return await _view(call, found, problem=str(error))
    return await _view(call, found, status=status)


@WORKERS.page(
    "/workers/{worker}/dump",
    "workers.dump",
    least=Role.ADMIN,
    tenants="all",
    method="POST",
    limited=False,
)
async def dump_worker(call: WebCall, worker: str, query: DumpForm) -> PageView:
    """Ask a worker for the stacks of its threads and tasks, and show them. No values are shown."""
    found = await call.app.workers.aget(worker)
    try:
        text = await call.app.workers.adump(found.id, memory=query.memory, at_most=_ANSWER_WITHIN)
    except WorkerSilent as error:
        return await _view(call, found, problem=str(error))
    return await _view(call, found, dump=text)


async def _view(
    call: WebCall, worker: Worker, *, status: WorkerStatus | None = None, dump: str = "", problem: str = ""
) -> PageView:
    running, now = await _running(call), await _now(call)
    card = WorkerCard(worker, lane_slots(worker, running.get(worker.id, ()), now))
    values: dict[str, Any] = {
        "worker": worker,
        "card": card,
        "jobs": [job for lane in card.lanes for job in lane.jobs],
        "failures": await _failures(call, worker.id),
        "status": status,
        "dump": dump,
        "problem": problem,
    }
    return PageView("workers/worker.html", values)


async def _running(call: WebCall) -> Mapping[str, Sequence[JobRecord]]:
    """Return the running jobs by worker; of more than 1,000, the newest."""
    request = FindRequest(scope=scope_for(None), states=frozenset({State.RUNNING}), limit=MAX_PAGE_SIZE)
    found: dict[str, list[JobRecord]] = {}
    for job in (await call.app.client.store.jobs.find(request)).jobs:
        if job.worker is not None:
            found.setdefault(job.worker, []).append(job)
    return found


async def _now(call: WebCall) -> Instant:
    return (await call.app.client.store.registry.status(Request(scope=scope_for(None)))).now


async def _failures(call: WebCall, worker: str) -> Sequence[WorkerFailure]:
    """Return what failed on a worker, of the newest jobs that wait for an attempt or are dead."""
    states = frozenset({State.DELAYED, State.READY, State.DEAD})
    request = FindRequest(scope=scope_for(None), states=states, limit=_FAILURES_READ)
    found = [
        WorkerFailure(job, f"{failure.error_type}: {failure.message}", to_datetime(one.ended_at))
        for job in (await call.app.client.store.jobs.find(request)).jobs
        for one in job.attempts
        if one.worker == worker and (failure := one.failure) is not None
    ]
    return sorted(found, key=lambda one: one.at, reverse=True)[:_FAILURES_SHOWN]
