"""`fairlane failures`: what failed lately, by task."""

from __future__ import annotations

from datetime import datetime

import click

from fairlane import FailureReport, Fairlane
from fairlane.app.admin.failures import MAX_LOOKED_AT, TaskFailures
from fairlane.app.redaction import REDACTED
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, iso, to_instant


@click.command(cls=Command)
@click.option(
    "--since",
    type=value_types.TIME_OR_AGE,
    default="1h",
    show_default=True,
    help="Failed since this time, or this long ago (2h).",
)
@click.option("--tenant", type=value_types.TENANT, help="Of this tenant.")
@click.option("--task", type=value_types.TASK, help="Of this task.")
@click.option(
    "--most",
    type=click.IntRange(1),
    default=MAX_LOOKED_AT,
    show_default=True,
    help="The maximum number of dead letters, and of unfinished jobs, to read.",
)
@click.pass_obj
def failures(
    invocation: Invocation, *, since: datetime, tenant: str | None, task: str | None, most: int
) -> None:
    """Show what failed lately, by task.

    For each task: failed attempts, of how many jobs, how many of these are dead, the newest time, and the
    commonest error. Jobs that succeeded after a retry are not counted.
    """

    async def read(app: Fairlane) -> tuple[FailureReport, Instant]:
        report = await app.jobs.afailures(since=since, tenant=tenant, task=task, most=most)
        return report, await now_of(app)

    report, now = invocation.run(read)
    invocation.output.table(report.tasks, _view(now), empty="Nothing has failed since then.")
    if not report.is_complete:
        invocation.output.note(f"{report.looked_at:,} job(s) were read, and there are more: raise --most.")


def _view(now: Instant) -> TableView[TaskFailures]:
    return TableView(
        {
            "TASK": lambda one: one.task,
            "FAILURES": lambda one: one.failures,
            "JOBS": lambda one: one.jobs,
            "DEAD": lambda one: one.dead,
            "NEWEST": lambda one: ago(to_instant(one.last_at), now),
            "COMMONEST ERROR": lambda one: REDACTED.text(one.error),
        },
        lambda one: {
            "task": one.task,
            "failures": one.failures,
            "jobs": one.jobs,
            "dead": one.dead,
            "last_at": iso(one.last_at),
            "error": REDACTED.text(one.error),
        },
    )
