"""`fairlane dead`: the command of dead letters."""

from __future__ import annotations

import click

from fairlane.cli.command import Group
from fairlane.cli.commands.dead.deciding import ack, delete, discard, ignore, note, purge, reprocess, resolve
from fairlane.cli.commands.dead.looking import export, groups, list_letters, show, stats


@click.group(cls=Group, lists=True)
def dead() -> None:
    """Review dead letters, and run them again. Default: list.

    The commands that change letters take ids, or filters and then change all that match, after asking with
    their number.
    """


for _command in (
    *(list_letters, show, groups, stats),
    *(ack, note, reprocess, resolve, ignore, discard, delete),
    *(export, purge),
):
    dead.add_command(_command)
