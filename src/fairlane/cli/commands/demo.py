"""`fairlane demo`: the options of the demo, which is in `fairlane.lab.demo`."""

from __future__ import annotations

from pathlib import Path

import click

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
def demo(*, seconds: float, seed: int | None, keep: bool, svg: Path | None) -> None:
    """Run one noisy tenant and a dozen quiet ones, first fairly, then first in, first out."""
    from fairlane.lab.demo.command import run_demo

    raise click.exceptions.Exit(run_demo(click.echo, seconds=seconds, seed=seed, keep=keep, svg=svg))
