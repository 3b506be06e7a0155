"""Take one look at a live store: everything that the checks judge, read in a few bounded verbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlane import Fairlane, State
from fairlane.app.counting import count_all
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.layers import Kind
from fairlane.model.overload import LOOKED_AT
from fairlane.model.scope import Scope
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.jobs import Count, PeekRequest
from fairlane.store.contract.policies import ListRequest, PolicyView
from fairlane.store.contract.registry import (
    LIVE_WITHIN,
    TasksRequest,
    TaskView,
    WorkersRequest,
    WorkerView,
)
from fairlane.store.contract.request import PAGE_MOST, Request

ALL: Final = Scope.all()
QUEUES_MOST: Final = 100
"""More queues than anybody has; those beyond are not looked at one by one."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """A store at one moment. `now` is the store's clock, `wall` this machine's at the same time.

    `nexts` has the jobs that would be claimed next of each queue with ready jobs; none if all are held.
    """

    now: Instant
    wall: Instant
    inspection: Inspection
    workers: tuple[WorkerView, ...]
    tasks: tuple[TaskView, ...]
    counts: tuple[Count, ...]
    queues: tuple[PolicyView, ...]
    task_policies: tuple[PolicyView, ...]
    nexts: Mapping[str, tuple[JobRecord, ...]]

    def live(self) -> list[WorkerView]:
        """Give the workers that were heard of lately."""
        return [worker for worker in self.workers if self.now - worker.beat_at <= LIVE_WITHIN]

    def ready(self) -> dict[str, int]:
        """Count ready jobs by queue; queues without any are left out."""
        return ready_by_queue(self.counts)


def ready_by_queue(counts: tuple[Count, ...]) -> dict[str, int]:
    """Add up ready jobs by queue.

    >>> ready_by_queue((Count("a", "q", State.READY, 2), Count("b", "q", State.READY, 3)))
    {'q': 5}
    """
    found: dict[str, int] = {}
    for count in counts:
        if count.state is State.READY:
            found[count.queue] = found.get(count.queue, 0) + count.jobs
    return found


async def look(app: Fairlane) -> Sight:
    """Read all that the checks need. Changes nothing."""
    store, clock = app.client.store, app.client.clock
    await store.registry.pulse(Request(scope=ALL))  # opens the store, which is not to be counted as skew
    before = clock.wall()
    now = (await store.registry.pulse(Request(scope=ALL))).now
    wall = (before + clock.wall()) // 2
    counts = tuple([count async for count in count_all(store, ALL)])
    nexts: dict[str, tuple[JobRecord, ...]] = {}
    for queue in list(ready_by_queue(counts))[:QUEUES_MOST]:
        nexts[queue] = await store.jobs.peek(PeekRequest(scope=ALL, queue=queue, most=LOOKED_AT))
    return Sight(
        now=now,
        wall=wall,
        inspection=await store.upkeep.inspect(InspectRequest(scope=ALL)),
        workers=await store.registry.workers(WorkersRequest(scope=ALL)),
        tasks=await store.registry.tasks(TasksRequest(scope=ALL)),
        counts=counts,
        queues=await store.policies.list(ListRequest(scope=ALL, kind=Kind.QUEUE, limit=QUEUES_MOST)),
        task_policies=await store.policies.list(ListRequest(scope=ALL, kind=Kind.TASK, limit=PAGE_MOST)),
        nexts=nexts,
    )
