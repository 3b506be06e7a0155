"""Compare the store's counters with a recount for some tenants. Reads only, within bounds.

The store may be in use: a tenant whose counters change during the recount is tried again a few times, then
skipped. A reported difference is therefore real.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

from fairlane.app.admin.paging import count_all
from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import StoreSnapshot
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import HOT, WAITING
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.upkeep import CensusRequest

MAX_TENANTS: Final = 20
"""How many tenants are recounted: those with the fewest jobs, so that it takes seconds."""

MAX_JOBS: Final = 5_000
"""A tenant with more unfinished jobs is not recounted."""

_MAX_CALLS: Final = 20
_TRIES: Final = 3

Counts: TypeAlias = Counter[str]
"""A tenant's unfinished jobs, counted by a description such as `ready in queue mail`."""


async def recount(store: Store, snapshot: StoreSnapshot) -> list[CheckResult]:
    """Recount the smallest tenants; report each difference."""
    sizes: Counter[str] = Counter()
    for count in snapshot.counts:
        if count.state in HOT:
            sizes[count.tenant] += count.jobs
    chosen = sorted(sizes, key=lambda tenant: (sizes[tenant], tenant))[:MAX_TENANTS]
    found: list[CheckResult] = []
    compared = 0
    for tenant in chosen:
        if sizes[tenant] <= MAX_JOBS:
            differences = await _differences(store, tenant)
            compared += differences is not None
            found += differences or []
    if not found:
        what = f"the counters of {compared} of {len(sizes)} tenants with unfinished jobs are correct"
        found.append(CheckResult("counters", "ok", what))
    return found


async def _differences(store: Store, tenant: str) -> list[CheckResult] | None:
    """Compare a tenant's counters with its jobs; None if they kept changing."""
    scope = Scope(tenant)
    for _ in range(_TRIES):
        before = await _counted(store, scope)
        jobs = await _unfinished(store, scope)
        after = await _counted(store, scope)
        if jobs is None:
            return None
        if before == after:
            return _compare(tenant, before, _there(jobs))
    return None


async def _counted(store: Store, scope: Scope) -> Counts:
    """Read both sets of counters of a tenant: those that are shown, and those that limits use."""
    counts = [count async for count in count_all(store, scope)]
    books = (await store.upkeep.census(CensusRequest(scope=scope))).tenants
    found = Counter(
        {f"{count.state.value} in queue {count.queue}": count.jobs for count in counts if count.state in HOT}
    )
    for book in books:
        found[f"waiting for the limits of queue {book.queue}"] = book.waiting
        found[f"running for the limits of queue {book.queue}"] = book.running
    return found


async def _unfinished(store: Store, scope: Scope) -> list[JobRecord] | None:
    """Read a tenant's unfinished jobs; None if that takes too many calls."""
    jobs: list[JobRecord] = []
    cursor: str | None = None
    for _ in range(_MAX_CALLS):
        request = FindRequest(scope=scope, states=HOT, limit=MAX_PAGE_SIZE, cursor=cursor)
        page = await store.jobs.find(request)
        jobs += page.jobs
        cursor = page.cursor
        if cursor is None:
            return jobs
    return None


def _there(jobs: list[JobRecord]) -> Counts:
    """Count jobs as both sets of counters should."""
    found: Counts = Counter()
    for job in jobs:
        found[f"{job.state.value} in queue {job.queue}"] += 1
        kind = "waiting" if job.state in WAITING else "running"
        found[f"{kind} for the limits of queue {job.queue}"] += 1
    return found


def _compare(tenant: str, counted: Counts, there: Counts) -> list[CheckResult]:
    advice = "This is a bug in Fairlane. Keep a copy of the store, and report it with this line."
    return [
        CheckResult(
            "counters",
            "bad",
            f"tenant {tenant}: counted {counted[one]} {one}, there are {there[one]}.",
            advice,
        )
        for one in sorted({*counted, *there})
        if counted[one] != there[one]
    ]
