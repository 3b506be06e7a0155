"""`app.workers`: the worker processes, what they serve, what they run, their last heartbeat. Read-only.

All tenants share the workers, so from inside a tenant they cannot be read (S9).
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
    """A lane of a worker: its slots, and the queues it serves."""

    name: str
    slots: int
    queues: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker process as of its last heartbeat, at `beat_at`.

    `state` is `starting`, `idle`, `busy`, `paused` or `draining`, or `silent` after 15 seconds without a
    heartbeat. `held` counts the jobs it runs, out of `slots`. `settled` and `failed` count attempts since it
    started. `tasks` names the tasks that it can run.
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
        """Whether it sent a heartbeat in the last 15 seconds."""
        return self.state != "silent"


class Workers:
    """The workers of a store. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, *, live: bool = False) -> Sequence[Worker]:
        """Return all workers by id; with `live`, only those with a heartbeat in the last 15 seconds.

        A worker that stopped in good order is not listed. One that died is listed as silent until its record
        is deleted.
        """
        return self._client.portal.run(self.alist(live=live))

    async def alist(self, *, live: bool = False) -> Sequence[Worker]:
        """Return all workers by id, or only the live ones; see `list`."""
        scope = scope_of_all("workers serve all tenants")
        registry = self._client.store.registry
        request = WorkersRequest(scope=scope, seen_within=LIVE_WITHIN if live else None)
        found = await registry.workers(request)
        now = (await registry.status(Request(scope=scope))).now
        return tuple(worker_view(view, now) for view in found)


def worker_view(view: WorkerView, now: Instant) -> Worker:
    """Return the view of a worker at an instant of the store's clock."""
    record = view.record
    return Worker(
        id=record.id,
        host=record.host,
        pid=record.pid,
        version=record.version,
        state=view.state if now - view.beat_at <= LIVE_WITHIN else "silent",
        queues=record.queues,
        slots=record.slots,
        lanes=tuple(
            WorkerLane(name=lane.name, slots=lane.slots, queues=lane.queues) for lane in record.lanes
        ),
        held=view.running,
        settled=view.settled,
        failed=view.failed,
        tasks=tuple(task.name for task in record.tasks),
        labels=record.labels,
        started_at=to_datetime(view.started_at),
        beat_at=to_datetime(view.beat_at),
    )
