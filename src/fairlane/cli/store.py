"""`fairlane migrate`: bring the store to this version's schema."""

from __future__ import annotations

import click
import msgspec

from fairlane.cli.command import Command
from fairlane.cli.session import Session


@click.command(cls=Command)
@click.pass_obj
def migrate(session: Session) -> None:
    """Make the store, or bring it to this version's schema.

    Safe to repeat, and safe by several at once. It never goes back: keep a backup of what you cannot lose.
    """
    reply = session.run(lambda app: app.client.store.upkeep.migrate(), makes_store=True)
    if reply.steps:
        text = f"Migrated from schema {reply.before} to {reply.after}: {', '.join(reply.steps)}."
    else:
        text = f"Nothing to do: the schema is {reply.after}."
    session.output.answer(text, msgspec.to_builtins(reply))
