"""`fairlane migrate`: create or upgrade the store's schema, or show what is missing."""

from __future__ import annotations

import click
import msgspec

from fairlane.cli.command import Command
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation
from fairlane.store.contract.upkeep import MigrateReply


@click.command(cls=Command)
@click.option("--plan", "is_plan", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--check", "is_check", is_flag=True, help="Like --plan; exit with 1 if anything is missing.")
@click.pass_obj
def migrate(invocation: Invocation, *, is_plan: bool, is_check: bool) -> None:
    """Create the store, or upgrade it to this version's schema.

    Safe to repeat, and safe to run several times at once. There is no downgrade: make a backup first.
    """
    if is_plan or is_check:
        planned = invocation.run(lambda app: app.client.store.upkeep.plan(), makes_store=True)
        steps = ", ".join(planned.steps)
        text = f"Missing, from schema {planned.before} to {planned.after}: {steps}."
        invocation.output.answer(text if steps else _nothing(planned.after), msgspec.to_builtins(planned))
        if is_check and steps:
            raise click.exceptions.Exit(Exit.REFUSED)
        return
    reply = invocation.run(lambda app: app.client.store.upkeep.migrate(), makes_store=True)
    text = f"{migrated(reply)[:-1]}: {', '.join(reply.steps)}."
    invocation.output.answer(text if reply.steps else _nothing(reply.after), msgspec.to_builtins(reply))


def migrated(reply: MigrateReply) -> str:
    """Say what a migration has done.

    >>> migrated(MigrateReply(0, 6)), migrated(MigrateReply(5, 6))
    ('Created the store with schema 6.', 'Migrated from schema 5 to 6.')
    """
    if not reply.before:
        return f"Created the store with schema {reply.after}."
    return f"Migrated from schema {reply.before} to {reply.after}."


def _nothing(version: int) -> str:
    return f"Nothing to do: the schema is at version {version}."
