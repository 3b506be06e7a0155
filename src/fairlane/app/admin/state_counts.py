"""Count what a search finds by state, with a bounded look: for tabs that say "10,000+" instead of waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlane.app.admin.job_search import Search
from fairlane.app.admin.paging import count_all
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindRequest, GetRequest, TallyRequest

_STEP: Final = 500
_MAX_TESTED: Final = 2_000
"""Jobs that are tested one by one: they come with their arguments, so fewer of them than a store counts."""


class StateCounts(msgspec.Struct, frozen=True):
    """Numbers of jobs by state; every state is present. If not `is_complete`, there may be more of each."""

    states: Mapping[State, int]
    is_complete: bool

    def of(self, *states: State) -> int:
        """Return how many jobs are in one of these states; without any, in all."""
        return sum(self.states[state] for state in states or State)


async def state_counts(store: Store, search: Search) -> StateCounts:
    """Count the jobs that a search finds: by counters if they know, else among a bounded number of jobs."""
    request, narrowing = search.request, search.narrowing
    if narrowing.id is not None:
        found = await store.jobs.get(GetRequest(scope=request.scope, ids=(narrowing.id,)))
        return _counted([job for job in found.values() if search.matches(job)], is_complete=True)
    if not narrowing.is_complete or request.metadata:
        return await _tested(store, search)
    fields = {name: getattr(request, name) for name in TallyRequest.__struct_fields__ if name not in _PAGING}
    tally = TallyRequest(**fields)
    if tally == TallyRequest(scope=request.scope, queue=request.queue, states=request.states):
        return await _from_counters(store, request)
    page = await store.jobs.tally(tally)
    states = dict.fromkeys(State, 0)
    for one in page.tallies:
        states[one.state] += one.jobs
    return StateCounts(states, page.cursor is None)


_PAGING: Final = frozenset({"limit", "cursor"})


async def _from_counters(store: Store, request: FindRequest) -> StateCounts:
    states = dict.fromkeys(State, 0)
    async for one in count_all(store, request.scope, request.queue):
        if not request.states or one.state in request.states:
            states[one.state] += one.jobs
    return StateCounts(states, is_complete=True)


async def _tested(store: Store, search: Search) -> StateCounts:
    """Test the newest jobs one by one."""
    found: list[JobRecord] = []
    read, cursor = 0, None
    while read < _MAX_TESTED:
        page = await store.jobs.find(msgspec.structs.replace(search.request, limit=_STEP, cursor=cursor))
        found += [job for job in page.jobs if search.matches(job)]
        read, cursor = read + max(len(page.jobs), 1), page.cursor
        if cursor is None or not page.jobs:
            break
    return _counted(found, is_complete=cursor is None)


def _counted(jobs: list[JobRecord], *, is_complete: bool) -> StateCounts:
    states = dict.fromkeys(State, 0)
    for job in jobs:
        states[job.state] += 1
    return StateCounts(states, is_complete)
