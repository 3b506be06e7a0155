"""`fairlane tasks`: the tasks that workers have published, and what holds for each."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from fairlane import Fairlane, PublishedTask
from fairlane.cli import kinds
from fairlane.cli.command import Command, Group
from fairlane.cli.holds import drain_one, draining
from fairlane.cli.moments import ago, iso
from fairlane.cli.output import Cell, View
from fairlane.cli.queues import held_word, hold_fields, hold_json, rate_text
from fairlane.cli.session import Session, now_of
from fairlane.model.instants import Instant, to_instant
from fairlane.model.layers import Kind


@click.group(cls=Group, lists=True)
def tasks() -> None:
    """Look at tasks: list, show, drain. Without one of these: list."""


@tasks.command("list", cls=Command)
@click.pass_obj
def list_tasks(session: Session) -> None:
    """List the tasks that workers have published, and those that anything is set for."""

    async def read(app: Fairlane) -> tuple[list[PublishedTask], Instant]:
        return list(await app.tasks.alist()), await now_of(app)

    found, now = session.run(read)
    session.output.table(found, _view(now), empty="No task is known; a worker publishes its own.")


@tasks.command(cls=Command)
@click.argument("name", type=kinds.TASK)
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show one task: where its jobs go, its rate, its gate, what was set above them, pauses."""

    async def read(app: Fairlane) -> tuple[PublishedTask, Instant]:
        return await app.tasks.aget(name), await now_of(app)

    task, now = session.run(read)
    fields: dict[str, Cell] = {
        "task": task.name,
        "queue": task.queue,
        "version": task.version,
        "aliases": ", ".join(task.aliases),
        "timeout": None if task.timeout is None else f"{task.timeout:g}s",
        "attempts": task.max_attempts,
        "rate": rate_text(task.rate),
        "gate": task.gate,
        "published": _seen(task, now),
        **hold_fields(task.paused, task.closed, task.override, now),
    }
    session.output.record(fields, _as_json(task))


@tasks.command(cls=Command)
@click.argument("name", type=kinds.TASK)
@draining
@click.pass_obj
def drain(session: Session, /, name: str, **said: Any) -> None:
    """Pause or close a task, and wait until nothing of it runs.

    It stays paused or closed afterwards, also when the wait is given up (exit code 1) or interrupted.
    """
    drain_one(session, Kind.TASK, name, **said)


def _seen(task: PublishedTask, now: Instant) -> str:
    return "never" if task.seen_at is None else ago(to_instant(task.seen_at), now)


def _view(now: Instant) -> View[PublishedTask]:
    return View(
        {
            "TASK": lambda task: task.name,
            "QUEUE": lambda task: task.queue,
            "VERSION": lambda task: task.version,
            "RATE": lambda task: rate_text(task.rate),
            "GATE": lambda task: task.gate,
            "HELD": lambda task: held_word(task.paused, task.closed),
            "PUBLISHED": lambda task: _seen(task, now),
        },
        _as_json,
    )


def _as_json(task: PublishedTask) -> dict[str, Any]:
    return {
        "name": task.name,
        "queue": task.queue,
        "version": task.version,
        "aliases": list(task.aliases),
        "timeout": task.timeout,
        "max_attempts": task.max_attempts,
        "rate": msgspec.to_builtins(task.rate),
        "gate": task.gate,
        "seen_at": iso(task.seen_at),
        **hold_json(task.paused, task.closed, task.override),
    }
