"""Which lanes of live workers serve a queue. Asks no store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.app.admin.workers import Worker


class QueueLane(msgspec.Struct, frozen=True):
    """A lane that serves a queue: its slots over all live workers, and how many these are."""

    name: str
    slots: int
    workers: int


def lanes_of(queue: str, workers: Sequence[Worker]) -> Sequence[QueueLane]:
    """Return the lanes of live workers that serve a queue, by name."""
    found: dict[str, tuple[int, int]] = {}
    for worker in workers:
        for lane in worker.lanes:
            if worker.is_live and queue in lane.queues:
                slots, count = found.get(lane.name, (0, 0))
                found[lane.name] = (slots + lane.slots, count + 1)
    return [QueueLane(name, slots, count) for name, (slots, count) in sorted(found.items())]
