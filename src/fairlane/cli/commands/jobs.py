"""`fairlane jobs`: list, show, logs, count, peek. What changes jobs is in `steer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

import click

from fairlane import ConfigError, Counts, Fairlane, Job, QueryError, State
from fairlane.app.job_json import full_json, logs_json
from fairlane.app.redaction import Redactor, secret_names
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.steer import again, condemn, edit, fail, stuck, take_back
from fairlane.cli.commands.trace import trace
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.job import full_fields, jobs_view, logs_text
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.scope import Scope
from fairlane.store.contract.request import MAX_PAGE_SIZE

F = TypeVar("F", bound=Callable[..., Any])

ALL: Final = Scope.all()


@click.group(cls=Group, lists=True)
def jobs() -> None:
    """Show and change jobs. Default: list."""


for _command in (edit, condemn, fail, take_back, again, stuck, trace):
    jobs.add_command(_command)


_FILTERS: Final = (
    click.option("--tenant", type=value_types.TENANT, help="Of this tenant."),
    click.option("--queue", type=value_types.QUEUE, help="In this queue."),
    click.option("--task", type=value_types.TASK, help="Of this task."),
    click.option(
        "--state", "states", type=value_types.STATE, multiple=True, help="In this state; may be repeated."
    ),
    click.option("--correlation", type=value_types.LABEL, help="With this correlation id."),
    click.option("--created-by", type=value_types.LABEL, help="Created by this user or system."),
    click.option("--tag", type=value_types.LABEL, help="With this tag."),
    click.option("--parent", type=value_types.JOB, help="Enqueued by this job."),
    click.option(
        "--since", type=value_types.TIME_OR_AGE, help="Enqueued since this time, or this long ago (2h)."
    ),
    click.option(
        "--until",
        type=value_types.TIME_OR_AGE,
        help="Enqueued before this time, or longer ago than this (2h).",
    ),
)


def with_filters(command: F) -> F:
    """Add the filters of `app.jobs.find` as options."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def filters_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the given filters as `app.jobs` takes them."""
    names = ("tenant", "queue", "task", "created_by", "tag", "parent", "since", "until")
    states = [State(state) for state in options["states"]]
    return {
        **{name: options[name] for name in names},
        "state": states or None,
        "correlation_id": options["correlation"],
    }


@jobs.command("list", cls=Command)
@click.argument("query", nargs=-1)
@with_filters
@click.option(
    "--metadata",
    type=value_types.PAIR,
    multiple=True,
    help="With this value in its metadata, as step=3 or import.page=7; may be repeated.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="The maximum number of jobs."
)
@click.option("--cursor", help="Continue where the previous page ended.")
@click.pass_obj
def list_jobs(
    invocation: Invocation,
    /,
    *,
    query: tuple[str, ...],
    limit: int,
    cursor: str | None,
    metadata: tuple[tuple[str, Any], ...],
    **options: Any,
) -> None:
    """List jobs, the newest first.

    QUERY: terms such as state:dead task:mail.* run:>5m arg.to:ann@example.org, which must all hold. Put it
    after `--` if it begins with a minus.
    """
    wanted, text = dict(metadata), " ".join(query)
    if len(wanted) < len(metadata):
        message = "each key may be given once"
        raise click.BadParameter(message, param_hint="--metadata")
    filters: dict[str, Any] = {**filters_of(options), "metadata": wanted or None}

    async def read(app: Fairlane) -> tuple[list[Job[Any]], str | None, Instant]:
        found: list[Job[Any]] = []
        next_cursor = cursor
        while True:
            page_size = min(limit - len(found), MAX_PAGE_SIZE)
            page = await app.jobs.afind(text, **filters, limit=page_size, cursor=next_cursor)
            found += page.items
            next_cursor = page.cursor
            if next_cursor is None or len(found) == limit:
                return found, next_cursor, await now_of(app)

    try:
        found, more, now = invocation.run(read)
    except ConfigError:
        raise
    except QueryError as error:
        raise click.UsageError(str(error)) from None
    except ValueError as error:  # a cursor from elsewhere; every other value was checked before
        raise click.BadParameter(str(error), param_hint="--cursor") from None
    invocation.output.table(found, jobs_view(now), empty="No job matches.")
    if more is not None:
        invocation.output.note(f"There may be more: continue with --cursor {more}")


