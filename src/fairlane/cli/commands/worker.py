"""`fairlane worker` and `scheduler`: commands that run until they are stopped.

A worker is run by a supervisor, which starts the same command line again as its worker processes.
"""

from __future__ import annotations

import click

from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation
from fairlane.cli.process_options import health_port_option, own_app, processes_option, supervised
from fairlane.cli.shared_options import log, log_tracebacks


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.option("--lane", "lanes", multiple=True, metavar="NAME", help="Serve only this lane; may be repeated.")
@click.option("--burst", is_flag=True, help="Exit when no job can be claimed and none runs.")
@click.option(
    "--duties/--no-duties",
    default=None,
    help="Run the duties too, such as promote, reclaim and prune, or not.",
)
@processes_option
@health_port_option
@log
@log_tracebacks
@click.pass_obj
def worker(
    invocation: Invocation,
    *,
    named: str | None,
    lanes: tuple[str, ...],
    burst: bool,
    duties: bool | None,
    processes: int | None,
    health_port: int | None,
    log_form: str | None,
    log_tracebacks: bool,
) -> None:
    """Run the application's jobs until SIGTERM or Ctrl-C.

    After the first signal, running jobs may continue until the shutdown deadline; a second one stops them at
    once. A small supervisor starts the worker processes and replaces those that end. After SIGHUP it replaces
    all of them, one after the other.
    """
    invocation.set_setting("--health-port", "worker.health_port", health_port)
    supervisor = supervised(invocation, processes, log_form, is_burst=burst)
    from fairlane.worker.command import run_worker

    app = own_app(invocation, named, log_form, has_tracebacks=log_tracebacks)
    raise click.exceptions.Exit(
        run_worker(app, burst=burst, duties=duties, lanes=lanes or None, supervisor=supervisor)
    )


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@health_port_option
@log
@click.pass_obj
def scheduler(
    invocation: Invocation, *, named: str | None, health_port: int | None, log_form: str | None
) -> None:
    """Run only the duties, such as promote, reclaim and prune. Any number of schedulers may run."""
    from fairlane.duties.command import run_scheduler

    invocation.set_setting("--health-port", "worker.health_port", health_port)
    raise click.exceptions.Exit(run_scheduler(own_app(invocation, named, log_form)))
