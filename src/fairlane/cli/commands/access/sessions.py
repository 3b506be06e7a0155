"""`fairlane sessions`: who is signed in, and ending that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from fairlane import Fairlane, Session
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.access.options import since
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.cli.shared_options import note
from fairlane.model.instants import Instant, iso


@click.group(cls=Group, lists=True)
def sessions() -> None:
    """Show who is signed in: list, end. Default: list."""


@sessions.command("list", cls=Command)
@click.pass_obj
def list_sessions(invocation: Invocation) -> None:
    """List the sessions that have not ended, the newest first."""

    async def read(app: Fairlane) -> tuple[Sequence[Session], Instant]:
        return await app.sessions.alist(), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(found, _view(now), empty="Nobody is signed in.")


@sessions.command(cls=Command)
@click.argument("id", metavar="ID")
@note
@click.pass_obj
def end(invocation: Invocation, *, id: str, note: str) -> None:
    """End a session, at once."""
    invocation.run(lambda app: app.sessions.aend(id, note=note))
    invocation.output.answer(f"Session {id} has ended.", {"ended": id})


def _view(now: Instant) -> TableView[Session]:
    return TableView(
        {
            "SESSION": lambda session: session.id,
            "USER": lambda session: session.user,
            "ROLE": lambda session: session.role.value,
            "TENANT": lambda session: session.tenant,
            "FROM": lambda session: session.peer,
            "LAST SEEN": lambda session: since(session.seen_at, now),
            "EXPIRES": lambda session: iso(session.expires_at),
        },
        asdict,
    )