@jobs.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.option("--reveal", is_flag=True, help="Show secrets in arguments, results and errors.")
@click.option("--traceback", "with_traceback", is_flag=True, help="Show the traceback of the last failure.")
@click.pass_obj
def show(invocation: Invocation, id: UUID, *, reveal: bool, with_traceback: bool) -> None:
    """Show everything about one job. Values that look secret are redacted unless --reveal is given."""

    async def read(app: Fairlane) -> tuple[JobRecord, Job[Any], Redactor, Instant]:
        record = await app.client.aget(id, ALL)
        names = await secret_names(app.client, [record.task], ALL)
        redactor = Redactor(reveals=reveal, names=names[record.task])
        return record, app.client.show(record), redactor, await now_of(app)

    record, job, redactor, now = invocation.run(read)
    fields = full_fields(record, job, redactor, now)
    if with_traceback:
        traces = [attempt.traceback for attempt in job.attempts if attempt.traceback]
        fields["traceback"] = redactor.text(traces[-1]) if traces else "none is stored"
    invocation.output.record(fields, full_json(record, job, redactor))


@jobs.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.option("--attempt", "number", type=click.IntRange(1), help="Only this attempt.")
@click.option("--reveal", is_flag=True, help="Show secrets.")
@click.pass_obj
def logs(invocation: Invocation, id: UUID, *, number: int | None, reveal: bool) -> None:
    """Show what a job's handler logged with `ctx.log`, attempt by attempt.

    The last 200 lines or 16 KB are stored when an attempt ends, with the last ten attempts unless
    `retention.attempts_per_job` says otherwise. JSON output has one object per attempt.
    """

    async def read(app: Fairlane) -> tuple[Job[Any], Redactor]:
        record = await app.client.aget(id, ALL)
        names = await secret_names(app.client, [record.task], ALL)
        redactor = Redactor(reveals=reveal, names=names[record.task])
        return app.client.show(record), redactor

    job, redactor = invocation.run(read)
    attempts = [one for one in job.attempts if number in {None, one.number}]
    if number is not None and not attempts:
        kept = ", ".join(str(one.number) for one in job.attempts) or "none"
        message = f"attempt {number} is not stored; these are: {kept}"
        raise click.BadParameter(message, param_hint="--attempt")
    if invocation.is_json:
        for attempt in attempts:
            invocation.output.answer("", logs_json(attempt, redactor))
    else:
        invocation.output.answer(logs_text(attempts, redactor), {})


@jobs.command(cls=Command)
@with_filters
@click.option("--because", is_flag=True, help="Also count by reason: what jobs wait for, or why they died.")
@click.option("--most", type=click.IntRange(1), help="The maximum number of jobs to read.")
@click.option("--cursor", help="Continue where a count with --most stopped.")
@click.pass_obj
def count(
    invocation: Invocation, /, *, because: bool, most: int | None, cursor: str | None, **options: Any
) -> None:
    """Count jobs by state.

    Counts by tenant, queue and state come from counters. Any other filter reads the jobs, the oldest first,
    and reports how many it read. The counts cover all jobs unless --most stops the reading.
    """
    filters = filters_of(options)
    try:
        counts = invocation.run(
            lambda app: app.jobs.acount(because=because, most=most, cursor=cursor, **filters)
        )
    except ConfigError:
        raise
    except QueryError as error:
        raise click.UsageError(str(error)) from None
    except ValueError as error:  # a cursor from elsewhere; every other value was checked before
        raise click.BadParameter(str(error), param_hint="--cursor") from None
    invocation.output.record(_counted(counts), _counts_json(counts))
    if not counts.is_complete:
        invocation.output.note(f"{counts.looked_at:,} job(s) were read, and there are more:")
        invocation.output.note(f"continue with --cursor {counts.cursor}")


def _counted(counts: Counts) -> dict[str, str | int | None]:
    return {
        state.value: number
        if not counts.because.get(state)
        else f"{number} ({_by_reason(counts.because[state])})"
        for state, number in counts.items()
    }


def _by_reason(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in sorted(numbers.items()))


def _counts_json(counts: Counts) -> dict[str, Any]:
    return {
        **{state.value: number for state, number in counts.items()},
        "because": {state.value: dict(reasons) for state, reasons in counts.because.items()},
        "looked_at": counts.looked_at,
        "is_complete": counts.is_complete,
        "is_finished": counts.is_finished,
        "cursor": counts.cursor,
    }


@jobs.command(cls=Command)
@click.argument("queue", type=value_types.QUEUE)
@click.option(
    "-n", "number", type=click.IntRange(1, MAX_PAGE_SIZE), default=10, show_default=True, help="How many."
)
@click.option("--tenant", type=value_types.TENANT, help="Of this tenant.")
@click.pass_obj
def peek(invocation: Invocation, queue: str, *, number: int, tenant: str | None) -> None:
    """Show the next jobs of a queue in the order in which they would be claimed."""

    async def read(app: Fairlane) -> tuple[list[Job[Any]], Instant]:
        return list(await app.jobs.apeek(queue, number, tenant=tenant)), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(found, jobs_view(now), empty=f"No job in queue {queue} can be claimed now.")
