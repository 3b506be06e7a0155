"""`fairlane events`: what happened, listed or followed."""

from __future__ import annotations

from typing import Any

import click

from fairlane import EventView, Fairlane, Page
from fairlane.app.journals.views import event_json
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.journal_filters import event_filters, with_journal_filters
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.journal import event_line, events_view
from fairlane.cli.shared_options import paged, refuse_cursor
from fairlane.model.instants import Instant
from fairlane.store.contract.request import MAX_PAGE_SIZE


@click.group(cls=Group, lists=True)
def events() -> None:
    """Show what happened: list, tail. Default: list.

    A worker or `fairlane scheduler` numbers events within seconds; until then they are not shown.
    """


@events.command("list", cls=Command)
@with_journal_filters(of_events=True)
@paged("events", most=MAX_PAGE_SIZE)
@click.pass_obj
def list_events(invocation: Invocation, /, *, limit: int, cursor: str | None, **options: Any) -> None:
    """List events, the newest first."""
    filters = event_filters(options)

    async def read(app: Fairlane) -> tuple[Page[EventView], Instant]:
        return await app.events.afind(limit=limit, cursor=cursor, **filters), await now_of(app)

    with refuse_cursor():
        page, now = invocation.run(read)
    invocation.output.table(page.items, events_view(now), empty="No event matches.")
    if page.cursor is not None:
        invocation.output.note(f"There may be more: continue with --cursor {page.cursor}")


@events.command(cls=Command)
@with_journal_filters(of_events=True)
@click.option(
    "--after", type=click.IntRange(0), help="Begin after this number; default: with the next event."
)
@click.pass_obj
def tail(invocation: Invocation, /, *, after: int | None, **options: Any) -> None:
    """Print events as they happen, a line each, until Ctrl-C."""
    filters = event_filters(options)

    async def follow(app: Fairlane) -> None:
        async for event in app.events.atail(after=after, **filters):
            invocation.output.answer(event_line(event), event_json(event))

    invocation.run(follow)
