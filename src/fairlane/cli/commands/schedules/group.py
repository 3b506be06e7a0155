"""`fairlane schedules`: the command of schedules."""

from __future__ import annotations

import click

from fairlane.cli.command import Group
from fairlane.cli.commands.schedules.changing import (
    add,
    backfill,
    edit,
    pause,
    recompute,
    remove,
    reset,
    resume,
    run,
)
from fairlane.cli.commands.schedules.looking import history, list_schedules, next_runs, preview, show


@click.group(cls=Group, lists=True)
def schedules() -> None:
    """Show schedules and change them. Default: list.

    What is changed here survives deploys, until `reset`. Times without a zone are those of the schedule.
    """


for _command in (
    *(list_schedules, show, next_runs, history, preview),
    *(add, edit, pause, resume, run, remove, reset, recompute, backfill),
):
    schedules.add_command(_command)
