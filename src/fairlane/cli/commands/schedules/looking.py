"""`fairlane schedules list`, `show`, `next`, `history` and `preview`: look at schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import click

from fairlane import Fairlane, ScheduleView, SlotView
from fairlane.app.schedules.schedule_json import schedule_json
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.commands.schedules.options import SCHEDULE, refuse_values, with_times, words_of
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.cli.render.schedules import (
    preview_json,
    preview_text,
    run_text,
    schedule_fields,
    schedules_view,
    slots_view,
)
from fairlane.cli.shared_options import paged, refuse_cursor
from fairlane.model.instants import Instant, iso

_SHOWN: Final = 5
_MOST: Final = 1_000


@click.command("list", cls=Command)
@click.option("--task", type=value_types.TASK, help="Only those of this task.")
@click.option("--active", is_flag=True, help="Only those that make jobs: neither paused nor retired.")
@paged("schedules", _MOST)
@click.pass_obj
def list_schedules(
    invocation: Invocation, *, task: str | None, active: bool, limit: int, cursor: str | None
) -> None:
    """List schedules: in words, when each runs next, and for whom."""

    async def read(app: Fairlane) -> tuple[Sequence[ScheduleView], str | None, Instant]:
        page = await app.schedules.alist(task=task, active=active, limit=limit, cursor=cursor)
        return page.items, page.cursor, await now_of(app)

    with refuse_cursor():
        found, more, now = invocation.run(read)
    invocation.output.table(found, schedules_view(now), empty="There is no such schedule.")
    if more is not None:
        invocation.output.note(f"There may be more: continue with --cursor {more}")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show everything about one schedule, and its next runs."""

    async def read(app: Fairlane) -> tuple[ScheduleView, Sequence[datetime], Instant]:
        return await app.schedules.aget(name), await app.schedules.anext(name, _SHOWN), await now_of(app)

    view, runs, now = invocation.run(read)
    invocation.output.record(schedule_fields(view, runs, now), schedule_json(view))


@click.command("next", cls=Command)
@click.argument("name", type=SCHEDULE)
@click.option(
    "-n", "--count", type=click.IntRange(1, _MOST), default=_SHOWN, show_default=True, help="How many runs."
)
@click.pass_obj
def next_runs(invocation: Invocation, name: str, *, count: int) -> None:
    """List the next runs of a schedule, as if it were not paused."""

    async def read(app: Fairlane) -> tuple[ScheduleView, Sequence[datetime]]:
        return await app.schedules.aget(name), await app.schedules.anext(name, count)

    view, runs = invocation.run(read)
    rows: TableView[datetime] = TableView(
        {"RUN": lambda run: run_text(run, view.timezone)}, lambda run: {"at": iso(run)}
    )
    invocation.output.table(runs, rows, empty="It will not run again.")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@paged("slots", _MOST)
@click.pass_obj
def history(invocation: Invocation, name: str, *, limit: int, cursor: str | None) -> None:
    """List the slots of a schedule, newest first: what became of each, and its job.

    They are kept for 30 days, also those of a schedule that was removed.
    """

    async def read(app: Fairlane) -> tuple[Sequence[SlotView], str | None, Instant]:
        page = await app.schedules.ahistory(name, limit=limit, cursor=cursor)
        return page.items, page.cursor, await now_of(app)

    with refuse_cursor():
        found, more, now = invocation.run(read)
    invocation.output.table(found, slots_view(now), empty="No slot was taken yet.")
    if more is not None:
        invocation.output.note(f"There may be more: continue with --cursor {more}")


@click.command(cls=Command)
@with_times
@click.option(
    "-n", "--count", type=click.IntRange(1, _MOST), default=_SHOWN, show_default=True, help="How many runs."
)
@click.pass_obj
def preview(invocation: Invocation, /, *, count: int, **options: Any) -> None:
    """Say in words when a schedule would run, and list its next runs. Saves nothing."""
    words = words_of(options)
    with refuse_values():
        seen = invocation.run(lambda app: app.schedules.apreview(count=count, **words))
    invocation.output.answer(preview_text(seen), preview_json(seen))
