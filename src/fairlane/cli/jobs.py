"""`fairlane jobs`: list, show, logs, count, peek."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final, TypeVar
from uuid import UUID

import click

from fairlane import ConfigError, Counts, Fairlane, Job, State
from fairlane.cli import kinds
from fairlane.cli.command import Command, Group
from fairlane.cli.session import Session, now_of
from fairlane.cli.shown import Veil, full_fields, full_json, jobs_view, logs_json, logs_text
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import TasksRequest
from fairlane.store.contract.request import PAGE_MOST

F = TypeVar("F", bound=Callable[..., Any])

ALL: Final = Scope.all()


@click.group(cls=Group, lists=True)
def jobs() -> None:
    """Look at jobs: list, show, logs, count, peek. Without one of these: list."""


_FILTERS: Final = (
    click.option("--tenant", type=kinds.TENANT, help="Of this tenant."),
    click.option("--queue", type=kinds.QUEUE, help="In this queue."),
    click.option("--task", type=kinds.TASK, help="Of this task."),
    click.option(
        "--state", "states", type=kinds.STATE, multiple=True, help="In this state; may be repeated."
    ),
    click.option("--correlation", type=kinds.LABEL, help="With this correlation id."),
    click.option("--tag", type=kinds.LABEL, help="With this tag."),
    click.option("--parent", type=kinds.JOB, help="Enqueued by this job."),
    click.option("--since", type=kinds.BEFORE, help="Enqueued since this time, or so long ago (2h)."),
    click.option("--until", type=kinds.BEFORE, help="Enqueued before this time, or longer ago than (2h)."),
)


def filtered(command: F) -> F:
    """Take the filters of `app.jobs.find`."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def filters_of(said: dict[str, Any]) -> dict[str, Any]:
    """Give the filters that were said, as `app.jobs` takes them."""
    names = ("tenant", "queue", "task", "tag", "parent", "since", "until")
    states = [State(state) for state in said["states"]]
    return {
        **{name: said[name] for name in names},
        "state": states or None,
        "correlation_id": said["correlation"],
    }


@jobs.command("list", cls=Command)
@filtered
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at the most.")
@click.option("--cursor", help="Go on where a listing stopped.")
@click.pass_obj
def list_jobs(session: Session, /, *, limit: int, cursor: str | None, **said: Any) -> None:
    """List jobs, newest enqueue first."""
    filters = filters_of(said)

    async def read(app: Fairlane) -> tuple[list[Job[Any]], str | None, Instant]:
        found: list[Job[Any]] = []
        going = cursor
        while True:
            most = min(limit - len(found), PAGE_MOST)
            page = await app.jobs.afind(**filters, limit=most, cursor=going)
            found += page.items
            going = page.cursor
            if going is None or len(found) == limit:
                return found, going, await now_of(app)

    try:
        found, more, now = session.run(read)
    except ConfigError:
        raise
    except ValueError as error:  # a cursor from elsewhere; every other value was checked before
        raise click.BadParameter(str(error), param_hint="--cursor") from None
    session.output.table(found, jobs_view(now), empty="No job matches.")
    if more is not None:
        session.output.remark(f"There may be more: go on with --cursor {more}")


@jobs.command(cls=Command)
@click.argument("id", type=kinds.JOB)
@click.option("--reveal", is_flag=True, help="Show secrets in clear, in arguments, results and errors.")
@click.option("--traceback", "with_traceback", is_flag=True, help="Show the traceback of the last failure.")
@click.pass_obj
def show(session: Session, id: UUID, *, reveal: bool, with_traceback: bool) -> None:
    """Show all that is known of one job. What looks secret is redacted unless --reveal is given."""

    async def read(app: Fairlane) -> tuple[JobRecord, Job[Any], Veil, Instant]:
        record = await app.client.aget(id, ALL)
        veil = Veil(is_lifted=reveal, names=await _secret_names(app, record.task))
        return record, app.client.show(record), veil, await now_of(app)

    record, job, veil, now = session.run(read)
    fields = full_fields(record, job, veil, now)
    if with_traceback:
        traces = [attempt.traceback for attempt in job.attempts if attempt.traceback]
        fields["traceback"] = veil.text(traces[-1]) if traces else "none is kept"
    session.output.record(fields, full_json(record, job, veil))


