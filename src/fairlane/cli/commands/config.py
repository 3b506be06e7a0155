"""`fairlane config show`: every setting in force, and where it comes from."""

from __future__ import annotations

from typing import Final

import click

from fairlane.app.config.display import DEFAULT, ConfigRow, layers, rows
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation
from fairlane.cli.render.output import TableView

_VALUES: Final[TableView[ConfigRow]] = TableView(
    {"KEY": lambda row: row.key, "VALUE": lambda row: row.value},
    lambda row: {"key": row.key, "value": row.value},
)
_SOURCES: Final[TableView[ConfigRow]] = TableView(
    {"KEY": lambda row: row.key, "VALUE": lambda row: row.value, "SOURCE": lambda row: row.source},
    lambda row: row._asdict(),
)


@click.group(cls=Group)
def config() -> None:
    """Show every setting in force, and where it comes from."""


@config.command(cls=Command)
@click.option("--sources", is_flag=True, help="Show where each value comes from.")
@click.option("--changed", is_flag=True, help="Show only values that differ from the default.")
@click.pass_obj
def show(invocation: Invocation, *, sources: bool, changed: bool) -> None:
    """Show every setting in force.

    With --sources also where each comes from: code, a line of the file, the environment, or the command line.
    Secrets are hidden. Limits that were set at run time override all of these; see `fairlane limits`.
    """
    configuration = invocation.app.configuration
    found = [row for row in rows(configuration) if not changed or row.source != DEFAULT]
    invocation.output.table(
        found, _SOURCES if sources else _VALUES, empty="Every setting has its default value."
    )
    if sources and not invocation.is_json:
        invocation.output.note(f"Read from: {', then '.join(layers(configuration))}.")
