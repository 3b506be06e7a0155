"""`fairlane jobs edit`, `condemn`, `fail`, `take-back` and `again` change single jobs; `stuck` lists some."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import click
from msgspec import UNSET

from fairlane import Fairlane, InvalidJob, Job, Page, State
from fairlane.app.enqueue.by_name import FoundTask, find_by_name
from fairlane.app.job_json import job_json
from fairlane.cli import value_types
from fairlane.cli.argument_pairs import Arguments, arguments_of, object_of
from fairlane.cli.command import Command
from fairlane.cli.commands.cancel import NOT_FOUND, print_answers
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.job import jobs_view, running_view
from fairlane.cli.shared_options import note, required_note
from fairlane.model.instants import Instant
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE

_NOT_WAITING: Final = "not waiting"


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.option("--priority", type=int, help="From -100 to 100; by default higher starts earlier.")
@click.option("--delay", type=value_types.DURATION, help="Of a delayed job: start after this long from now.")
@click.option("--run-at", type=value_types.TIME, help="Of a delayed job: start at this time.")
@click.option("--expires-in", type=value_types.DURATION, help="Do not start later than this long from now.")
@click.option("--expires-at", type=value_types.TIME, help="Do not start after this time.")
@click.option("--never-expires", is_flag=True, help="Remove the expiry.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be repeated. Replaces all tags.")
@click.option("--arg", "pairs", multiple=True, metavar="KEY=VALUE", help="A new argument; may be repeated.")
@click.option("--args", "whole", metavar="JSON", help="The new arguments as one JSON object.")
@note
@click.pass_obj
def edit(
    invocation: Invocation,
    /,
    id: UUID,
    *,
    never_expires: bool,
    pairs: tuple[str, ...],
    whole: str | None,
    note: str,
    **options: Any,
) -> None:
    """Change a delayed or ready job. What is not given stays as it is.

    Arguments that are not given stay, too. Values are read and checked as in `fairlane enqueue`: one error
    lists every bad one, and then nothing is changed. To change arguments without --app, a worker must have
    published the task. A running or finished job is refused.
    """
    if pairs and whole is not None:
        message = "give only one of --arg and --args"
        raise click.UsageError(message)
    changes = {name: value for name, value in options.items() if value is not None}
    if not options["tags"]:
        del changes["tags"]
    if never_expires:
        if "expires_at" in changes or "expires_in" in changes:
            message = "give only one of --expires-at, --expires-in and --never-expires"
            raise click.UsageError(message)
        changes["expires_at"] = None
    if not changes and not pairs and whole is None:
        message = "nothing to change: give an option such as --priority or --arg"
        raise click.UsageError(message)
    given = None if whole is None else object_of(whole, "--args")

    async def work(app: Fairlane) -> tuple[Job[Any], Instant]:
        arguments: Arguments | None = given
        if pairs:
            record = await app.client.aget(id, Scope.all())
            arguments = arguments_of(pairs, await task_of(app, record.task, record.tenant))
        given_changes: dict[str, Any] = {"expires_at": UNSET, **changes}
        job = await app.jobs.aedit(id, arguments=arguments, note=note, **given_changes)
        return job, await now_of(app)

    job, now = invocation.run(work)
    invocation.output.table([job], jobs_view(now))


async def task_of(app: Fairlane, task: str, tenant: str) -> FoundTask | None:
    """Return a task to type arguments by; None if it is unknown, which the edit itself reports."""
    try:
        return await find_by_name(app.client, task, tenant)
    except InvalidJob:
        return None


@click.command(cls=Command)
@click.argument("ids", type=value_types.JOB, nargs=-1, required=True, metavar="ID...")
@required_note
@click.pass_obj
def condemn(invocation: Invocation, ids: tuple[UUID, ...], *, note: str) -> None:
    """Move waiting jobs to the dead letters; they will not run.

    Answers: `dead`; `not waiting`: the job runs or has ended, and stays as it is; `not found`.
    """

    async def work(app: Fairlane) -> dict[UUID, str]:
        moved = await app.jobs.acondemn(*ids, reason=note)
        there = await app.client.store.jobs.get(GetRequest(scope=Scope.all(), ids=ids))
        return {
            id: "dead" if id in moved else _NOT_WAITING if id in there else NOT_FOUND
            for id in dict.fromkeys(ids)
        }

    print_answers(invocation, invocation.run(work), late=[_NOT_WAITING])


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.option("--retry", "is_retried", is_flag=True, help="Try it again after the delay of its task.")
@click.option("--dead", "is_dead", is_flag=True, help="Make it a dead letter.")
@required_note
@click.pass_obj
def fail(invocation: Invocation, id: UUID, *, is_retried: bool, is_dead: bool, note: str) -> None:
    """Let a running job fail; its worker stops the handler within seconds.

    With --retry it is delayed by the retry policy of its task (known with --app, else that of its queue), or
    dead without attempts left; a job that runs at most once is refused. With --dead it is dead, and so is a
    job that waits. Prints the id and the new state.
    """
    if is_retried == is_dead:
        message = "give one of --retry and --dead"
        raise click.UsageError(message)
    state = invocation.run(lambda app: app.jobs.afail(id, retry=is_retried, reason=note))
    _print_state(invocation, id, state)


@click.command("take-back", cls=Command)
@click.argument("id", type=value_types.JOB)
@required_note
@click.pass_obj
def take_back(invocation: Invocation, id: UUID, *, note: str) -> None:
    """Make a running job ready again, at its old place and without a failure.

    Its worker stops the handler within seconds; another worker may start the job before that. A job that runs
    at most once is refused. Prints the id and the new state.
    """
    _print_state(invocation, id, invocation.run(lambda app: app.jobs.atake_back(id, reason=note)))


def _print_state(invocation: Invocation, id: UUID, state: State) -> None:
    invocation.output.answer(f"{id} {state.value}", {"id": str(id), "state": state.value})


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.option("--created-by", type=value_types.LABEL, help="Who asks; default: as the first job.")
@note
@click.pass_obj
def again(invocation: Invocation, id: UUID, *, created_by: str | None, note: str) -> None:
    """Enqueue a copy of a succeeded or cancelled job, with the same arguments.

    The first job is the parent of the new one, and both have the same correlation id. A dead job is refused:
    it is run again from its dead letter.
    """
    job = invocation.run(lambda app: app.jobs.aagain(id, created_by=created_by, note=note))
    invocation.output.answer(f"{job.id} {'created' if job.created else 'existing'}", job_json(job))


@click.command(cls=Command)
@click.option("--age", type=value_types.DURATION, default="1h", show_default=True, help="Running for longer.")
@click.option("--tenant", type=value_types.TENANT, help="Of this tenant.")
@click.option("--queue", type=value_types.QUEUE, help="In this queue.")
@click.option("--task", type=value_types.TASK, help="Of this task.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_PAGE_SIZE), default=50, show_default=True, help="How many."
)
@click.pass_obj
def stuck(invocation: Invocation, /, *, age: float, limit: int, **filters: str | None) -> None:
    """List jobs that have been running for longer than --age, the longest first."""

    async def read(app: Fairlane) -> tuple[Page[Job[Any]], Instant]:
        return await app.jobs.astuck(age, limit=limit, **filters), await now_of(app)

    page, now = invocation.run(read)
    longest_first = sorted(page, key=lambda job: job.attempts[-1].started_at)
    invocation.output.table(longest_first, running_view(now), empty="No job has been running for so long.")
    if page.cursor is not None:
        invocation.output.note("There may be more: raise --limit.")
