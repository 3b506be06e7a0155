"""`fairlane worker`, `scheduler` and `demo`: commands that run until they are told to stop, or are done."""

from __future__ import annotations

import click

from fairlane.cli.command import Command
from fairlane.cli.session import Session


def _name(session: Session, named: str | None) -> None:
    """Take the application from the argument, which reads as in `uvicorn`, or from --app."""
    if named is not None:
        session.application = named


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.option("--lane", "lanes", multiple=True, metavar="NAME", help="Serve only this lane; may be repeated.")
@click.option("--burst", is_flag=True, help="End when nothing is claimable now and nothing runs.")
@click.option("--duties/--no-duties", default=None, help="Promote, reclaim, expire and prune, or not.")
@click.pass_obj
def worker(
    session: Session, *, named: str | None, lanes: tuple[str, ...], burst: bool, duties: bool | None
) -> None:
    """Run the application's jobs until SIGTERM or Ctrl-C.

    The first signal lets running jobs go on until the shutdown deadline, a second one ends them at once.
    """
    from fairlane.worker.command import run_worker

    _name(session, named)
    session.log_to_stderr()
    raise click.exceptions.Exit(run_worker(session.app, burst=burst, duties=duties, lanes=lanes or None))


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@click.pass_obj
def scheduler(session: Session, *, named: str | None) -> None:
    """Do the duties alone: promote, reclaim, expire, prune. Any number of them may run."""
    from fairlane.duties.command import run_scheduler

    _name(session, named)
    session.log_to_stderr()
    raise click.exceptions.Exit(run_scheduler(session.app))


@click.command(cls=Command)
@click.option(
    "--seconds", type=click.FloatRange(8, 600), default=40, show_default=True, help="How long, about."
)
@click.option("--seed", type=click.IntRange(0), help="Repeat a list of arrivals.")
@click.option("--keep", is_flag=True, help="Keep the stores and the ledgers, and say where.")
def demo(*, seconds: float, seed: int | None, keep: bool) -> None:
    """Show one noisy tenant and a dozen quiet ones, served fairly, then first in, first out."""
    from fairlane.demo.command import run_demo

    raise click.exceptions.Exit(run_demo(click.echo, seconds=seconds, seed=seed, keep=keep))
