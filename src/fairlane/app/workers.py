"""`app.workers`: who is there, what each serves, what it holds, when it was last heard of. Changes nothing.

Workers serve all tenants together, so from inside one tenant they cannot be looked at (S9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.model.instants import Instant, to_datetime
from fairlane.store.contract.registry import LIVE_WITHIN, WorkersRequest, WorkerView
from fairlane.store.contract.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLane:
    """A lane of a worker: how many slots it has, and for which queues."""

    name: str
    slots: int
    queues: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker process at one instant, as it last said of itself at `beat_at`.

    `state` is `starting`, `idle`, `busy`, `paused` or `draining`; `silent` if it was not heard of for 15
    seconds. `held` is how many jobs it holds, of the `slots` that it has; `settled` and `failed` count
    attempts since it started. `tasks` names those that it knows.
    """

    id: str
    host: str
    pid: int
    version: str
    state: str
    queues: Sequence[str]
    slots: int
    lanes: Sequence[WorkerLane]
    held: int
    settled: int
    failed: int
    tasks: Sequence[str]
    labels: Sequence[str]
    started_at: datetime
    beat_at: datetime

    @property
    def is_live(self) -> bool:
        """Whether it was heard of in the last 15 seconds."""
        return self.state != "silent"


class Workers:
    """The workers of a store. Each method has an async twin with an `a` in front."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, *, live: bool = False) -> Sequence[Worker]:
        """Return all workers by id, or those alone that were heard of in the last 15 seconds.

        One that left in good order is not there any more; one that died is, silent, until it is forgotten.
        """
        return self._client.portal.run(self.alist(live=live))

    async def alist(self, *, live: bool = False) -> Sequence[Worker]:
        """Return all workers by id, or those alone that were heard of lately; see `list`."""
        scope = scope_of_all("workers serve all tenants")
        registry = self._client.store.registry
        request = WorkersRequest(scope=scope, seen_within=LIVE_WITHIN if live else None)
        found = await registry.workers(request)
        now = (await registry.pulse(Request(scope=scope))).now
        return tuple(worker_of(view, now) for view in found)


def worker_of(view: WorkerView, now: Instant) -> Worker:
    """Show a worker, as seen at an instant of the store."""
    card = view.card
    return Worker(
        id=card.id,
        host=card.host,
        pid=card.pid,
        version=card.version,
        state=view.state if now - view.beat_at <= LIVE_WITHIN else "silent",
        queues=card.queues,
        slots=card.slots,
        lanes=tuple(WorkerLane(name=lane.name, slots=lane.slots, queues=lane.queues) for lane in card.lanes),
        held=view.running,
        settled=view.settled,
        failed=view.failed,
        tasks=tuple(task.name for task in card.tasks),
        labels=card.labels,
        started_at=to_datetime(view.started_at),
        beat_at=to_datetime(view.beat_at),
    )
