"""`fairlane workers`: the workers, what they serve, and when each sent its last heartbeat."""

from __future__ import annotations

from typing import Any, Final

import click

from fairlane import Fairlane
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import View
from fairlane.cli.render.times import ago, iso
from fairlane.model.instants import Instant
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import LIVE_WITHIN, WorkersRequest, WorkerView

_ALL: Final = Scope.all()


@click.command(cls=Command)
@click.option("--live", is_flag=True, help="Only workers with a heartbeat in the last 15 seconds.")
@click.pass_obj
def workers(invocation: Invocation, *, live: bool) -> None:
    """List workers, their queues and last heartbeats."""

    async def read(app: Fairlane) -> tuple[tuple[WorkerView, ...], Instant]:
        request = WorkersRequest(scope=_ALL, seen_within=LIVE_WITHIN if live else None)
        return await app.client.store.registry.workers(request), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(found, _view(now), empty="No worker is known; start one with `fairlane worker`.")


def state_of(worker: WorkerView, now: Instant) -> str:
    """Return the state that a worker last reported, or `silent` if that is too long ago."""
    return worker.state if now - worker.beat_at <= LIVE_WITHIN else "silent"


def _view(now: Instant) -> View[WorkerView]:
    return View(
        {
            "WORKER": lambda worker: worker.record.id,
            "STATE": lambda worker: state_of(worker, now),
            "QUEUES": lambda worker: ", ".join(worker.record.queues),
            "SLOTS": lambda worker: worker.record.slots,
            "RUNNING": lambda worker: worker.running,
            "SETTLED": lambda worker: worker.settled,
            "FAILED": lambda worker: worker.failed,
            "VERSION": lambda worker: worker.record.version,
            "STARTED": lambda worker: ago(worker.started_at, now),
            "HEARTBEAT": lambda worker: ago(worker.beat_at, now),
        },
        lambda worker: _as_json(worker, now),
    )


def _as_json(worker: WorkerView, now: Instant) -> dict[str, Any]:
    record = worker.record
    return {
        "id": record.id,
        "host": record.host,
        "pid": record.pid,
        "version": record.version,
        "state": state_of(worker, now),
        "queues": list(record.queues),
        "slots": record.slots,
        "lanes": [{"name": one.name, "slots": one.slots, "queues": list(one.queues)} for one in record.lanes],
        "running": worker.running,
        "settled": worker.settled,
        "failed": worker.failed,
        "tasks": [task.name for task in record.tasks],
        "labels": list(record.labels),
        "started_at": iso(worker.started_at),
        "beat_at": iso(worker.beat_at),
    }
