"""`fairlane dead list`, `show`, `groups`, `stats` and `export`: look at dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import click

from fairlane import DeadGroup, DeadLetterView, Fairlane
from fairlane.app.dead.letter_json import letter_json, statistics_json
from fairlane.app.redaction import Redactor, secret_names
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.commands.dead.filters import ALL, dead_filters, with_dead_filters
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.dead import (
    breaker_warning,
    groups_view,
    letters,
    letters_view,
    review_fields,
    statistics_fields,
)
from fairlane.cli.render.job import full_fields
from fairlane.cli.shared_options import paged, refuse_cursor, write_to
from fairlane.model.instants import Instant
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadGetRequest, DeadLetter
from fairlane.store.contract.request import MAX_PAGE_SIZE

_ALL: Final = Scope.all()


@click.command("list", cls=Command)
@with_dead_filters("pending")
@paged("dead letters")
@click.pass_obj
def list_letters(invocation: Invocation, /, *, limit: int, cursor: str | None, **options: Any) -> None:
    """List dead letters, the latest death first; without --review those that await a decision."""
    filters = dead_filters(options)

    async def read(app: Fairlane) -> tuple[list[DeadLetterView], str | None, Instant]:
        found: list[DeadLetterView] = []
        next_cursor = cursor
        while True:
            page_size = min(limit - len(found), MAX_PAGE_SIZE)
            page = await app.dead.afind(limit=page_size, cursor=next_cursor, **filters)
            found += page.items
            next_cursor = page.cursor
            if next_cursor is None or len(found) == limit:
                return found, next_cursor, await now_of(app)

    with refuse_cursor():
        found, more, now = invocation.run(read)
    invocation.output.table(found, letters_view(now), empty="No dead letter matches.")
    if more is not None:
        invocation.output.note(f"There may be more: continue with --cursor {more}")


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.option("--reveal", is_flag=True, help="Show secrets in arguments, errors and notes.")
@click.option("--traceback", "with_traceback", is_flag=True, help="Show the traceback of the last failure.")
@click.pass_obj
def show(invocation: Invocation, id: UUID, *, reveal: bool, with_traceback: bool) -> None:
    """Show everything about one dead letter: its error, its review with notes, its job."""

    async def read(app: Fairlane) -> tuple[DeadLetter, DeadLetterView, Redactor, Instant]:
        view = await app.dead.aget(id)
        letter = await app.client.store.dead.get(DeadGetRequest(scope=_ALL, id=id))
        if letter is None:  # deleted since: the next look finds nothing
            letter = DeadLetter(await app.client.aget(id, _ALL), None)
        names = await secret_names(app.client, [letter.job.task], _ALL)
        redactor = Redactor(reveals=reveal, names=names[letter.job.task])
        return letter, view, redactor, await now_of(app)

    letter, view, redactor, now = invocation.run(read)
    job = full_fields(letter.job, view.job, redactor, now)
    fields = {"id": job.pop("id"), **review_fields(view, redactor, now), **job}
    if with_traceback:
        traces = [attempt.traceback for attempt in view.job.attempts if attempt.traceback]
        fields["traceback"] = redactor.text(traces[-1]) if traces else "none is stored"
    invocation.output.record(fields, letter_json(letter, view, redactor))


@click.command(cls=Command)
@with_dead_filters("pending")
@click.option(
    "--limit", type=click.IntRange(1, MAX_PAGE_SIZE), default=50, show_default=True, help="How many groups."
)
@click.pass_obj
def groups(invocation: Invocation, /, *, limit: int, **options: Any) -> None:
    """Group dead letters by their cause, the most frequent first.

    A cause is task, error class, exception type, message without numbers, ids and quoted values, and the
    innermost line of the application. ERROR is that of the letter that died last. BREAKER says that the
    breaker of the task is not closed: run again now, the jobs would wait, or fail again.
    """
    filters = dead_filters(options)

    async def read(app: Fairlane) -> tuple[Sequence[DeadGroup], Instant]:
        return await app.dead.agroups(limit=limit, **filters), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(found, groups_view(now), empty="No dead letter matches.")
    warning = breaker_warning(found)
    if warning is not None:
        invocation.output.note(warning)


@click.command(cls=Command)
@with_dead_filters(ALL)
@click.pass_obj
def stats(invocation: Invocation, /, **options: Any) -> None:
    """Count dead letters by review, error class, queue, task and tenant."""
    filters = dead_filters(options)
    found = invocation.run(lambda app: app.dead.astatistics(**filters))
    invocation.output.record(statistics_fields(found), statistics_json(found))


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@with_dead_filters(ALL)
@click.pass_obj
def export(invocation: Invocation, /, file: str, **options: Any) -> None:
    """Write dead letters as JSON lines into FILE, or to standard output if it is `-`.

    With arguments, attempts and review; what looks secret is redacted. An existing file is replaced.
    """
    filters = dead_filters(options)
    written = write_to(
        file, invocation, lambda to: invocation.run(lambda app: app.dead.aexport(to, **filters))
    )
    invocation.output.note(f"{letters(written)} written.")
