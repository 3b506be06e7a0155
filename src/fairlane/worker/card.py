"""How a worker introduces itself to the registry. Asks no store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version

from fairlane.app import cards
from fairlane.app.fairlane import Fairlane
from fairlane.model.policy import Lane
from fairlane.runtime.identity import host
from fairlane.store.contract.registry import LaneCard, WorkerCard


def card_of(app: Fairlane, worker: str, lanes: Sequence[Lane]) -> WorkerCard:
    """Say who the worker is, what it serves, and which tasks it knows."""
    return WorkerCard(
        id=worker,
        host=host(),
        pid=os.getpid(),
        version=version("fairlane"),
        queues=tuple(dict.fromkeys(queue for lane in lanes for queue in lane.shares())),
        slots=sum(lane.slots for lane in lanes),
        headroom=sum(lane.headroom_slots for lane in lanes),
        lanes=tuple(LaneCard(lane.name, lane.slots, tuple(lane.shares())) for lane in lanes),
        labels=(f"app={app.settings.name}",),
        tasks=tuple(cards.card_of(task, app.settings) for task in app.client.registry),
    )
