"""Find jobs by a query (S78): the store narrows, the query decides about every job that the store returns."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlane.app.admin.validation import FindFilters, find_filters_of, text_of
from fairlane.model.job import JobRecord
from fairlane.model.query.matching import Matcher, matcher
from fairlane.model.query.narrowing import Narrowing, narrow
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindReply, FindRequest, GetRequest
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, Request, to_cursor

_STEP: Final = 500
"""Jobs that one call reads. More would be faster for a rare match, and jobs come with their arguments."""


class Search(msgspec.Struct, frozen=True):
    """A query that was understood: what the store is asked for, and the test of each job it returns."""

    request: FindRequest
    matches: Matcher
    narrowing: Narrowing


async def search_of(store: Store, query: str, filters: FindFilters) -> Search:
    """Return the search for a query and filters, which must all hold; `QueryError` if it is not understood.

    Ages are counted from the store's clock.
    """
    text = text_of("query", query)
    narrowing = narrow(text)
    matcher(text, 0)  # all errors before the store is asked
    now = (await store.registry.status(Request(scope=Scope.all()))).now
    fields = find_filters_of(_combined(filters, narrowing))
    return Search(FindRequest(**fields), matcher(text, now), narrowing)


def _combined(filters: FindFilters, narrowing: Narrowing) -> FindFilters:
    """Return the filters, with those of the query where none is given: the query itself is tested anyway."""
    combined: FindFilters = {
        "tenant": narrowing.tenant,
        "queue": narrowing.queue,
        "task": narrowing.task,
        "state": narrowing.states or None,
        "correlation_id": narrowing.correlation_id,
        "created_by": narrowing.created_by,
        "tag": narrowing.tag,
        "parent": narrowing.parent_id,
    }
    given: Any = {name: value for name, value in filters.items() if value is not None}
    combined.update(given)
    return combined


async def search_page(store: Store, search: Search, limit: int, cursor: str | None) -> FindReply:
    """Return a page of the jobs that match, newest enqueue first. Reads at most `MAX_ROWS_READ` jobs.

    The page may be short or empty with a cursor, as every page may.
    """
    if search.narrowing.id is not None:
        return await _by_id(store, search)
    found: list[JobRecord] = []
    read, next_cursor = 0, cursor
    while True:
        step = limit if search.narrowing.is_complete else _STEP
        page = await store.jobs.find(msgspec.structs.replace(search.request, limit=step, cursor=next_cursor))
        for job in page.jobs:
            if search.matches(job):
                found.append(job)
            if len(found) == limit:
                is_last = job is page.jobs[-1]
                here = to_cursor(JobPosition(job.enqueued_at, job.id))
                return FindReply(tuple(found), page.cursor if is_last else here)
        read, next_cursor = read + max(len(page.jobs), 1), page.cursor
        if next_cursor is None or read >= MAX_ROWS_READ or not page.jobs:
            return FindReply(tuple(found), next_cursor)


async def _by_id(store: Store, search: Search) -> FindReply:
    """Return the job that the query names by its whole id, if it matches."""
    id = search.narrowing.id
    ids = () if id is None else (id,)
    records = await store.jobs.get(GetRequest(scope=search.request.scope, ids=ids))
    return FindReply(tuple(job for job in records.values() if search.matches(job)), None)
