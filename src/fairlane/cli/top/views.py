"""The views of `fairlane top`: what each reads, in one bounded look, and its columns. Knows no terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from fairlane import Fairlane, Job, Worker
from fairlane.app.admin.paging import count_all
from fairlane.app.admin.views import held_view
from fairlane.app.redaction import REDACTED
from fairlane.cli.render.policies import hold_state
from fairlane.cli.top.tables import TopCell, TopColumn, TopRow, number_cell, text_cell
from fairlane.model.durations import format_duration
from fairlane.model.instants import Instant, to_instant
from fairlane.model.lifecycle.states import WAITING, State
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import Count
from fairlane.store.contract.policies import ListRequest, ReadRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request

MAX_ROWS: Final = 200
"""How many rows a view shows: the first ones, or those with the most waiting jobs."""

MAX_COUNTERS: Final = 100_000
"""How many counters one look reads; there is one per tenant, queue and state that has jobs."""

ViewName: TypeAlias = Literal["queues", "tenants", "workers", "jobs"]

_ALL: Final = Scope.all()
_NUMBERS: Final = (State.READY, State.RUNNING, State.DELAYED, State.DEAD, State.SUCCEEDED, State.CANCELLED)
_RANKS: Final = (0, 1, 2, 1, 3, 3)


class Look(msgspec.Struct, frozen=True):
    """What one look found. `note` says what it left out."""

    rows: Sequence[TopRow]
    note: str = ""


class TopView(msgspec.Struct, frozen=True):
    """A view: its columns, the column that it is sorted by at first, its first filter, and its look.

    A filter is a part of the name; that of jobs is a query. `opens` makes the query of a row's jobs.
    """

    columns: Sequence[TopColumn]
    sort: int
    look: Callable[[Fairlane, str], Awaitable[Look]]
    filter: str = ""
    opens: str | None = None


async def look_at_queues(app: Fairlane, part: str) -> Look:
    """Count the jobs of each queue, and see which are paused or closed."""
    counted, note = await _counted(app, lambda one: one.queue)
    request = ListRequest(scope=_ALL, kind=SubjectKind.QUEUE, limit=MAX_PAGE_SIZE)
    for view in await app.client.store.policies.list(request):
        counted.setdefault(view.subject.name, dict.fromkeys(State, 0))
    return await _counted_rows(app, SubjectKind.QUEUE, counted, part, note)


async def look_at_tenants(app: Fairlane, part: str) -> Look:
    """Count the jobs of each tenant, and see which are paused or closed."""
    counted, note = await _counted(app, lambda one: one.tenant)
    return await _counted_rows(app, SubjectKind.TENANT, counted, part, note)


async def look_at_workers(app: Fairlane, part: str) -> Look:
    """Read what each worker last said of itself."""
    now = (await app.client.store.registry.status(Request(scope=_ALL))).now
    found = [one for one in await app.workers.alist() if part in one.id]
    return Look([_worker_row(one, now) for one in found[:MAX_ROWS]], _left_out(len(found)))


async def look_at_jobs(app: Fairlane, query: str) -> Look:
    """Find the newest jobs that match a query; `QueryError` if it is not understood."""
    page = await app.jobs.afind(query, limit=MAX_ROWS)
    now = (await app.client.store.registry.status(Request(scope=_ALL))).now
    rows = [_job_row(job, now) for job in page.items]
    return Look(rows, "" if page.cursor is None else "there may be more")


async def _counted(app: Fairlane, name_of: Callable[[Count], str]) -> tuple[dict[str, dict[State, int]], str]:
    """Add up the counters by name, and say whether all were read."""
    counted: dict[str, dict[State, int]] = {}
    read = 0
    async for one in count_all(app.client.store, _ALL):
        counted.setdefault(name_of(one), dict.fromkeys(State, 0))[one.state] += one.jobs
        read += 1
        if read == MAX_COUNTERS:
            return counted, f"of the first {MAX_COUNTERS:,} counters"
    return counted, ""


async def _counted_rows(
    app: Fairlane, kind: SubjectKind, counted: Mapping[str, Mapping[State, int]], part: str, note: str
) -> Look:
    """Return the rows of those with the most waiting jobs."""
    matching = [name for name in counted if part in name]
    matching.sort(key=lambda name: (-sum(counted[name][state] for state in WAITING), name))
    shown = matching[:MAX_ROWS]
    subjects = tuple(Subject(kind, name) for name in shown)
    policies = await app.client.store.policies.read(ReadRequest(scope=_ALL, subjects=subjects))
    rows: list[TopRow] = []
    for subject in subjects:
        view, numbers = policies[subject], counted[subject.name]
        held = hold_state(held_view(view.paused), held_view(view.closed))
        cells = [number_cell(numbers[state]) for state in _NUMBERS]
        rows.append(TopRow(subject.name, (text_cell(subject.name), *cells, text_cell(held))))
    return Look(rows, "; ".join(filter(None, (_left_out(len(matching)), note))))


def _left_out(found: int) -> str:
    return f"{MAX_ROWS} of {found:,}" if found > MAX_ROWS else ""


def _worker_row(worker: Worker, now: Instant) -> TopRow:
    return TopRow(
        worker.id,
        (
            text_cell(worker.id),
            text_cell(worker.state),
            number_cell(worker.held),
            number_cell(worker.slots),
            number_cell(worker.settled),
            number_cell(worker.failed),
            _duration_cell(now - to_instant(worker.beat_at)),
            text_cell(", ".join(worker.queues)),
            text_cell(worker.host),
            text_cell(worker.version),
        ),
    )


def _job_row(job: Job[Any], now: Instant) -> TopRow:
    started = job.attempts[-1].started_at if job.state is State.RUNNING and job.attempts else None
    progress = "" if job.progress is None else f" {job.progress.fraction:.0%}"
    return TopRow(
        str(job.id),
        (
            text_cell(f"{job.state.value}{progress}"),
            text_cell(job.task),
            text_cell(job.tenant),
            TopCell("", -1) if started is None else _duration_cell(now - to_instant(started)),
            _duration_cell(now - to_instant(job.enqueued_at)),
            text_cell(job.queue),
            TopCell(f"{job.attempt}/{job.max_attempts}", job.attempt),
            text_cell(str(job.id)),
            text_cell(REDACTED.text(job.because)),
        ),
    )


def _duration_cell(duration: int) -> TopCell:
    return TopCell(format_duration(max(0, duration)), duration)


def _counted_columns(title: str) -> Sequence[TopColumn]:
    numbers = zip(_NUMBERS, _RANKS, strict=True)
    return (
        TopColumn(title),
        *(TopColumn(state.value.upper(), rank, is_number=True) for state, rank in numbers),
        TopColumn("HELD", 2),
    )


VIEWS: Final[Mapping[ViewName, TopView]] = {
    "queues": TopView(_counted_columns("QUEUE"), 1, look_at_queues, opens="queue"),
    "tenants": TopView(_counted_columns("TENANT"), 1, look_at_tenants, opens="tenant"),
    "workers": TopView(
        (
            TopColumn("WORKER"),
            TopColumn("STATE"),
            TopColumn("RUNNING", 1, is_number=True),
            TopColumn("SLOTS", 1, is_number=True),
            TopColumn("SETTLED", 3, is_number=True),
            TopColumn("FAILED", 2, is_number=True),
            TopColumn("HEARTBEAT", 2, is_number=True),
            TopColumn("QUEUES", 4),
            TopColumn("HOST", 5),
            TopColumn("VERSION", 6),
        ),
        2,
        look_at_workers,
        opens="worker",
    ),
    "jobs": TopView(
        (
            TopColumn("STATE"),
            TopColumn("TASK"),
            TopColumn("TENANT", 1),
            TopColumn("RUNNING FOR", 2, is_number=True),
            TopColumn("ENQUEUED", 3, is_number=True),
            TopColumn("QUEUE", 5),
            TopColumn("ATTEMPT", 6, is_number=True),
            TopColumn("JOB", 4),
            TopColumn("BECAUSE", 7),
        ),
        3,
        look_at_jobs,
        filter="state:running",
    ),
}
"""Every view, in the order of its tabs."""
