"""Compare the store's counters with a recount of some of its tenants. Reads only, and stops early.

The store is in use meanwhile: a tenant whose counts change while it is read is looked at again, and given up
after a few tries. So a difference that is reported was there while nothing moved.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

from fairlane import Fairlane
from fairlane.app.counting import count_all
from fairlane.cli.diagnosis.finding import Finding
from fairlane.cli.diagnosis.sight import Sight
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import HOT, WAITING
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.request import PAGE_MOST
from fairlane.store.contract.upkeep import CensusRequest

TENANTS_MOST: Final = 20
"""How many tenants are recounted: those with the fewest jobs, so that a look takes seconds."""

JOBS_MOST: Final = 5_000
"""A tenant with more unfinished jobs is not recounted."""

_CALLS_MOST: Final = 20
_TRIES: Final = 3

Counts: TypeAlias = Counter[str]
"""How many unfinished jobs of one tenant there are of each kind, in words."""


async def recount(app: Fairlane, sight: Sight) -> list[Finding]:
    """Recount the smallest tenants; each difference is a finding."""
    store = app.client.store
    sizes: Counter[str] = Counter()
    for count in sight.counts:
        if count.state in HOT:
            sizes[count.tenant] += count.jobs
    chosen = sorted(sizes, key=lambda tenant: (sizes[tenant], tenant))[:TENANTS_MOST]
    found: list[Finding] = []
    compared = 0
    for tenant in chosen:
        if sizes[tenant] <= JOBS_MOST:
            differences = await _differences(store, tenant)
            compared += differences is not None
            found += differences or []
    if not found:
        what = f"the counters of {compared} of {len(sizes)} tenants with unfinished jobs are right"
        found.append(Finding("counters", "ok", what))
    return found


async def _differences(store: Store, tenant: str) -> list[Finding] | None:
    """Compare what is counted of a tenant with what is there; None if it did not stand still."""
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
    """Read both books of a tenant: what is shown, and what limits are compared with."""
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
    for _ in range(_CALLS_MOST):
        request = FindRequest(scope=scope, states=HOT, limit=PAGE_MOST, cursor=cursor)
        page = await store.jobs.find(request)
        jobs += page.jobs
        cursor = page.cursor
        if cursor is None:
            return jobs
    return None


def _there(jobs: list[JobRecord]) -> Counts:
    """Count jobs as both books should."""
    found: Counts = Counter()
    for job in jobs:
        found[f"{job.state.value} in queue {job.queue}"] += 1
        word = "waiting" if job.state in WAITING else "running"
        found[f"{word} for the limits of queue {job.queue}"] += 1
    return found


def _compare(tenant: str, counted: Counts, there: Counts) -> list[Finding]:
    advice = "This is a defect in Fairlane. Keep a copy of the file, and report it with this line."
    return [
        Finding(
            "counters",
            "bad",
            f"tenant {tenant}: counted {counted[one]} {one}, there are {there[one]}.",
            advice,
        )
        for one in sorted({*counted, *there})
        if counted[one] != there[one]
    ]
