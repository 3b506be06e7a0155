"""`fairlane up`: all that an application needs on one machine, each part as a process of its own."""

from __future__ import annotations

import click

from fairlane.cli.command import Command
from fairlane.cli.commands.migrate import migrated
from fairlane.cli.commands.web import address_options, missing_packages, serve_web
from fairlane.cli.invocation import Invocation
from fairlane.cli.process_options import own_app, processes_option, supervised
from fairlane.cli.shared_options import log, log_tracebacks
from fairlane.supervisor.control import ProcessKind


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.option("--web/--no-web", "has_web", default=None, help="Serve the web too, or not.")
@address_options
@processes_option
@log
@log_tracebacks
@click.pass_obj
def up(
    invocation: Invocation,
    *,
    named: str | None,
    has_web: bool | None,
    host: str | None,
    port: int | None,
    processes: int | None,
    log_form: str | None,
    log_tracebacks: bool,
) -> None:
    """Create or upgrade the store; run jobs, duties and the web.

    Everything that an application needs on one machine: a supervisor starts the workers, one process for the
    duties and one for the web, and replaces those that end. The web needs fairlane[web]; without it, or with
    --processes 0, there is none unless --web asks for it. With several machines run `fairlane migrate` once,
    and `fairlane worker` on each.
    """
    invocation.set_setting("--host", "web.host", host)
    invocation.set_setting("--port", "web.port", port)
    wants_web = not missing_packages() if has_web is None else has_web
    beside: list[ProcessKind] = ["scheduler", "web"] if wants_web else ["scheduler"]
    supervisor = supervised(invocation, processes, log_form, beside=beside)
    if supervisor is None and has_web:
        message = "--web needs a supervisor; leave out --processes 0, or run `fairlane web` beside it"
        raise click.UsageError(message)
    app = own_app(invocation, named, log_form, has_tracebacks=log_tracebacks)
    kind = "worker" if supervisor is None else supervisor.number.kind
    if kind == "scheduler":
        from fairlane.duties.command import run_scheduler

        raise click.exceptions.Exit(run_scheduler(app, supervisor=supervisor))
    if kind == "web":
        raise click.exceptions.Exit(serve_web(app, supervisor))
    from fairlane.worker.command import run_worker

    reply = invocation.run(lambda app: app.client.store.upkeep.migrate(), makes_store=True)
    if reply.steps:
        invocation.output.note(migrated(reply))
    # Without a scheduler beside it, the worker does the duties.
    raise click.exceptions.Exit(run_worker(app, duties=supervisor is None, supervisor=supervisor))
