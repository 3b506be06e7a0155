"""`fairlane config show`: what holds, and where each value comes from."""

from __future__ import annotations

from typing import Final

import click

from fairlane.app.config.showing import DEFAULT, Row, layers, rows
from fairlane.cli.command import Command, Group
from fairlane.cli.output import View
from fairlane.cli.session import Session

_VALUES: Final[View[Row]] = View(
    {"KEY": lambda row: row.key, "VALUE": lambda row: row.value},
    lambda row: {"key": row.key, "value": row.value},
)
_SOURCES: Final[View[Row]] = View(
    {"KEY": lambda row: row.key, "VALUE": lambda row: row.value, "SOURCE": lambda row: row.source},
    lambda row: row._asdict(),
)


@click.group(cls=Group)
def config() -> None:
    """Show every setting in force, and where it is from."""


@config.command(cls=Command)
@click.option("--sources", is_flag=True, help="Say where each value is from.")
@click.option("--changed", is_flag=True, help="Leave out what is as it is by default.")
@click.pass_obj
def show(session: Session, *, sources: bool, changed: bool) -> None:
    """Show every setting in force.

    With --sources also where it is from: code, a line of the file, the environment, or the command line.
    Secrets are not shown. What was set at run time, above all of this, is shown by `fairlane limits`.
    """
    configuration = session.app.configuration
    found = [row for row in rows(configuration) if not changed or row.source != DEFAULT]
    session.output.table(found, _SOURCES if sources else _VALUES, empty="Everything is as it is by default.")
    if sources and not session.is_json:
        session.output.remark(f"Read from: {', then '.join(layers(configuration))}.")
