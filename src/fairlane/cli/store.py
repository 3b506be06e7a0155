"""`fairlane migrate`: bring the store to this version's schema, or say what is missing."""

from __future__ import annotations

import click
import msgspec

from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.session import Session


@click.command(cls=Command)
@click.option("--plan", "is_plan", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--check", "is_check", is_flag=True, help="As --plan, and exit with 1 if anything is missing.")
@click.pass_obj
def migrate(session: Session, *, is_plan: bool, is_check: bool) -> None:
    """Make the store, or bring it to this version's schema.

    Safe to repeat, and safe by several at once. It never goes back: keep a backup of what you cannot lose.
    """
    if is_plan or is_check:
        planned = session.run(lambda app: app.client.store.upkeep.plan(), makes_store=True)
        steps = ", ".join(planned.steps)
        text = f"Missing, from schema {planned.before} to {planned.after}: {steps}."
        session.output.answer(text if steps else _nothing(planned.after), msgspec.to_builtins(planned))
        if is_check and steps:
            raise click.exceptions.Exit(Exit.REFUSED)
        return
    reply = session.run(lambda app: app.client.store.upkeep.migrate(), makes_store=True)
    text = f"Migrated from schema {reply.before} to {reply.after}: {', '.join(reply.steps)}."
    session.output.answer(text if reply.steps else _nothing(reply.after), msgspec.to_builtins(reply))


def _nothing(version: int) -> str:
    return f"Nothing to do: the schema is {version}."
