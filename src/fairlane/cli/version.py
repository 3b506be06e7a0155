"""`fairlane version`: which Fairlane this is, and what it runs on."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

import click

from fairlane.cli.command import Command
from fairlane.cli.session import Session


@click.command(cls=Command)
@click.pass_obj
def version(session: Session) -> None:
    """Show the version of Fairlane.

    With --json also those of Python and SQLite.
    """
    if session.is_json:
        import apsw

        answer = {
            "fairlane": version_of("fairlane"),
            "python": platform.python_version(),
            "sqlite": apsw.sqlite_lib_version(),
        }
        session.output.answer("", answer)
    else:
        click.echo(f"fairlane {version_of('fairlane')}")
