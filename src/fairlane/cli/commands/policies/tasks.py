"""`fairlane tasks`: the tasks that workers have published, and their limits."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from fairlane import Fairlane, PublishedTask
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.policies.pause import drain_options, drain_subject
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell, View
from fairlane.cli.render.policies import hold_fields, hold_json, hold_state, rate_text
from fairlane.cli.render.times import ago, iso
from fairlane.model.instants import Instant, to_instant
from fairlane.model.policy.overrides import SubjectKind


@click.group(cls=Group, lists=True)
def tasks() -> None:
    """Show and drain tasks: list, show, drain. Default: list."""


@tasks.command("list", cls=Command)
@click.pass_obj
def list_tasks(invocation: Invocation) -> None:
    """List the tasks that workers have published, and tasks with an override or a pause."""

    async def read(app: Fairlane) -> tuple[list[PublishedTask], Instant]:
        return list(await app.tasks.alist()), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(
        found, _view(now), empty="No task is known; workers publish theirs when they start."
    )


@tasks.command(cls=Command)
@click.argument("name", type=value_types.TASK)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show one task: its queue, rate, gate, overrides and pauses."""

    async def read(app: Fairlane) -> tuple[PublishedTask, Instant]:
        return await app.tasks.aget(name), await now_of(app)

    task, now = invocation.run(read)
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
    invocation.output.record(fields, _as_json(task))


@tasks.command(cls=Command)
@click.argument("name", type=value_types.TASK)
@drain_options
@click.pass_obj
def drain(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Pause or close a task, and wait until none of its jobs runs.

    The task stays paused or closed afterwards, also after a timeout (exit code 1) or an interrupt.
    """
    drain_subject(invocation, SubjectKind.TASK, name, **options)


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
            "HELD": lambda task: hold_state(task.paused, task.closed),
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
