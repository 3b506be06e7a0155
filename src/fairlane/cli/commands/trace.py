"""`fairlane jobs trace`: what led to a job and what came of it, as a tree."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import click

from fairlane import Fairlane, Job, Trace, TracedJob
from fairlane.app.job_json import job_json
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation
from fairlane.cli.render.output import TableView
from fairlane.model.durations import format_duration
from fairlane.model.instants import Micros, to_instant


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.pass_obj
def trace(invocation: Invocation, id: UUID) -> None:
    """Show what led to a job and what came of it.

    The ancestors of the job, and all jobs with their correlation ids: each behind the job that enqueued it,
    with the time from the first enqueue. The job itself is marked with an arrow.
    """

    async def read(app: Fairlane) -> Trace:
        return await app.jobs.atrace(id)

    found = invocation.run(read)
    invocation.output.table(found, _view(found))
    if not found.is_complete:
        invocation.output.note(f"There are more than {len(found.jobs):,} jobs: the newest are shown.")


def _view(found: Trace) -> TableView[TracedJob]:
    began_at = min(to_instant(one.job.enqueued_at) for one in found)
    return TableView(
        {
            "TASK": lambda one: f"{'  ' * one.depth}{'→ ' if one.job.id == found.id else ''}{one.job.task}",
            "STATE": lambda one: one.job.state.value,
            "TENANT": lambda one: one.job.tenant,
            "QUEUE": lambda one: one.job.queue,
            "ATTEMPT": lambda one: f"{one.job.attempt}/{one.job.max_attempts}",
            "ENQUEUED": lambda one: f"+{format_duration(to_instant(one.job.enqueued_at) - began_at)}",
            "RAN": lambda one: _ran(one.job),
            "ID": lambda one: str(one.job.id),
        },
        lambda one: {**job_json(one.job), "depth": one.depth, "is_asked_for": one.job.id == found.id},
    )


def _ran(job: Job[Any]) -> str:
    """Return how long the job's ended attempts took together."""
    took: list[Micros] = [
        to_instant(attempt.ended_at) - to_instant(attempt.started_at)
        for attempt in job.attempts
        if attempt.ended_at is not None
    ]
    return format_duration(sum(took)) if took else ""
