"""`fairlane worker`, `up` and `scheduler`: the commands that run until they are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation
from fairlane.cli.shared_options import log, log_tracebacks

if TYPE_CHECKING:
    from fairlane import Fairlane


def _own_app(
    invocation: Invocation, named: str | None, log_form: str | None, *, has_tracebacks: bool = False
) -> Fairlane:
    """Return the application given as MODULE:APP, by --app, or in the configuration."""
    if named is not None:
        invocation.application = named
    invocation.log_to_stderr(log_form, has_tracebacks=has_tracebacks)
    return invocation.own_app


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.option("--lane", "lanes", multiple=True, metavar="NAME", help="Serve only this lane; may be repeated.")
@click.option("--burst", is_flag=True, help="Exit when no job can be claimed and none runs.")
@click.option(
    "--duties/--no-duties",
    default=None,
    help="Run the duties too (promote, reclaim, expire, prune, clean), or not.",
)
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
    log_form: str | None,
    log_tracebacks: bool,
) -> None:
    """Run the application's jobs until SIGTERM or Ctrl-C.

    After the first signal, running jobs may continue until the shutdown deadline; a second one stops them at
    once.
    """
    from fairlane.worker.command import run_worker

    app = _own_app(invocation, named, log_form, has_tracebacks=log_tracebacks)
    raise click.exceptions.Exit(run_worker(app, burst=burst, duties=duties, lanes=lanes or None))


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@log
@log_tracebacks
@click.pass_obj
def up(invocation: Invocation, *, named: str | None, log_form: str | None, log_tracebacks: bool) -> None:
    """Create or upgrade the store, then run jobs and duties.

    Everything that an application needs on one machine. With several machines run `fairlane migrate` once,
    and `fairlane worker` on each.
    """
    from fairlane.worker.command import run_worker

    app = _own_app(invocation, named, log_form, has_tracebacks=log_tracebacks)
    reply = invocation.run(lambda app: app.client.store.upkeep.migrate(), makes_store=True)
    if reply.steps:
        invocation.output.note(f"Migrated from schema {reply.before} to {reply.after}.")
    raise click.exceptions.Exit(run_worker(app, duties=True))


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@log
@click.pass_obj
def scheduler(invocation: Invocation, *, named: str | None, log_form: str | None) -> None:
    """Run only the duties: promote, reclaim, expire, prune, clean. Any number of schedulers may run."""
    from fairlane.duties.command import run_scheduler

    raise click.exceptions.Exit(run_scheduler(_own_app(invocation, named, log_form)))
