"""`fairlane tasks`: the tasks that workers have published, and their limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

import click
import msgspec

from fairlane import Counts, Fairlane, PublishedTask, State, TaskRetries
from fairlane.app.admin.queue_stats import MAX_LOOKED_AT
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.policies.pause import drain_options, drain_subject
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.policies import hold_fields, hold_json, hold_state, rate_text
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, iso, to_instant
from fairlane.model.policy.overrides import SubjectKind


@click.group(cls=Group, lists=True)
def tasks() -> None:
    """Show and drain tasks: list, show, counts, retries, drain. Default: list."""


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
        "breaker": task.breaker,
        "budget": task.budget,
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


@tasks.command(cls=Command)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=MAX_LOOKED_AT,
    show_default=True,
    help="The maximum number of jobs to read for each task.",
)
@click.pass_obj
def counts(invocation: Invocation, *, most: int) -> None:
    """Count the jobs of every known task by state."""
    found = invocation.run(lambda app: app.tasks.acounts(most=most))
    invocation.output.table(found.items(), _COUNTS, empty="No task is known.")
    if not all(one.is_complete for one in found.values()):
        invocation.output.note("Not all jobs were read: the numbers may be too low. Raise --most.")


@tasks.command(cls=Command)
@click.option(
    "--since",
    type=value_types.TIME_OR_DURATION,
    default="1d",
    show_default=True,
    help="Enqueued since this time, or this long ago (2h).",
)
@click.option("--task", type=value_types.TASK, help="Of this task.")
@click.option(
    "--most",
    type=click.IntRange(1),
    default=MAX_LOOKED_AT,
    show_default=True,
    help="The maximum number of finished jobs to read.",
)
@click.pass_obj
def retries(invocation: Invocation, *, since: datetime | timedelta, task: str | None, most: int) -> None:
    """Show how the finished jobs of each task got on: retried, dead, mean attempts, commonest error."""
    report = invocation.run(lambda app: app.tasks.aretries(since=since, task=task, most=most))
    invocation.output.table(report.tasks, _RETRIES, empty="No job has finished since then.")
    if not report.is_complete:
        invocation.output.note(f"{report.looked_at:,} job(s) were read, and there are more: raise --most.")


_RETRIES: Final[TableView[TaskRetries]] = TableView(
    {
        "TASK": lambda one: one.task,
        "JOBS": lambda one: one.jobs,
        "SUCCEEDED": lambda one: f"{one.success_rate:.0%}",
        "AFTER RETRY": lambda one: one.after_retry,
        "DEAD": lambda one: one.dead,
        "ATTEMPTS": lambda one: f"{one.mean_attempts:.1f}",
        "COMMONEST ERROR": lambda one: next(iter(one.errors), ""),
    },
    lambda one: {**asdict(one), "success_rate": one.success_rate},
    stacks=True,
)


def _seen(task: PublishedTask, now: Instant) -> str:
    return "never" if task.seen_at is None else ago(to_instant(task.seen_at), now)


def _count(state: State) -> Callable[[tuple[str, Counts]], int]:
    return lambda row: row[1][state]


_COUNTS: Final[TableView[tuple[str, Counts]]] = TableView(
    {"TASK": lambda row: row[0], **{state.value.upper(): _count(state) for state in State}},
    lambda row: {
        "task": row[0],
        **{state.value: number for state, number in row[1].items()},
        "is_complete": row[1].is_complete,
    },
)


def _view(now: Instant) -> TableView[PublishedTask]:
    return TableView(
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
        "breaker": task.breaker,
        "budget": task.budget,
        "seen_at": iso(task.seen_at),
        **hold_json(task.paused, task.closed, task.override),
    }
