"""`fairlane workers`: the workers, what they serve and do, and orders to one of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from fairlane import Fairlane, SlotStatus, WorkerStatus
from fairlane.app.admin.workers import ASK_TIMEOUT
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.cli.shared_options import note
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, iso
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import LIVE_WITHIN, WorkersRequest, WorkerView

_ALL: Final = Scope.all()
_LIVE: Final = "fairlane.workers.live"


_live = click.option("--live", is_flag=True, help="Only workers with a heartbeat in the last 15 seconds.")
_id = click.argument("id", metavar="ID")
_timeout = click.option(
    "--timeout",
    type=click.FloatRange(1, 600),
    default=ASK_TIMEOUT,
    show_default=True,
    help="Seconds to wait for the worker's answer.",
)


@click.group(cls=Group, lists=True)
@_live
@click.pass_context
def workers(context: click.Context, *, live: bool) -> None:
    """Show workers; look into one, pause it or stop it. Default: list.

    ID is a worker's id, or its beginning if no other begins so.
    """
    context.meta[_LIVE] = live


@workers.command("list", cls=Command)
@_live
@click.pass_context
def list_workers(context: click.Context, *, live: bool = False) -> None:
    """List workers, their queues and last heartbeats."""
    invocation: Invocation = context.obj
    live = live or context.meta.get(_LIVE, False)

    async def read(app: Fairlane) -> tuple[tuple[WorkerView, ...], Instant]:
        request = WorkersRequest(scope=_ALL, seen_within=LIVE_WITHIN if live else None)
        return await app.client.store.registry.workers(request), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(found, _view(now), empty="No worker is known; start one with `fairlane worker`.")


@workers.command(cls=Command)
@_id
@_timeout
@click.pass_obj
def status(invocation: Invocation, *, id: str, timeout: float) -> None:
    """Show what a worker does now: each slot with tenant, job and age, its lanes, its memory."""
    _show(invocation, invocation.run(lambda app: app.workers.astatus(id, at_most=timeout)))


@workers.command(cls=Command)
@_id
@click.option("--memory", is_flag=True, help="Also show what holds memory.")
@_timeout
@click.pass_obj
def dump(invocation: Invocation, *, id: str, memory: bool, timeout: float) -> None:
    """Show the stacks of all threads and tasks of a worker, with tenant and job."""
    text = invocation.run(lambda app: app.workers.adump(id, memory=memory, at_most=timeout))
    invocation.output.answer(text, {"dump": text})


@workers.command(cls=Command)
@_id
@_timeout
@note
@click.pass_obj
def pause(invocation: Invocation, *, id: str, timeout: float, note: str) -> None:
    """Let a worker claim nothing until it is resumed or ends; running jobs go on."""
    _told(
        invocation, invocation.run(lambda app: app.workers.apause(id, at_most=timeout, note=note)), "pauses"
    )


@workers.command(cls=Command)
@_id
@_timeout
@note
@click.pass_obj
def resume(invocation: Invocation, *, id: str, timeout: float, note: str) -> None:
    """Let a paused worker claim again."""
    _told(
        invocation,
        invocation.run(lambda app: app.workers.aresume(id, at_most=timeout, note=note)),
        "claims again",
    )


@workers.command(cls=Command)
@_id
@_timeout
@note
@click.pass_obj
def stop(invocation: Invocation, *, id: str, timeout: float, note: str) -> None:
    """Let a worker stop as after SIGTERM; its supervisor, if it has one, may start another."""
    _told(invocation, invocation.run(lambda app: app.workers.astop(id, at_most=timeout, note=note)), "stops")


def _told(invocation: Invocation, status: WorkerStatus, what: str) -> None:
    invocation.output.answer(f"Worker {status.id} {what}; {len(status.slots)} jobs run.", asdict(status))


def _show(invocation: Invocation, status: WorkerStatus) -> None:
    if invocation.is_json:
        invocation.output.record({}, asdict(status))
        return
    lag = "blocked by a handler" if status.loop_lag is None else f"{status.loop_lag:.3f} s"
    lanes = [
        f"{lane.name}: {lane.running} of {lane.slots} slots busy, {lane.waiting} claimed jobs wait, "
        f"{lane.pending} ended and not settled yet"
        for lane in status.lanes
    ]
    invocation.output.record(
        {
            "worker": status.id,
            "state": status.state,
            "lanes": "\n".join(lanes),
            "settled": status.settled,
            "failed": status.failed,
            "abandoned": status.abandoned or None,
            "loop lag": lag,
            "memory": None if status.memory is None else f"{status.memory / 1e6:.0f} MB",
            "cpu": None if status.cpu is None else f"{status.cpu:.0%} of a processor",
        },
        {},
    )
    invocation.output.table(status.slots, _SLOTS, empty="No job runs.")


_SLOTS: Final = TableView[SlotStatus](
    {
        "LANE": lambda slot: slot.lane,
        "TENANT": lambda slot: slot.tenant,
        "TASK": lambda slot: slot.task,
        "JOB": lambda slot: slot.job,
        "ATTEMPT": lambda slot: slot.attempt,
        "SECONDS": lambda slot: f"{slot.seconds:.1f}",
        "RUNS IN": lambda slot: slot.runs_in,
        "STOPPING": lambda slot: slot.stopping,
    },
    asdict,
)


def state_of(worker: WorkerView, now: Instant) -> str:
    """Return the state that a worker last reported, or `silent` if that is too long ago."""
    return worker.state if now - worker.beat_at <= LIVE_WITHIN else "silent"


def _view(now: Instant) -> TableView[WorkerView]:
    return TableView(
        {
            "WORKER": lambda worker: worker.record.id,
            "STATE": lambda worker: state_of(worker, now),
            "QUEUES": lambda worker: ", ".join(worker.record.queues),
            "SLOTS": lambda worker: worker.record.slots,
            "RUNNING": lambda worker: worker.running,
            "SETTLED": lambda worker: worker.settled,
            "FAILED": lambda worker: worker.failed,
            "MEMORY": lambda worker: None if worker.memory is None else f"{worker.memory / 1e6:.0f} MB",
            "CPU": lambda worker: None if worker.cpu is None else f"{worker.cpu:.0%}",
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
        "memory": worker.memory,
        "cpu": worker.cpu,
    }
