"""Take a snapshot of a live store: everything the checks need, read with a few bounded verbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlane.app.admin.paging import count_all
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.scheduling.overload import LOOKED_AT
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.jobs import Count, PeekRequest
from fairlane.store.contract.policies import ListRequest, PolicyView
from fairlane.store.contract.registry import (
    LIVE_WITHIN,
    DutiesReply,
    DutiesRequest,
    TasksRequest,
    TaskView,
    WorkersRequest,
    WorkerView,
)
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request

ALL: Final = Scope.all()
LEAD: Final = "duties"
"""The lead of the duties."""

MAX_QUEUES: Final = 100
"""More queues than anybody has; those beyond are not read."""


class StoreSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A store at one moment. `now` is the store's clock, `wall` this machine's clock at the same time.

    `next_jobs` has the jobs that would be claimed next, for each queue with ready jobs; none if all are held
    back. `unarchived` is how many jobs were removed and are not in the archive yet.
    """

    now: Instant
    wall: Instant
    inspection: Inspection
    workers: tuple[WorkerView, ...]
    tasks: tuple[TaskView, ...]
    counts: tuple[Count, ...]
    queues: tuple[PolicyView, ...]
    task_policies: tuple[PolicyView, ...]
    next_jobs: Mapping[str, tuple[JobRecord, ...]]
    duties: DutiesReply = DutiesReply()
    unarchived: int = 0

    def live(self) -> list[WorkerView]:
        """Return the workers with a recent heartbeat."""
        return [worker for worker in self.workers if self.now - worker.beat_at <= LIVE_WITHIN]

    def ready(self) -> dict[str, int]:
        """Count ready jobs by queue; queues without any are left out."""
        return ready_by_queue(self.counts)


def ready_by_queue(counts: tuple[Count, ...]) -> dict[str, int]:
    """Count ready jobs by queue.

    >>> ready_by_queue((Count("a", "q", State.READY, 2), Count("b", "q", State.READY, 3)))
    {'q': 5}
    """
    found: dict[str, int] = {}
    for count in counts:
        if count.state is State.READY:
            found[count.queue] = found.get(count.queue, 0) + count.jobs
    return found


async def take_snapshot(store: Store, clock: Clock, *, checks_files: bool = True) -> StoreSnapshot:
    """Read everything the checks need. Changes nothing. `checks_files`: also look for damage in them."""
    inspection = InspectRequest(scope=ALL) if checks_files else InspectRequest(scope=ALL, at_most=0)
    await store.registry.status(Request(scope=ALL))  # connects first: that time must not count as skew
    before = clock.wall()
    now = (await store.registry.status(Request(scope=ALL))).now
    wall = (before + clock.wall()) // 2
    counts = tuple([count async for count in count_all(store, ALL)])
    next_jobs: dict[str, tuple[JobRecord, ...]] = {}
    for queue in list(ready_by_queue(counts))[:MAX_QUEUES]:
        next_jobs[queue] = await store.jobs.peek(PeekRequest(scope=ALL, queue=queue, limit=LOOKED_AT))
    return StoreSnapshot(
        now=now,
        wall=wall,
        inspection=await store.upkeep.inspect(inspection),
        workers=await store.registry.workers(WorkersRequest(scope=ALL)),
        tasks=await store.registry.tasks(TasksRequest(scope=ALL)),
        counts=counts,
        queues=await store.policies.list(ListRequest(scope=ALL, kind=SubjectKind.QUEUE, limit=MAX_QUEUES)),
        task_policies=await store.policies.list(
            ListRequest(scope=ALL, kind=SubjectKind.TASK, limit=MAX_PAGE_SIZE)
        ),
        next_jobs=next_jobs,
        unarchived=await store.history.waiting(Request(scope=ALL)),
        duties=await store.registry.duties(DutiesRequest(scope=ALL, name=LEAD)),
    )
