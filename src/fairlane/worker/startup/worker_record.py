"""Describe a worker for the registry. Asks no store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version

from fairlane.app.fairlane import Fairlane
from fairlane.app.task import record
from fairlane.model.policy.declared import Lane
from fairlane.runtime.identity import host
from fairlane.store.contract.registry import LaneRecord, WorkerRecord


def describe_worker(app: Fairlane, worker: str, lanes: Sequence[Lane]) -> WorkerRecord:
    """Return who the worker is, what it serves, and which tasks it knows."""
    return WorkerRecord(
        id=worker,
        host=host(),
        pid=os.getpid(),
        version=version("fairlane"),
        queues=tuple(dict.fromkeys(queue for lane in lanes for queue in lane.shares())),
        slots=sum(lane.slots for lane in lanes),
        headroom=sum(lane.headroom_slots for lane in lanes),
        lanes=tuple(LaneRecord(lane.name, lane.slots, tuple(lane.shares())) for lane in lanes),
        labels=(f"app={app.settings.name}",),
        tasks=tuple(record.task_record_of(task, app.settings) for task in app.client.registry),
    )
