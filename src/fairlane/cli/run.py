"""`fairlane up`, `worker`, `scheduler`, `demo`: what runs until it is told to stop, or is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.command import Command
from fairlane.cli.session import Session
from fairlane.cli.terms import log, log_tracebacks

if TYPE_CHECKING:
    from fairlane import Fairlane


def _own_app(
    session: Session, named: str | None, log_form: str | None, *, has_tracebacks: bool = False
) -> Fairlane:
    """Give the application of the argument, which reads as in `uvicorn`, or of --app or the configuration."""
    if named is not None:
        session.application = named
    session.log_to_stderr(log_form, has_tracebacks=has_tracebacks)
    return session.own_app


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.option("--lane", "lanes", multiple=True, metavar="NAME", help="Serve only this lane; may be repeated.")
@click.option("--burst", is_flag=True, help="End when nothing is claimable now and nothing runs.")
@click.option("--duties/--no-duties", default=None, help="Promote, reclaim, expire and prune, or not.")
@log
@log_tracebacks
@click.pass_obj
def worker(
    session: Session,
    *,
    named: str | None,
    lanes: tuple[str, ...],
    burst: bool,
    duties: bool | None,
    log_form: str | None,
    log_tracebacks: bool,
) -> None:
    """Run the application's jobs until SIGTERM or Ctrl-C.

    The first signal lets running jobs go on until the shutdown deadline, a second one ends them at once.
    """
    from fairlane.worker.command import run_worker

    app = _own_app(session, named, log_form, has_tracebacks=log_tracebacks)
    raise click.exceptions.Exit(run_worker(app, burst=burst, duties=duties, lanes=lanes or None))


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@log
@log_tracebacks
@click.pass_obj
def up(session: Session, *, named: str | None, log_form: str | None, log_tracebacks: bool) -> None:
    """Make or migrate the store, then run jobs and duties.

    All that an application needs on one machine. On several machines run `fairlane migrate` once, and
    `fairlane worker` on each.
    """
    from fairlane.worker.command import run_worker

    app = _own_app(session, named, log_form, has_tracebacks=log_tracebacks)
    reply = session.run(lambda app: app.client.store.upkeep.migrate(), makes_store=True)
    if reply.steps:
        session.output.remark(f"Migrated from schema {reply.before} to {reply.after}.")
    raise click.exceptions.Exit(run_worker(app, duties=True))


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@log
@click.pass_obj
def scheduler(session: Session, *, named: str | None, log_form: str | None) -> None:
    """Do the duties alone: promote, reclaim, expire, prune. Any number of them may run."""
    from fairlane.duties.command import run_scheduler

    raise click.exceptions.Exit(run_scheduler(_own_app(session, named, log_form)))


@click.command(cls=Command, short_help="Show a noisy tenant and quiet ones, served fairly.")
@click.option(
    "--seconds", type=click.FloatRange(8, 600), default=40, show_default=True, help="How long, about."
)
@click.option("--seed", type=click.IntRange(0), help="Repeat a list of arrivals.")
@click.option("--keep", is_flag=True, help="Keep the stores and the ledgers, and say where.")
def demo(*, seconds: float, seed: int | None, keep: bool) -> None:
    """Show one noisy tenant and a dozen quiet ones, served fairly, then first in, first out."""
    from fairlane.demo.command import run_demo

    raise click.exceptions.Exit(run_demo(click.echo, seconds=seconds, seed=seed, keep=keep))
