"""`fairlane enqueue`: make jobs from a terminal or a script, one, or one a line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, get_args

import click
import msgspec

from fairlane import EnqueueUnknown, Fairlane, Job
from fairlane.app.by_name import Named
from fairlane.app.from_json import Enums, Schema, is_fitting
from fairlane.cli import kinds
from fairlane.cli.calls import Arguments, Rows, calls_of
from fairlane.cli.command import Command
from fairlane.cli.output import View
from fairlane.cli.session import Session
from fairlane.cli.shown import job_json
from fairlane.model.job import OnDuplicate
from fairlane.store.contract.jobs import BATCH_MOST

_IDS_SHOWN: Final = 10
_TEXT: Final = {"type": "string"}
_WIDTH: Final = 40
_VIEW: Final[View[Job[Any]]] = View(
    {
        "ID": lambda job: str(job.id),
        "": lambda job: "created" if job.created else "existing",
        "STATE": lambda job: job.state.value,
    },
    job_json,
)


@click.command(cls=Command)
@click.argument("task", type=kinds.TASK)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="The arguments as one JSON object.")
@click.option("--stdin", "is_stream", is_flag=True, help="Read a JSON object of arguments from each line.")
@click.option("--tenant", type=kinds.TENANT, help="For this tenant.")
@click.option("--queue", type=kinds.QUEUE, help="Into this queue instead of the task's home.")
@click.option("--priority", type=int, help="-100 to 100.")
@click.option("--delay", type=kinds.DURATION, help="Start after so long (90s, 5m, 2h).")
@click.option("--run-at", type=kinds.MOMENT, help="Start at this time.")
@click.option("--expires-in", type=kinds.DURATION, help="Do not start later than so long from now.")
@click.option("--expires-at", type=kinds.MOMENT, help="Do not start after this time.")
@click.option("--idempotency-key", help="The same key gives the same job again.")
@click.option(
    "--on-duplicate",
    type=click.Choice(get_args(OnDuplicate)),
    help="What a repeated key does; replace_dead makes a new job of a dead one.",
)
@click.option("--dedup-key", help="At most one unfinished job with this key.")
@click.option("--correlation", "correlation_id", help="The correlation id.")
@click.option("--parent", type=kinds.JOB, help="The job that this one belongs to.")
@click.option("--max-attempts", type=int, help="How often it may be tried, the first run included.")
@click.option("--timeout", type=kinds.DURATION, help="How long one attempt may run.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be repeated.")
@click.pass_obj
def enqueue(
    session: Session,
    /,
    task: str,
    pairs: tuple[str, ...],
    *,
    whole: str | None,
    is_stream: bool,
    **options: Any,
) -> None:
    """Enqueue a job of TASK, or one for each line of standard input.

    A VALUE that reads as JSON (3, true, "text", [1, 2]) is that; anything else is text, and so is everything
    for a parameter annotated `str`. Text becomes what the parameter's annotation names: a datetime
    (2026-07-01T10:00:00Z), date, time, timedelta (90s), Decimal, UUID, bytes (base64) or Enum (the member's
    name); also inside lists and objects. Without --app the task must be one that a worker has published. With
    it a SQLite file that is not there is made. Lines of standard input are stored in batches of 1,000, each
    whole or not at all.
    """
    if sum((bool(pairs), whole is not None, is_stream)) > 1:
        message = "give KEY=VALUE pairs, or --args, or --stdin: one of the three"
        raise click.UsageError(message)
    options["tags"] = options["tags"] or None
    # Without the application a task must have been published there, so that a new store is of no use.
    new = None if session.application is None else session.missing_file()
    if is_stream:
        # Lines are read outside of the event loop, where Ctrl-C ends a read that waits.
        rows, number = _lines(sys.stdin), 0
        while batch := list(islice(rows, BATCH_MOST)):
            number += len(_send(session, task, _as_they_are(batch), options, is_batch=True))
        session.output.remark(f"{number} job(s) enqueued.")
    elif whole is not None:
        _send(session, task, _as_they_are([_object(whole, "--args")]), options)
    else:
        _send(session, task, lambda named: [_arguments(pairs, named)], options)
    if new is not None:
        session.output.remark(f"A new store was made: {new}.")


def _send(
    session: Session, task: str, rows: Rows, options: Mapping[str, Any], *, is_batch: bool = False
) -> Sequence[Job[Any]]:
    """Store one batch, and show what became of it."""

    async def work(app: Fairlane) -> list[Job[Any]]:
        calls = await calls_of(app, task, rows, options, is_batch=is_batch)
        try:
            return await app.client.aenqueue(calls, is_batch=is_batch)
        except EnqueueUnknown as error:
            more = ", …" if len(error.ids) > _IDS_SHOWN else ""
            shown = ", ".join(map(str, error.ids[:_IDS_SHOWN])) + more
            message = (
                f"sent and not confirmed, so the jobs may or may not be stored: {shown}; look for them with "
                "`fairlane jobs show`. The same command makes other jobs, unless it has an --idempotency-key"
            )
            raise EnqueueUnknown(message, retry_safe=error.retry_safe, ids=error.ids) from error

    jobs = session.run(work, makes_store=session.application is not None)
    if session.is_json:
        session.output.table(jobs, _VIEW)
    else:
        for job in jobs:
            session.output.say(f"{job.id} {'created' if job.created else 'existing'}")
    return jobs


def _as_they_are(rows: Sequence[Arguments]) -> Rows:
    """Take rows of JSON, whatever task they are for."""
    return lambda _named: rows


def _arguments(pairs: Iterable[str], named: Named) -> Arguments:
    """Read all pairs; a name that is given twice is nobody's wish."""
    arguments: Arguments = {}
    enums = named.task.handler.argument_enums
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name.isidentifier():
            message = f"{pair[:_WIDTH]!r} is no KEY=VALUE"
            raise click.UsageError(message)
        if name in arguments:
            message = f"{name} is given twice"
            raise click.UsageError(message)
        arguments[name] = _value(text, named.schema.get("properties", {}).get(name, {}), enums)
    return arguments


def _value(text: str, schema: Schema, enums: Enums) -> Any:
    """Read what stands behind KEY=: as JSON, unless it fits as text alone.

    >>> whole, number, word = {"type": "integer"}, {"type": "string", "format": "decimal"}, {"type": "string"}
    >>> _value("3", whole, {}), _value("1.20", number, {}), _value("17", word, {}), _value("+49", {}, {})
    (3, '1.20', '17', '+49')
    """
    if schema == _TEXT:
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return text
    except RecursionError:
        raise click.UsageError(f"{text[:_WIDTH]!r} is nested too deeply") from None
    return text if not is_fitting(value, schema, enums) and is_fitting(text, schema, enums) else value


def _lines(source: Iterable[str]) -> Iterator[Arguments]:
    """Read arguments line by line; empty lines do not count as jobs."""
    number = 0
    try:
        for number, line in enumerate(source, 1):
            if line.strip():
                yield _object(line, f"line {number}")
    except UnicodeDecodeError:
        raise click.UsageError(f"what follows line {number} is no UTF-8") from None


def _object(text: str, where: str) -> Arguments:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        message = f"{where} is no JSON object of arguments: {error}"
        raise click.UsageError(message) from None
    except RecursionError:
        raise click.UsageError(f"{where} is nested too deeply") from None
    except UnicodeEncodeError:  # bytes that were let through, as Python does in some locales
        raise click.UsageError(f"{where} is no UTF-8") from None
