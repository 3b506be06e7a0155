"""What commands share that run until they are stopped: their application, and the supervisor around them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from fairlane.app.config.keys import LAST_PORT, MOST_PROCESSES
from fairlane.cli.invocation import Invocation
from fairlane.supervisor.control import ProcessKind, SupervisorConnection
from fairlane.supervisor.settings import wanted_processes

if TYPE_CHECKING:
    from fairlane import Fairlane

processes_option: Final = click.option(
    "--processes",
    type=click.IntRange(0, MOST_PROCESSES),
    metavar="N",
    help="Share the slots among N processes; 0 works in this process, without a supervisor. Default 1.",
)


health_port_option: Final = click.option(
    "--health-port",
    type=click.IntRange(1, LAST_PORT),
    metavar="N",
    help="Answer /livez, /readyz and /health on this port. Default: none.",
)


def own_app(
    invocation: Invocation, named: str | None, log_form: str | None, *, has_tracebacks: bool = False
) -> Fairlane:
    """Return the application given as MODULE:APP, by --app, or in the configuration."""
    if named is not None:
        invocation.application = named
    invocation.log_to_stderr(log_form, has_tracebacks=has_tracebacks)
    return invocation.own_app


def supervised(
    invocation: Invocation,
    processes: int | None,
    log_form: str | None,
    *,
    is_burst: bool = False,
    beside: Sequence[ProcessKind] = (),
) -> SupervisorConnection | None:
    """Return the connection to this process's supervisor; if it has none, be one, then exit.

    None if no supervisor is wanted. `beside` the workers there is one process of each of these kinds.
    """
    invocation.set_setting("--processes", "worker.processes", processes)
    connection = SupervisorConnection.inherited(os.environ)
    if connection is not None:
        return connection
    count = wanted_processes(processes, invocation.config)
    if count == 0:
        return None
    from fairlane.supervisor.supervisor import supervise

    invocation.log_to_stderr(log_form)
    raise click.exceptions.Exit(supervise(invocation.arguments, count, is_burst=is_burst, beside=beside))
