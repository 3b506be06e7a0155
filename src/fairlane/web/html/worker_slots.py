"""Lay out what runs in a worker as the slots of its lanes, for drawing. Asks no store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from fairlane.app.admin.workers import Worker, WorkerLane
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.job import JobRecord

MOST_DRAWN: Final = 100
"""Slots of one lane that are drawn one by one; of more, only numbers are shown."""

_LATE_PARTS: Final = 5
"""A job is late when at most this part of its timeout is left: the last fifth."""


class RunningJob(msgspec.Struct, frozen=True):
    """A job that a worker runs, in which lane, since when, and whether its timeout is close."""

    job: JobRecord
    lane: str
    started_at: datetime
    is_late: bool


class LaneSlots(msgspec.Struct, frozen=True):
    """A lane and the jobs in it. More jobs than slots: some are claimed ahead and wait for a slot (S68)."""

    name: str
    queues: Sequence[str]
    slots: int
    jobs: Sequence[RunningJob]

    @property
    def busy(self) -> int:
        """How many of its slots have a job."""
        return min(self.slots, len(self.jobs))

    @property
    def is_drawn(self) -> bool:
        """Whether its slots are few enough to draw each of them."""
        return self.slots <= MOST_DRAWN


class WholeLane(msgspec.Struct, frozen=True):
    """A lane of all workers that have one of this name."""

    name: str
    queues: Sequence[str]
    workers: int
    slots: int
    busy: int


def lane_slots(worker: Worker, jobs: Iterable[JobRecord], now: Instant) -> Sequence[LaneSlots]:
    """Return the lanes of a worker with the jobs that it runs, oldest first.

    A job is in the first lane that serves its queue. One of a queue that no lane serves, as of a worker that
    reports no lanes, is in a lane without a name.
    """
    lanes = worker.lanes or (WorkerLane(name="", slots=worker.slots, queues=worker.queues),)
    home = {queue: lane.name for lane in reversed(lanes) for queue in lane.queues}
    running = [
        RunningJob(job, home.get(job.queue, lanes[0].name), to_datetime(job.started_at), _is_late(job, now))
        for job in jobs
        if job.started_at is not None
    ]
    running.sort(key=lambda one: one.started_at)
    return [
        LaneSlots(lane.name, lane.queues, lane.slots, [one for one in running if one.lane == lane.name])
        for lane in lanes
    ]


def lanes_of_all(lanes: Iterable[LaneSlots]) -> Sequence[WholeLane]:
    """Add up the lanes of several workers by name.

    >>> lanes_of_all([LaneSlots("main", ("a",), 4, ()), LaneSlots("main", ("b",), 2, ())])
    [WholeLane(name='main', queues=['a', 'b'], workers=2, slots=6, busy=0)]
    """
    found: dict[str, list[LaneSlots]] = {}
    for lane in lanes:
        found.setdefault(lane.name, []).append(lane)
    return [
        WholeLane(
            name=name,
            queues=list(dict.fromkeys(queue for one in same for queue in one.queues)),
            workers=len(same),
            slots=sum(one.slots for one in same),
            busy=sum(one.busy for one in same),
        )
        for name, same in sorted(found.items())
    ]


def _is_late(job: JobRecord, now: Instant) -> bool:
    if job.timeout is None or job.started_at is None:
        return False
    return job.started_at + job.timeout - now <= job.timeout // _LATE_PARTS
