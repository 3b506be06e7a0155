"""`fairlane relay`: move jobs from an outbox in the application's own database to the store."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, Final, get_args

import click

from fairlane import Relay
from fairlane.cli import kinds
from fairlane.cli.application import find
from fairlane.cli.command import Command
from fairlane.cli.session import Session
from fairlane.cli.terms import log
from fairlane.model.errors import ConfigError, FairlaneError, StoreUnavailable
from fairlane.outbox.table import ParamStyle

_FORM: Final = "MODULE:FUNCTION, as in shop.db:connect"


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.option("--connect", metavar="MODULE:FUNCTION", help="What opens a DB-API connection to your database.")
@click.option("--sqlite", metavar="FILE", help="Or the SQLite file that has the outbox.")
@click.option(
    "--paramstyle",
    type=click.Choice(get_args(ParamStyle)),
    default="qmark",
    show_default=True,
    help="As PEP 249 says.",
)
@click.option("--poll", type=kinds.DURATION, default=0.25, help="How often an empty outbox is looked at.")
@click.option("--once", is_flag=True, help="Move what is there now, and end.")
@log
@click.pass_obj
def relay(
    session: Session,
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

    Each once, and in order for each tenant, until SIGTERM or Ctrl-C. Any number of relays may run at once.
    What goes wrong is logged and tried again; with --once it ends the command.
    """
    session.application = named or session.application
    session.log_to_stderr(log_form)
    moving = Relay(session.app, _opener(connect, sqlite), paramstyle=paramstyle, poll=poll)
    if once:
        number = _drain(moving)
        session.output.answer(f"{number} job(s) moved.", {"moved": number})
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
    except Exception as error:  # a database library's errors are of any class
        raise StoreUnavailable(f"the outbox cannot be moved: {type(error).__name__}: {error}") from error


def _opener(connect: str | None, sqlite: str | None) -> Callable[[], Any]:
    if (connect is None) == (sqlite is None):
        message = "say where the outbox is: --connect MODULE:FUNCTION or --sqlite FILE"
        raise click.UsageError(message)
    if sqlite is not None:
        return lambda: sqlite3.connect(f"file:{sqlite}?mode=rw", uri=True)
    _, found = find(connect or "", "connect", _FORM)
    if not callable(found):
        raise ConfigError(f"{connect} is no function.", key="connect", allowed=_FORM)
    opener: Callable[[], Any] = found
    return opener
