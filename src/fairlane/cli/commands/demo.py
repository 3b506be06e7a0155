"""`fairlane demo`: the options of the demo, which is in `fairlane.lab.demo`."""

from __future__ import annotations

from pathlib import Path

import click

from fairlane.app.config.keys import LAST_PORT
from fairlane.cli.command import Command


@click.command(cls=Command, short_help="Show how a noisy tenant affects quiet ones.")
@click.option(
    "--seconds",
    type=click.FloatRange(8, 600),
    default=40,
    show_default=True,
    help="The approximate duration.",
)
@click.option("--seed", type=click.IntRange(0), help="Repeat the arrivals of an earlier run.")
@click.option("--keep", is_flag=True, help="Keep the stores and ledgers, and print their folder.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Draw both runs into this file.",
)
@click.option("--web", is_flag=True, help="Play it again and again with the dashboard open, until Ctrl-C.")
@click.option(
    "--port",
    type=click.IntRange(0, LAST_PORT),
    metavar="N",
    help="The dashboard's port; 0 takes a free one. Default 8080.",
)
def demo(
    *, seconds: float, seed: int | None, keep: bool, svg: Path | None, web: bool, port: int | None
) -> None:
    """Run one noisy tenant and a dozen quiet ones, first fairly, then first in, first out.

    With --web they run fairly and again and again, while the dashboard shows it; nothing is compared.
    """
    if web and svg is not None:
        raise click.UsageError("--svg draws the two runs, which --web does not make.")
    if port is not None and not web:
        raise click.UsageError("--port is for --web.")
    if web:
        from fairlane.lab.demo.with_web import run_with_web

        code = run_with_web(click.echo, seconds=seconds, seed=seed, keep=keep, port=port)
        raise click.exceptions.Exit(code)
    from fairlane.lab.demo.command import run_demo

    raise click.exceptions.Exit(run_demo(click.echo, seconds=seconds, seed=seed, keep=keep, svg=svg))
