"""How many dead letters match: exact as far as a bounded look goes, else estimated, and it says which."""

from __future__ import annotations

import msgspec

from fairlane.app.admin.job_totals import Total, estimate
from fairlane.app.dead.causes import count_reviews
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadTallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ


async def dead_total_of(store: Store, request: DeadTallyRequest) -> Total:
    """Return how many dead letters match; counters answer for tenant, queue and review alone."""
    plain = DeadTallyRequest(scope=request.scope, queue=request.queue, review=request.review)
    if msgspec.structs.replace(request, limit=plain.limit, cursor=None) == plain:
        return Total(sum((await count_reviews(store, plain)).values()), is_exact=True)
    page = await store.dead.tally(msgspec.structs.replace(request, limit=MAX_ROWS_READ))
    found = sum(one.letters for one in page.tallies)
    if page.cursor is None:
        return Total(found, is_exact=True)
    return estimate(found, page.looked_at, sum((await count_reviews(store, plain)).values()))
