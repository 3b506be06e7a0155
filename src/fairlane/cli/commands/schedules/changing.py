"""`fairlane schedules add`, `edit`, `pause`, `run` and the others that change a schedule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

import click

from fairlane import Fairlane, SchedulePreview, ScheduleView
from fairlane.app.schedules.options import WORDS
from fairlane.app.schedules.schedule_json import schedule_json
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.commands.schedules.options import SCHEDULE, refuse_values, with_words, words_of
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.schedules import preview_json, preview_text
from fairlane.cli.shared_options import end_of, note, required_note, with_end
from fairlane.model.instants import to_datetime

_SHOWN: Final = 3
_yes: Final = click.option("--yes", is_flag=True, help="Do not ask.")
_dry_run: Final = click.option("--dry-run", is_flag=True, help="Only say what it would do, and when.")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@click.argument("task", type=value_types.TASK)
@with_words
@note
@_dry_run
@click.pass_obj
def add(invocation: Invocation, /, name: str, task: str, *, note: str, dry_run: bool, **options: Any) -> None:
    """Add the schedule NAME of TASK. Says in words when it runs, with the next runs, before it is saved.

    Without --app a worker must have published the task. Everything that is wrong is said at once.
    """
    words: dict[str, Any] = {**words_of(options), "task": task}
    if not _is_wanted(invocation, lambda app: app.schedules.apreview(name, count=_SHOWN, **words), dry_run):
        return
    made = invocation.run(lambda app: app.schedules.aadd(name, note=note, **words))
    _tell(invocation, made, f"{name} was added.")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@click.option("--task", type=value_types.TASK, help="Another task.")
@with_words
@click.option(
    "--unset",
    multiple=True,
    type=click.Choice(WORDS),
    metavar="WORD",
    help="Remove what is words; may be repeated.",
)
@required_note
@with_end
@_dry_run
@click.pass_obj
def edit(
    invocation: Invocation,
    /,
    name: str,
    *,
    unset: tuple[str, ...],
    note: str,
    until: datetime | None,
    duration: float | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Change a schedule: what is not given stays. The edit survives deploys, until `reset` or --until."""
    changes = {**words_of(options), **dict.fromkeys(unset)}
    if not changes:
        raise click.UsageError("nothing is to be changed; give an option such as --cron or --priority")

    async def seen(app: Fairlane) -> SchedulePreview:
        return await app.schedules.apreview_edit(name, count=_SHOWN, **changes)

    if not _is_wanted(invocation, seen, dry_run):
        return

    async def work(app: Fairlane) -> ScheduleView:
        end = end_of(until, duration, await now_of(app))
        ends = None if end is None else to_datetime(end)
        return await app.schedules.aedit(name, note=note, until=ends, **changes)

    with refuse_values():
        view = invocation.run(work)
    _tell(invocation, view, f"{name} was changed.")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@required_note
@with_end
@click.pass_obj
def pause(
    invocation: Invocation, name: str, *, note: str, until: datetime | None, duration: float | None
) -> None:
    """Take no slot of a schedule. Its jobs go on; what it leaves out is not made up for."""

    async def work(app: Fairlane) -> ScheduleView:
        end = end_of(until, duration, await now_of(app))
        ends = None if end is None else to_datetime(end)
        await app.schedules.apause(name, reason=note, until=ends)
        return await app.schedules.aget(name)

    _tell(invocation, invocation.run(work), f"{name} is paused.")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@note
@click.pass_obj
def resume(invocation: Invocation, name: str, *, note: str) -> None:
    """End the pause of a schedule. It goes on with its next run."""

    async def work(app: Fairlane) -> ScheduleView:
        await app.schedules.aresume(name, note=note)
        return await app.schedules.aget(name)

    _tell(invocation, invocation.run(work), f"{name} goes on.")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@note
@click.pass_obj
def run(invocation: Invocation, name: str, *, note: str) -> None:
    """Run a schedule now, once more than planned, also while it is paused; print the job."""
    job = invocation.run(lambda app: app.schedules.arun(name, note=note))
    if job is None:
        text = f"The jobs of {name} are made by the process that does the duties."
        invocation.output.answer(text, {"schedule": name, "job": None})
    else:
        invocation.output.answer(f"{job.id}", {"schedule": name, "job": str(job.id)})


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@note
@_yes
@click.pass_obj
def remove(invocation: Invocation, name: str, *, note: str, yes: bool) -> None:
    """Remove a schedule. Its slots and jobs stay; a worker that declares it declares it again."""
    invocation.confirm(f"Remove schedule {name}?", yes=yes)
    invocation.run(lambda app: app.schedules.aremove(name, note=note))
    invocation.output.answer(f"{name} was removed.", {"schedule": name, "removed": True})


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@note
@click.pass_obj
def reset(invocation: Invocation, name: str, *, note: str) -> None:
    """Undo the edit of a declared schedule."""
    with refuse_values():
        view = invocation.run(lambda app: app.schedules.areset(name, note=note))
    _tell(invocation, view, f"{name} is as declared.")


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE, required=False)
@note
@click.pass_obj
def recompute(invocation: Invocation, name: str | None, *, note: str) -> None:
    """Compute the next runs anew, of one schedule or of all, as after a change of the zone data."""
    moved = invocation.run(lambda app: app.schedules.arecompute(name, note=note))
    invocation.output.answer(f"{moved} next run(s) moved.", {"moved": moved})


@click.command(cls=Command)
@click.argument("name", type=SCHEDULE)
@click.argument("since", type=value_types.TIME)
@click.argument("until", type=value_types.TIME)
@required_note
@click.pass_obj
def backfill(invocation: Invocation, name: str, since: datetime, until: datetime, *, note: str) -> None:
    """Take the slots from SINCE to UNTIL that were missed, skipped or failed. At most 1,000."""
    with refuse_values():
        taken = invocation.run(lambda app: app.schedules.abackfill(name, since, until, note=note))
    text = f"{taken} slot(s) taken; the process that does the duties makes their jobs."
    invocation.output.answer(text, {"schedule": name, "taken": taken})


def _is_wanted(
    invocation: Invocation,
    seen: Callable[[Fairlane], Awaitable[SchedulePreview]],
    dry_run: bool,  # noqa: FBT001 (an option)
) -> bool:
    """Say when a schedule will run, before it is saved; False for a dry run, which saves nothing."""

    async def look(app: Fairlane) -> SchedulePreview:
        return await seen(app)

    with refuse_values():
        found = invocation.run(look)
    if dry_run:
        invocation.output.answer(preview_text(found), preview_json(found))
    elif not invocation.is_json:
        invocation.output.note(preview_text(found))
    return not dry_run


def _tell(invocation: Invocation, view: ScheduleView, text: str) -> None:
    invocation.output.answer(text, schedule_json(view))
