"""`fairlane workers`: who is there, and since when nobody was heard of."""

from __future__ import annotations

from typing import Any, Final

import click

from fairlane import Fairlane
from fairlane.cli.command import Command
from fairlane.cli.moments import ago, iso
from fairlane.cli.output import View
from fairlane.cli.session import Session, now_of
from fairlane.model.instants import Instant
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import LIVE_WITHIN, WorkersRequest, WorkerView

_ALL: Final = Scope.all()


@click.command(cls=Command)
@click.option("--live", is_flag=True, help="Only those that were heard of in the last 15 seconds.")
@click.pass_obj
def workers(session: Session, *, live: bool) -> None:
    """List workers, what they serve, when last heard of."""

    async def read(app: Fairlane) -> tuple[tuple[WorkerView, ...], Instant]:
        request = WorkersRequest(scope=_ALL, seen_within=LIVE_WITHIN if live else None)
        return await app.client.store.registry.workers(request), await now_of(app)

    found, now = session.run(read)
    session.output.table(found, _view(now), empty="No worker is known; start one with `fairlane worker`.")


def state_of(worker: WorkerView, now: Instant) -> str:
    """Name a worker's state as it last said it, or `silent` if that is too long ago."""
    return worker.state if now - worker.beat_at <= LIVE_WITHIN else "silent"


def _view(now: Instant) -> View[WorkerView]:
    return View(
        {
            "WORKER": lambda worker: worker.card.id,
            "STATE": lambda worker: state_of(worker, now),
            "QUEUES": lambda worker: ", ".join(worker.card.queues),
            "SLOTS": lambda worker: worker.card.slots,
            "RUNNING": lambda worker: worker.running,
            "SETTLED": lambda worker: worker.settled,
            "FAILED": lambda worker: worker.failed,
            "VERSION": lambda worker: worker.card.version,
            "STARTED": lambda worker: ago(worker.started_at, now),
            "HEARD OF": lambda worker: ago(worker.beat_at, now),
        },
        lambda worker: _as_json(worker, now),
    )


def _as_json(worker: WorkerView, now: Instant) -> dict[str, Any]:
    card = worker.card
    return {
        "id": card.id,
        "host": card.host,
        "pid": card.pid,
        "version": card.version,
        "state": state_of(worker, now),
        "queues": list(card.queues),
        "slots": card.slots,
        "lanes": [{"name": one.name, "slots": one.slots, "queues": list(one.queues)} for one in card.lanes],
        "running": worker.running,
        "settled": worker.settled,
        "failed": worker.failed,
        "tasks": [task.name for task in card.tasks],
        "labels": list(card.labels),
        "started_at": iso(worker.started_at),
        "beat_at": iso(worker.beat_at),
    }
