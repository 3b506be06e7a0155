"""`fairlane config`: what holds, and where each value comes from."""

from __future__ import annotations

from typing import Final

import click

from fairlane.app.config.showing import DEFAULT, Row, layers, rows
from fairlane.cli.command import Command
from fairlane.cli.output import View
from fairlane.cli.session import Session

_VIEW: Final[View[Row]] = View(
    {"KEY": lambda row: row.key, "VALUE": lambda row: row.value, "SOURCE": lambda row: row.source},
    lambda row: row._asdict(),
)


@click.command(cls=Command)
@click.option("--changed", is_flag=True, help="Leave out what is as it is by default.")
@click.pass_obj
def config(session: Session, *, changed: bool) -> None:
    """Show every setting in force, and where it is from.

    Code, a line of the file, the environment, or the command line. Secrets are not shown. What was set at run
    time, above all of this, is shown by `fairlane limits`.
    """
    configuration = session.app.configuration
    found = [row for row in rows(configuration) if not changed or row.source != DEFAULT]
    session.output.table(found, _VIEW, empty="Everything is as it is by default.")
    if not session.is_json:
        session.output.remark(f"Read from: {', then '.join(layers(configuration))}.")
