"""Write finished jobs as lines, page by page. Knows nothing of who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from msgspec.structs import replace

from fairlane.app.admin.validation import FindFilters, find_filters_of, number_of
from fairlane.app.json_lines import JsonLines
from fairlane.model.finished_job import FinishedJob, finished_job
from fairlane.model.history_line import line_values
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadGetRequest
from fairlane.store.contract.jobs import FindRequest

STEP: Final = 100
"""How many jobs are read at a time: they come with their arguments, results and attempts."""

_MOST: Final = 2**53

ENDED: Final = frozenset(state for state in State if is_finished(state))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """How many jobs were written, and the cursor to continue at; None at the end."""

    written: int
    cursor: str | None = None


def export_request(limit: int | None, cursor: str | None, filters: FindFilters) -> FindRequest:
    """Return the request for the first page; ValueError if a state is named in which no job has ended."""
    if limit is not None:
        number_of("limit", limit, _MOST)
    fields = find_filters_of(filters)
    states = cast("frozenset[State]", fields.pop("states", frozenset()))
    live = sorted(states - ENDED)
    if live:
        message = f"state: {live[0].value} is not over; only succeeded, cancelled and dead jobs are history"
        raise ValueError(message)
    return FindRequest(**fields, states=states or ENDED, limit=STEP, cursor=cursor)


async def write_jobs(store: Store, to: object, request: FindRequest, limit: int | None) -> ExportResult:
    """Write what matches, at most `limit`."""
    with JsonLines(to) as lines:
        while True:
            left = STEP if limit is None else min(STEP, limit - lines.written)
            page = await store.jobs.find(replace(request, limit=left))
            for job in page.jobs:
                lines.write(line_values(await _finished(store, request, job)))
            if page.cursor is None or lines.written == limit:
                return ExportResult(written=lines.written, cursor=page.cursor)
            request = replace(request, cursor=page.cursor)


async def _finished(store: Store, request: FindRequest, job: JobRecord) -> FinishedJob:
    if job.state is not State.DEAD:
        return finished_job(job, None)
    letter = await store.dead.get(DeadGetRequest(scope=request.scope, id=job.id))
    return finished_job(job, None if letter is None else letter.review)
