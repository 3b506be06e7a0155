"""Trace a job: what led to it and what came of it, by parents and by correlation id (S22)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from fairlane.app.client import Client
from fairlane.app.job import Job
from fairlane.model.job import JobRecord
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import FindRequest, GetRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE

MAX_TRACED: Final = MAX_PAGE_SIZE
"""How many jobs of one correlation id are read."""

_MAX_ANCESTORS: Final = 100


@dataclass(frozen=True, slots=True)
class TracedJob:
    """A job in a trace. `depth` is how many of its ancestors are in the trace."""

    job: Job[Any]
    depth: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The ancestors of a job and all jobs with their correlation ids, each behind its parent.

    Among jobs with the same parent the first enqueued comes first. `is_complete` is False if there are more
    jobs than were read.
    """

    id: UUID
    jobs: Sequence[TracedJob]
    is_complete: bool

    def __iter__(self) -> Iterator[TracedJob]:
        return iter(self.jobs)


async def trace_of(client: Client, scope: Scope, id: UUID) -> Trace:
    """Return the trace of a job; `JobNotFound` if the scope does not have it."""
    record = await client.aget(id, scope)
    found = {record.id: record}
    ancestor: JobRecord | None = record
    for _ in range(_MAX_ANCESTORS):
        if ancestor is None or ancestor.parent_id is None or ancestor.parent_id in found:
            break
        parents = await client.store.jobs.get(GetRequest(scope=scope, ids=(ancestor.parent_id,)))
        ancestor = parents.get(ancestor.parent_id)
        if ancestor is not None:
            found[ancestor.id] = ancestor
    is_complete = True
    for correlation_id in dict.fromkeys(one.correlation_id for one in list(found.values())):
        request = FindRequest(scope=scope, correlation_id=correlation_id, limit=MAX_TRACED)
        page = await client.store.jobs.find(request)
        is_complete = is_complete and page.cursor is None
        found |= {one.id: one for one in page.jobs}
    return Trace(
        id, tuple(TracedJob(client.show(one), depth) for one, depth in _in_order(found)), is_complete
    )


def _in_order(found: Mapping[UUID, JobRecord]) -> Iterator[tuple[JobRecord, int]]:
    """Return each job behind its parent, with its depth."""
    children: dict[UUID | None, list[JobRecord]] = {}
    for job in found.values():
        parent = job.parent_id if job.parent_id in found and job.parent_id != job.id else None
        children.setdefault(parent, []).append(job)
    for jobs in children.values():
        jobs.sort(key=lambda job: (job.enqueued_at, job.id), reverse=True)
    ahead = [(job, 0) for job in children.get(None, ())]
    told: set[UUID] = set()
    while ahead:
        job, depth = ahead.pop()
        told.add(job.id)
        yield job, depth
        ahead += [(child, depth + 1) for child in children.get(job.id, ())]
    # Parents are not checked (S22): jobs that name one another in a circle have no first one.
    for job in found.values():
        if job.id not in told:
            yield job, 0
