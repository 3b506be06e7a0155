"""`fairlane version`: the versions of Fairlane, Python and SQLite."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

import click

from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation


@click.command(cls=Command)
@click.pass_obj
def version(invocation: Invocation) -> None:
    """Show the version of Fairlane.

    With --json also the versions of Python and SQLite.
    """
    if invocation.is_json:
        import apsw

        answer = {
            "fairlane": version_of("fairlane"),
            "python": platform.python_version(),
            "sqlite": apsw.sqlite_lib_version(),
        }
        invocation.output.answer("", answer)
    else:
        click.echo(f"fairlane {version_of('fairlane')}")
