"""`fairlane top`: queues, tenants, workers and jobs, live in a terminal."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

import click

from fairlane import Fairlane
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation
from fairlane.model.errors import ConfigError
from fairlane.model.instants import to_micros

_LEAST: Final = 0.5


@click.command(cls=Command)
@click.argument("view", type=click.Choice(["queues", "tenants", "workers", "jobs"]), default="queues")
@click.option(
    "--every",
    type=value_types.DURATION,
    default="2s",
    show_default=True,
    help="How often to look; at least 500ms.",
)
@click.pass_obj
def top(invocation: Invocation, *, view: str, every: float) -> None:
    """Watch queues, tenants, workers and jobs live in a terminal. Only reads.

    Keys: 1 to 4 or Tab choose the view, / filters (jobs by a query such as task:mail.*), s sorts by the next
    column, r reverses, Enter opens the row, Space pauses, q quits. Needs fairlane[top].
    """
    if find_spec("textual") is None:
        message = "it needs textual, which is not installed; install it with: pip install 'fairlane[top]'"
        raise ConfigError(message, key="top")
    if every < _LEAST:
        message = "at least 500ms: looking more often would only cost the store"
        raise click.BadParameter(message, param_hint="--every")
    if invocation.is_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        message = "it needs a terminal; `fairlane queues`, `tenants`, `workers` and `jobs` print once"
        raise click.UsageError(message)
    from fairlane.cli.top.board import TopBoard

    async def show(app: Fairlane) -> None:
        await TopBoard(app, view, to_micros(every)).run_async()

    invocation.run(show)
