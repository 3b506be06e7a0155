"""`fairlane enqueue`: enqueue one job, or one for each line of standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeAlias, get_args

import click

from fairlane import EnqueueUnknown, Fairlane, InvalidJob, Job, Problem
from fairlane.app.enqueue.by_name import FoundTask, find_by_name
from fairlane.app.enqueue.call import NO_OPTIONS, Call
from fairlane.app.job_json import job_json
from fairlane.cli import value_types
from fairlane.cli.argument_pairs import Arguments, arguments_of, object_of
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation
from fairlane.cli.render.output import TableView
from fairlane.model.errors import invalid_job
from fairlane.model.job import OnDuplicate
from fairlane.store.contract.jobs import MAX_BATCH_SIZE

Rows: TypeAlias = Callable[[FoundTask], Sequence[Arguments]]
"""Returns the arguments of each call, given the task."""

_IDS_SHOWN: Final = 10
_VIEW: Final[TableView[Job[Any]]] = TableView(
    {
        "ID": lambda job: str(job.id),
        "": lambda job: "created" if job.created else "existing",
        "STATE": lambda job: job.state.value,
    },
    job_json,
)


@click.command(cls=Command)
@click.argument("task", type=value_types.TASK)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="The arguments as one JSON object.")
@click.option("--stdin", "is_stream", is_flag=True, help="Read one JSON object of arguments per line.")
@click.option("--tenant", type=value_types.TENANT, help="The tenant of the job.")
@click.option("--queue", type=value_types.QUEUE, help="The queue; default: the task's own queue.")
@click.option("--priority", type=int, help="From -100 to 100; by default higher starts earlier.")
@click.option("--delay", type=value_types.DURATION, help="Start after this long (90s, 5m, 2h).")
@click.option("--run-at", type=value_types.TIME, help="Start at this time.")
@click.option("--expires-in", type=value_types.DURATION, help="Do not start later than this long from now.")
@click.option("--expires-at", type=value_types.TIME, help="Do not start after this time.")
@click.option("--idempotency-key", help="Repeating a key returns the job it already has.")
@click.option(
    "--on-duplicate",
    type=click.Choice(get_args(OnDuplicate)),
    help="What a repeated key does; replace_dead creates a new job if the old one is dead.",
)
@click.option("--dedup-key", help="Allow only one unfinished job with this key.")
@click.option("--correlation", "correlation_id", help="The correlation id.")
@click.option("--created-by", help="Who asked for the job, as in user:42.")
@click.option("--parent", type=value_types.JOB, help="The id of the parent job.")
@click.option("--max-attempts", type=int, help="The maximum number of attempts, including the first.")
@click.option("--timeout", type=value_types.DURATION, help="The maximum duration of one attempt.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be repeated.")
@click.pass_obj
def enqueue(
    invocation: Invocation,
    /,
    task: str,
    pairs: tuple[str, ...],
    *,
    whole: str | None,
    is_stream: bool,
    **options: Any,
) -> None:
    """Enqueue a job of TASK, or one for each line of standard input.

    A VALUE that is valid JSON (3, true, "text", [1, 2]) is read as JSON; anything else is text, and so is
    every value of a parameter annotated `str`. Text is converted to the parameter's annotated type: datetime
    (2026-07-01T10:00:00Z), date, time, timedelta (90s), Decimal, UUID, bytes (base64) or Enum (the member's
    name), also inside lists and objects. Without --app a worker must have published the task. With --app a
    missing SQLite file is created. Lines of standard input are stored in batches of 1,000; each batch is
    stored completely or not at all.
    """
    if sum((bool(pairs), whole is not None, is_stream)) > 1:
        message = "give only one of KEY=VALUE pairs, --args and --stdin"
        raise click.UsageError(message)
    options["tags"] = options["tags"] or None
    # Without the application the task must be published in the store, so a new store would be useless.
    new = None if invocation.application is None else invocation.missing_file()
    if is_stream:
        # Lines are read outside the event loop, so that Ctrl-C interrupts a blocking read.
        rows, number = _lines(sys.stdin), 0
        while batch := list(islice(rows, MAX_BATCH_SIZE)):
            number += len(_send(invocation, task, _as_they_are(batch), options, is_batch=True))
        invocation.output.note(f"{number} job(s) enqueued.")
    elif whole is not None:
        _send(invocation, task, _as_they_are([object_of(whole, "--args")]), options)
    else:
        _send(invocation, task, lambda named: [arguments_of(pairs, named)], options)
    if new is not None:
        invocation.output.note(f"Created a new store: {new}.")


def _send(
    invocation: Invocation, task: str, rows: Rows, options: Mapping[str, Any], *, is_batch: bool = False
) -> Sequence[Job[Any]]:
    """Store one batch and print its jobs."""

    async def work(app: Fairlane) -> list[Job[Any]]:
        calls = await _calls(app, task, rows, options, is_batch=is_batch)
        try:
            return await app.client.aenqueue(calls, is_batch=is_batch)
        except EnqueueUnknown as error:
            more = ", …" if len(error.ids) > _IDS_SHOWN else ""
            shown = ", ".join(map(str, error.ids[:_IDS_SHOWN])) + more
            message = (
                f"sent but not confirmed, so these jobs may or may not be stored: {shown}; check with "
                "`fairlane jobs show`. Repeating the command creates new jobs without an --idempotency-key"
            )
            raise EnqueueUnknown(message, retry_safe=error.retry_safe, ids=error.ids) from error

    jobs = invocation.run(work, makes_store=invocation.application is not None)
    if invocation.is_json:
        invocation.output.table(jobs, _VIEW)
    else:
        for job in jobs:
            invocation.output.line(f"{job.id} {'created' if job.created else 'existing'}")
    return jobs


async def _calls(
    app: Fairlane, task: str, rows: Rows, options: Mapping[str, Any], *, is_batch: bool
) -> list[Call[Any]]:
    """Make one call for each row of arguments. `InvalidJob` lists the problems of all rows."""
    if app.registry.find(task) is None and options["tenant"] is None:
        message = "give --tenant; use `system` for jobs of the application itself"
        raise click.UsageError(message)
    named = await find_by_name(app.client, task, options["tenant"])
    given = NO_OPTIONS.with_options(**{key: value for key, value in options.items() if value is not None})
    calls: list[Call[Any]] = []
    problems: list[Problem] = []
    for index, row in enumerate(rows(named)):
        try:
            calls.append(named.call(row, given))
        except InvalidJob as error:
            problems += [replace(problem, index=index) for problem in error.problems]
    if problems:
        raise invalid_job(problems, is_batch=is_batch)
    return calls


def _as_they_are(rows: Sequence[Arguments]) -> Rows:
    """Return rows of JSON, whatever the task."""
    return lambda _named: rows


def _lines(source: Iterable[str]) -> Iterator[Arguments]:
    """Parse arguments line by line; empty lines are skipped."""
    number = 0
    try:
        for number, line in enumerate(source, 1):
            if line.strip():
                yield object_of(line, f"line {number}")
    except UnicodeDecodeError:
        raise click.UsageError(f"the input after line {number} is not valid UTF-8") from None
