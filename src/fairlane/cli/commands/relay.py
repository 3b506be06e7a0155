"""`fairlane relay`: move jobs from an outbox in the application's database to the store."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, Final, get_args

import click

from fairlane import Relay
from fairlane.cli import value_types
from fairlane.cli.application import find
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation
from fairlane.cli.shared_options import log
from fairlane.model.errors import ConfigError, FairlaneError, StoreUnavailable
from fairlane.outbox.table import ParamStyle

_FORM: Final = "MODULE:FUNCTION, as in shop.db:connect"


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.option(
    "--connect", metavar="MODULE:FUNCTION", help="A function that opens a DB-API connection to your database."
)
@click.option("--sqlite", metavar="FILE", help="Or the SQLite file with the outbox.")
@click.option(
    "--paramstyle",
    type=click.Choice(get_args(ParamStyle)),
    default="qmark",
    show_default=True,
    help="The paramstyle of the database library (PEP 249).",
)
@click.option(
    "--poll",
    type=value_types.DURATION,
    default=0.25,
    help="How long to wait between looks at an empty outbox.",
)
@click.option("--once", is_flag=True, help="Move the jobs that are there now, then exit.")
@log
@click.pass_obj
def relay(
    invocation: Invocation,
    *,
    named: str | None,
    connect: str | None,
    sqlite: str | None,
    paramstyle: ParamStyle,
    poll: float,
    once: bool,
    log_form: str | None,
) -> None:
    """Move jobs from your outbox to the store.

    Runs until SIGTERM or Ctrl-C. Each job is moved once, in order for each tenant. Any number of relays may
    run at once. Errors are logged and retried; with --once an error ends the command.
    """
    invocation.application = named or invocation.application
    invocation.log_to_stderr(log_form)
    moving = Relay(invocation.app, _opener(connect, sqlite), paramstyle=paramstyle, poll=poll)
    if once:
        number = _drain(moving)
        invocation.output.answer(f"{number} job(s) moved.", {"moved": number})
        return
    stop = threading.Event()

    def heard(_number: int, _frame: object) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, heard)
    moving.run(stop)


def _drain(moving: Relay) -> int:
    try:
        return moving.drain()
    except FairlaneError:
        raise
    except Exception as error:  # a database library may raise anything
        raise StoreUnavailable(f"the outbox cannot be read: {type(error).__name__}: {error}") from error


def _opener(connect: str | None, sqlite: str | None) -> Callable[[], Any]:
    if (connect is None) == (sqlite is None):
        message = "give the outbox: either --connect MODULE:FUNCTION or --sqlite FILE"
        raise click.UsageError(message)
    if sqlite is not None:
        return lambda: sqlite3.connect(f"file:{sqlite}?mode=rw", uri=True)
    _, found = find(connect or "", "connect", _FORM)
    if not callable(found):
        raise ConfigError(f"{connect} is not a function.", key="connect", allowed=_FORM)
    opener: Callable[[], Any] = found
    return opener
