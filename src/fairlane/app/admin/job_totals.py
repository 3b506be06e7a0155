"""How many jobs match a search: exact as far as a bounded look goes, else estimated, and it says which.

Plain counters answer for tenant, queue and state, however many jobs there are. For everything else at most
10,000 jobs are looked at (S51).
"""

from __future__ import annotations

import msgspec

from fairlane.app.admin.job_search import Search, search_page
from fairlane.app.admin.paging import count_all
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindRequest, TallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ

_STEP = 500


class Total(msgspec.Struct, frozen=True):
    """How many match: counted, or estimated from the 10,000 jobs that were looked at."""

    number: int
    is_exact: bool


async def total_of(store: Store, search: Search) -> Total:
    """Return how many jobs match a search."""
    if search.narrowing.id is not None:
        return Total(len((await search_page(store, search, 1, None)).jobs), is_exact=True)
    if search.narrowing.is_complete and not search.request.metadata:
        return await _filtered(store, search.request)
    return await _looked_at(store, search)


async def _filtered(store: Store, request: FindRequest) -> Total:
    """Count by filters that the store compares itself."""
    fields = {
        name: getattr(request, name)
        for name in TallyRequest.__struct_fields__
        if name not in {"limit", "cursor"}
    }
    if TallyRequest(**fields) == TallyRequest(
        scope=request.scope, queue=request.queue, states=request.states
    ):
        return Total(await _counted(store, request), is_exact=True)
    page = await store.jobs.tally(TallyRequest(**fields, limit=MAX_ROWS_READ))
    found = sum(one.jobs for one in page.tallies)
    if page.cursor is None:
        return Total(found, is_exact=True)
    return estimate(found, page.looked_at, await _counted(store, request))


async def _counted(store: Store, request: FindRequest) -> int:
    counts = count_all(store, request.scope, request.queue)
    return sum([one.jobs async for one in counts if not request.states or one.state in request.states])


async def _looked_at(store: Store, search: Search) -> Total:
    """Test the newest jobs one by one."""
    found = read = 0
    cursor: str | None = None
    while read < MAX_ROWS_READ:
        page = await store.jobs.find(msgspec.structs.replace(search.request, limit=_STEP, cursor=cursor))
        found += sum(map(search.matches, page.jobs))
        read, cursor = read + len(page.jobs), page.cursor
        if cursor is None:
            return Total(found, is_exact=True)
        if not page.jobs:  # one call has read as many as it may, and the store found nothing for us
            break
    plain = msgspec.structs.replace(search.request, metadata=())
    return estimate(found, read, (await _filtered(store, plain)).number)


def estimate(found: int, looked_at: int, among: int) -> Total:
    """Return an estimate from a part: as many of the others match.

    >>> estimate(50, 10_000, 30_000), estimate(0, 0, 0)
    (Total(number=150, is_exact=False), Total(number=0, is_exact=False))
    """
    share = round(found * among / looked_at) if looked_at else 0
    return Total(max(found, share), is_exact=False)
