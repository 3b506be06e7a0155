"""`fairlane dead ack`, `note`, `resolve`, `ignore`, `discard`, `reprocess`, `delete` and `purge`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import click

from fairlane import BulkResult, Fairlane, Job
from fairlane.app.dead.filters import DeadFilters
from fairlane.cli import value_types
from fairlane.cli.argument_pairs import Arguments, arguments_of, object_of
from fairlane.cli.command import Command
from fairlane.cli.commands.dead.answers import decide_each, print_result, progress_of
from fairlane.cli.commands.dead.filters import ALL, are_given, dead_filters, with_dead_filters
from fairlane.cli.commands.steer import task_of
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.dead import breaker_warning, letters
from fairlane.cli.shared_options import note as note_option
from fairlane.cli.shared_options import required_note
from fairlane.model.instants import to_datetime, to_micros
from fairlane.model.scope import Scope
from fairlane.store.contract.request import MAX_PAGE_SIZE

F = TypeVar("F", bound=Callable[..., Any])

_ids: Final = click.argument("ids", type=value_types.JOB, nargs=-1, metavar="[ID]...")
_yes: Final = click.option("--yes", is_flag=True, help="Do not ask before changing all that match.")
_limit: Final = click.option(
    "--limit", type=click.IntRange(1), help="Change at most this many of all that match."
)
_all: Final = click.option("--all", "is_all", is_flag=True, help="All that match, or all there are.")


def one_or_all(review: str) -> Callable[[F], F]:
    """Add the ids, and the options that choose all letters that match instead."""

    def decorate(command: F) -> F:
        for option in (_yes, _limit, with_dead_filters(review), _all, _ids):
            command = option(command)
        return command

    return decorate


def is_bulk(ids: Sequence[UUID], *, is_all: bool) -> bool:
    """Whether all letters that match are meant; a usage error if it is unclear which are."""
    has_filters = is_all or are_given(click.get_current_context())
    if ids and has_filters:
        message = "give either ids, or filters for all that match"
        raise click.UsageError(message)
    if not ids and not has_filters:
        message = "name dead letters by their ids, or give filters, or --all for all there are"
        raise click.UsageError(message)
    return not ids


def _decision(verb: str, name: str, past: str, text: str) -> click.Command:
    """Return the command of one decision, about letters by their ids or about all that match."""

    @click.command(name, cls=Command, help=text)
    @one_or_all("pending")
    @note_option
    @click.pass_obj
    def command(
        invocation: Invocation,
        /,
        *,
        ids: tuple[UUID, ...],
        is_all: bool,
        limit: int | None,
        yes: bool,
        note: str,
        **options: Any,
    ) -> None:
        if is_bulk(ids, is_all=is_all):
            filters = dead_filters(options)

            async def work(app: Fairlane) -> BulkResult:
                act = getattr(app.dead, f"a{verb}_all")
                result: BulkResult = await act(
                    note=note, limit=limit, on_progress=progress_of(invocation), **filters
                )
                return result

            _confirm(invocation, verb, filters, limit, yes=yes)
            print_result(invocation, invocation.run(work), past)
            return

        async def decide(app: Fairlane, id: UUID) -> str:
            view = await getattr(app.dead, f"a{verb}")(id, note=note)
            return str(view.review if verb != "acknowledge" else past)

        decide_each(invocation, ids, decide)

    return command


def _confirm(
    invocation: Invocation, verb: str, filters: DeadFilters, limit: int | None, *, yes: bool
) -> None:
    """Ask with the number of letters that match."""

    async def count(app: Fairlane) -> int:
        return sum((await app.dead.acount(**filters)).values())

    if not yes:
        invocation.refuse_without_terminal("it would change all dead letters that match")
        matches = invocation.run(count)
        some = f"{min(limit, matches):,} of " if limit is not None and limit < matches else ""
        invocation.confirm(f"{verb.capitalize()} {some}{letters(matches)}?", yes=False)


def _warn(invocation: Invocation, filters: DeadFilters) -> None:
    """Say whether what the letters failed on is still out of order, as far as breakers know."""
    warning = breaker_warning(invocation.run(lambda app: app.dead.agroups(limit=MAX_PAGE_SIZE, **filters)))
    if warning is not None:
        invocation.output.note(warning)


ack: Final = _decision(
    "acknowledge",
    "ack",
    "acknowledged",
    "Note that somebody looks after dead letters; they still await a decision.",
)
resolve: Final = _decision(
    "resolve",
    "resolve",
    "resolved",
    "Decide that dead letters are dealt with: what they were for is done.",
)
ignore: Final = _decision("ignore", "ignore", "ignored", "Decide that dead letters do not matter.")
discard: Final = _decision(
    "discard",
    "discard",
    "discarded",
    "Decide for good that dead letters must not run again. They are kept until their time is over.",
)


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.argument("text", type=value_types.REASON)
@click.pass_obj
def note(invocation: Invocation, id: UUID, text: str) -> None:
    """Add a note to a dead letter, whatever was decided about it."""

    async def decide(app: Fairlane, id: UUID) -> str:
        await app.dead.anote(id, text)
        return "noted"

    decide_each(invocation, [id], decide)


@click.command(cls=Command)
@one_or_all("pending")
@click.option("--to-queue", type=value_types.QUEUE, help="Run in this queue instead of the dead job's.")
@click.option("--arg", "pairs", multiple=True, metavar="KEY=VALUE", help="Of one ID: a new argument.")
@click.option("--args", "whole", metavar="JSON", help="Of one ID: new arguments as one JSON object.")
@note_option
@click.pass_obj
def reprocess(
    invocation: Invocation,
    /,
    *,
    ids: tuple[UUID, ...],
    is_all: bool,
    limit: int | None,
    yes: bool,
    to_queue: str | None,
    pairs: tuple[str, ...],
    whole: str | None,
    note: str,
    **options: Any,
) -> None:
    """Run dead jobs again, each as a new job with the same arguments.

    The new job has the dead one as its parent, its correlation id, tags and metadata, and starts with all its
    attempts. A letter that runs again already is not run twice. New arguments are read and checked as in
    `fairlane enqueue`; those that are not given stay.
    """
    if pairs and whole is not None:
        message = "give only one of --arg and --args"
        raise click.UsageError(message)
    if (pairs or whole is not None) and len(ids) != 1:
        message = "--arg and --args need exactly one ID"
        raise click.UsageError(message)
    if is_bulk(ids, is_all=is_all):
        filters = dead_filters(options)
        _warn(invocation, filters)
        _confirm(invocation, "reprocess", filters, limit, yes=yes)
        result = invocation.run(
            lambda app: app.dead.areprocess_all(
                to_queue=to_queue, note=note, limit=limit, on_progress=progress_of(invocation), **filters
            )
        )
        print_result(invocation, result, "run again")
        return
    given = None if whole is None else object_of(whole, "--args")

    async def decide(app: Fairlane, id: UUID) -> Job[Any]:
        arguments: Arguments | None = given
        if pairs:
            record = await app.client.aget(id, Scope.all())
            arguments = arguments_of(pairs, await task_of(app, record.task, record.tenant))
        return await app.dead.areprocess(id, arguments=arguments, to_queue=to_queue, note=note)

    decide_each(invocation, ids, decide)


@click.command(cls=Command)
@one_or_all("pending")
@note_option
@click.pass_obj
def delete(
    invocation: Invocation,
    /,
    *,
    ids: tuple[UUID, ...],
    is_all: bool,
    limit: int | None,
    yes: bool,
    note: str,
    **options: Any,
) -> None:
    """Delete dead letters with their jobs for good."""
    if is_bulk(ids, is_all=is_all):
        filters = dead_filters(options)
        _confirm(invocation, "delete", filters, limit, yes=yes)
        result = invocation.run(
            lambda app: app.dead.adelete_all(
                note=note, limit=limit, on_progress=progress_of(invocation), **filters
            )
        )
        print_result(invocation, result, "deleted")
        return
    invocation.confirm(f"Permanently delete {letters(len(ids))}?", yes=yes)

    async def decide(app: Fairlane, id: UUID) -> str:
        await app.dead.adelete(id, note=note)
        return "deleted"

    decide_each(invocation, ids, decide)


@click.command(cls=Command)
@click.option(
    "--older-than",
    type=value_types.TIME_OR_DURATION,
    required=True,
    help="Died before this time, or longer ago than this (30d).",
)
@with_dead_filters(ALL, has_until=False)
@required_note
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def purge(
    invocation: Invocation, /, *, older_than: datetime | timedelta, note: str, yes: bool, **options: Any
) -> None:
    """Delete old dead letters with their jobs for good, whatever was decided about them."""
    filters = dead_filters(options)

    async def before(app: Fairlane) -> datetime:
        if isinstance(older_than, datetime):
            return older_than
        return to_datetime(max(0, await now_of(app) - to_micros(older_than)))

    if not yes:
        invocation.refuse_without_terminal("this cannot be undone")
        _confirm(invocation, "delete", {**filters, "until": invocation.run(before)}, None, yes=False)
    number = invocation.run(
        lambda app: app.dead.apurge(
            older_than=older_than, note=note, on_progress=progress_of(invocation), **filters
        )
    )
    invocation.output.answer(f"{letters(number)} deleted.", {"deleted": number})