@jobs.command(cls=Command)
@click.argument("id", type=kinds.JOB)
@click.option("--attempt", "number", type=click.IntRange(1), help="Of this attempt alone.")
@click.option("--reveal", is_flag=True, help="Show secrets in clear.")
@click.pass_obj
def logs(session: Session, id: UUID, *, number: int | None, reveal: bool) -> None:
    """Show what the handler of a job wrote with `ctx.log`, attempt by attempt.

    The last 200 lines or 16 KB of each of the last ten attempts are kept, from when the attempt ends. As JSON
    there is one object for each attempt.
    """

    async def read(app: Fairlane) -> tuple[Job[Any], Veil]:
        record = await app.client.aget(id, ALL)
        veil = Veil(is_lifted=reveal, names=await _secret_names(app, record.task))
        return app.client.show(record), veil

    job, veil = session.run(read)
    attempts = [one for one in job.attempts if number in {None, one.number}]
    if number is not None and not attempts:
        kept = ", ".join(str(one.number) for one in job.attempts) or "none"
        message = f"attempt {number} is not kept; these are: {kept}"
        raise click.BadParameter(message, param_hint="--attempt")
    if session.is_json:
        for attempt in attempts:
            session.output.answer("", logs_json(attempt, veil))
    else:
        session.output.answer(logs_text(attempts, veil), {})


async def _secret_names(app: Fairlane, task: str) -> tuple[str, ...]:
    """Give the field names that a task calls secret: from its code, else from what its workers publish."""
    declared = app.registry.find(task)
    if declared is not None:
        return declared.sensitive
    views = await app.client.store.registry.tasks(TasksRequest(scope=ALL, names=(task,)))
    return tuple(chain.from_iterable(view.card.sensitive for view in views))


@jobs.command(cls=Command)
@filtered
@click.option("--because", is_flag=True, help="Count jobs of a state apart by what they wait for or died of.")
@click.option("--most", type=click.IntRange(1), help="Look at so many jobs at the most.")
@click.option("--cursor", help="Go on where a count with --most stopped.")
@click.pass_obj
def count(session: Session, /, *, because: bool, most: int | None, cursor: str | None, **said: Any) -> None:
    """Count jobs by state.

    By tenant, queue and state alone counters answer. Everything else looks at jobs, oldest enqueue first, and
    says at how many; the numbers are of all jobs unless --most stops it before.
    """
    filters = filters_of(said)
    try:
        counts = session.run(
            lambda app: app.jobs.acount(because=because, most=most, cursor=cursor, **filters)
        )
    except ConfigError:
        raise
    except ValueError as error:  # a cursor from elsewhere; every other value was checked before
        raise click.BadParameter(str(error), param_hint="--cursor") from None
    session.output.record(_counted(counts), _counts_json(counts))
    if not counts.is_complete:
        session.output.remark(f"{counts.looked_at:,} job(s) were looked at, and there are more:")
        session.output.remark(f"go on with --cursor {counts.cursor}")


def _counted(counts: Counts) -> dict[str, str | int | None]:
    return {
        state.value: number
        if not counts.because.get(state)
        else f"{number} ({_words(counts.because[state])})"
        for state, number in counts.items()
    }


def _words(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in sorted(numbers.items()))


def _counts_json(counts: Counts) -> dict[str, Any]:
    return {
        **{state.value: number for state, number in counts.items()},
        "because": {state.value: dict(words) for state, words in counts.because.items()},
        "looked_at": counts.looked_at,
        "is_complete": counts.is_complete,
        "is_finished": counts.is_finished,
        "cursor": counts.cursor,
    }


@jobs.command(cls=Command)
@click.argument("queue", type=kinds.QUEUE)
@click.option(
    "-n", "number", type=click.IntRange(1, PAGE_MOST), default=10, show_default=True, help="How many."
)
@click.option("--tenant", type=kinds.TENANT, help="Of this tenant.")
@click.pass_obj
def peek(session: Session, queue: str, *, number: int, tenant: str | None) -> None:
    """Show the next jobs of a queue in the order in which they would be claimed now."""

    async def read(app: Fairlane) -> tuple[list[Job[Any]], Instant]:
        return list(await app.jobs.apeek(queue, number, tenant=tenant)), await now_of(app)

    found, now = session.run(read)
    session.output.table(found, jobs_view(now), empty=f"Nothing in queue {queue} could be claimed now.")
