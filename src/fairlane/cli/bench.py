"""`fairlane bench`: measure this machine. Knows which sizes there are, and how figures are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from fairlane.cli.command import Command, Group
from fairlane.cli.exits import Exit
from fairlane.cli.kinds import Kind
from fairlane.cli.output import View
from fairlane.cli.session import Session, refuse_missing
from fairlane.model.errors import ConfigError

if TYPE_CHECKING:  # loaded when a benchmark is run: the help needs none of it
    from fairlane.bench.command import Bench
    from fairlane.bench.report import Check, Measure, Report

_KINDS: Final = ("async", "plain", "with ledger")
_SCENARIOS: Final = (
    "flood", "names", "headroom", "held", "weights", "seconds", "returning", "reweighed",
    "priority", "strict", "claimers",
)  # fmt: skip


def _numbers(most: int) -> Kind[tuple[int, ...]]:
    """Whole numbers up to this one, with commas between them."""

    def read(text: str) -> tuple[int, ...]:
        parts = text.split(",")
        numbers = tuple(int(part) for part in parts if part.isdecimal())
        if len(numbers) < len(parts) or not all(1 <= number <= most for number in numbers):
            message = f"{text!r}: use whole numbers from 1 to {most:,}, as in 1,10"
            raise ValueError(message)
        return numbers

    return Kind("numbers", read)


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all benchmarks have."""
    for option in reversed(
        [
            click.option(
                "--rounds", type=click.IntRange(1, 100), default=5, show_default=True, help="How often."
            ),
            click.option("--seed", type=click.IntRange(0), default=1, help="Repeat a list of arrivals."),
            click.option(
                "--folder",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                help="Where the files go; a real disk counts. Default: the system's folder for such.",
            ),
            click.option(
                "--plot",
                type=click.Path(file_okay=False, path_type=Path),
                help="Draw SVG files into this folder.",
            ),
            click.option("--keep", is_flag=True, help="Keep what failed runs leave, and say where."),
        ]
    ):
        command = option(command)
    return command


_seconds = click.option(
    "--seconds", type=click.FloatRange(0.2, 600), default=10, show_default=True, help="Of one run, about."
)
_slots = click.option(
    "--slots",
    type=click.IntRange(1, 1_000),
    default=16,
    show_default=True,
    help="Of each worker process.",
)


def _alone(_context: click.Context, _option: click.Parameter, value: int | None) -> tuple[int, ...]:
    return () if value is None else (value,)


_processes = click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="How many worker processes.",
    callback=_alone,
)


def _only(names: tuple[str, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--only", multiple=True, type=click.Choice(names), help="Only this scenario; may be repeated."
    )


def _jobs(default: int, most: int, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--jobs", type=click.IntRange(1, most), default=default, show_default=True, help=text)


@click.group(cls=Group)
def bench() -> None:
    """Measure this machine, with real worker processes.

    Each run has a file of its own, and is checked.

    Each figure is the median of several rounds, with the lowest and the highest, and its goal where there is
    one. With --url the store must be dedicated to benchmarks. Exits with 1 if a check fails: jobs are missing
    in history, or the history checker objects. A goal that is missed does not count as that.
    """


@bench.command(cls=Command)
@click.pass_obj
def dedicate(session: Session) -> None:
    """Dedicate an empty store to benchmarks, for good; it is made if it is not there."""
    import asyncio

    from fairlane.bench.place import BENCHMARKS
    from fairlane.bench.place import dedicate as dedicate_store

    if session.url is None:
        raise ConfigError("name the store with --url", key="url")
    asyncio.run(dedicate_store(session.url))
    session.output.answer("The store is for benchmarks now.", {"purpose": BENCHMARKS})


@bench.command(cls=Command)
@_jobs(20_000, 1_000_000, "Of each case.")
@click.option(
    "--processes", type=_numbers(64), default="1,2", show_default=True, help="How many worker processes."
)
@click.option(
    "--tenants",
    type=_numbers(1_000_000),
    default="1,1000,100000",
    show_default=True,
    help="How many tenants.",
)
@_only(_KINDS)
@_slots
@_shared
@click.pass_obj
def throughput(session: Session, /, *, only: tuple[str, ...], **options: Any) -> None:
    """Enqueue in bulk, then drain: jobs a second and processor time, for handlers that do nothing."""
    from fairlane.bench.throughput import throughput as measured

    _run(session, "throughput", lambda setting: measured(setting, only), options)


@bench.command(cls=Command)
@_jobs(1_000, 100_000, "Single enqueues to time; also what is brought to find the full load.")
@_seconds
@_processes
@_slots
@_shared
@click.pass_obj
def latency(session: Session, /, **options: Any) -> None:
    """Time one enqueue, and how long a job waits for an idle worker and for one with half its load."""
    from fairlane.bench.latency import latency as measured

    _run(session, "latency", measured, options)


@bench.command(cls=Command)
@_only(_SCENARIOS)
@click.option(
    "--backlog",
    type=click.IntRange(1, 10_000_000),
    help="Jobs that are held, or wait while a weight is raised. Default: as the seconds have it.",
    callback=_alone,
)
@_seconds
@_processes
@_slots
@_shared
@click.pass_obj
def fairness(session: Session, /, *, only: tuple[str, ...], **options: Any) -> None:
    """Let a noisy tenant flood quiet ones, and see who waits and who gets how much.

    The same arrivals are played fairly and, under one tenant, first in, first out.
    """
    from fairlane.bench.fairness import fairness as measured

    _run(session, "fairness", lambda setting: measured(setting, only), options)


@bench.command(cls=Command)
@_jobs(1_000, 100_000, "Claims of ten in each case and round.")
@click.option(
    "--tenants",
    type=_numbers(1_000_000),
    default="100,1000,10000,100000",
    show_default=True,
    help="How many tenants have jobs.",
)
@click.option(
    "--backlog",
    type=_numbers(10_000_000),
    default="10000,100000,1000000",
    show_default=True,
    help="How many jobs wait, or are held.",
)
@_shared
@click.pass_obj
def scale(session: Session, /, **options: Any) -> None:
    """See what a claim costs as tenants, backlog and held jobs grow."""
    from fairlane.bench.scale import scale as measured

    _run(session, "scale", measured, options)


def _run(session: Session, name: str, measured: Bench, options: dict[str, Any]) -> None:
    from fairlane.bench.command import run_bench

    if session.url is not None:
        refuse_missing(session.url)
    folder, plot, keep = (options.pop(key) for key in ("folder", "plot", "keep"))
    say = session.output.remark
    report = run_bench(
        name, measured, say, url=session.url, folder=folder, plot=plot, keep=keep, sizes=options
    )
    _show(session, report)
    if not report.ok:
        raise click.exceptions.Exit(Exit.REFUSED)


def _show(session: Session, report: Report) -> None:
    output = session.output
    if session.is_json:
        output.answer("", msgspec.to_builtins(report))
        return
    for title, told in (("host", report.host), ("versions", report.versions), ("store", report.store)):
        output.say(f"{title}: " + ", ".join(f"{key} {value}" for key, value in told.items()))
    output.say("settings: " + ", ".join(f"{key} {_plain(value)}" for key, value in report.settings.items()))
    output.say(f"switched on: {'; '.join(report.on)}")
    output.say("")
    output.table(report.measures, _MEASURES)
    output.say("")
    bad = [check for check in report.checks if not check.ok]
    jobs = sum(check.jobs for check in report.checks)
    output.say(
        f"{len(report.checks)} runs with {jobs:,} jobs checked, {len(bad)} bad; {report.seconds:.0f} s"
    )
    output.table(bad, _CHECKS)
    for plot in report.plots:
        output.say(f"drawn: {plot}")


def _plain(value: float | str | tuple[int, ...]) -> str:
    return "/".join(map(str, value)) or "-" if isinstance(value, tuple) else str(value)


def _number(value: float | None, unit: str) -> str:
    from fairlane.bench.report import show_number

    return show_number(value, unit)


def _met(one: Measure) -> str:
    return {None: "", True: "yes", False: "no"}[one.met]


_MEASURES: View[Measure] = View(
    {
        "SCENARIO": lambda one: one.scenario,
        "FIGURE": lambda one: one.name,
        "MEDIAN": lambda one: f"{_number(one.median, one.unit)} {one.unit}",
        "LOW": lambda one: _number(one.low, one.unit),
        "HIGH": lambda one: _number(one.high, one.unit),
        "GOAL": lambda one: "" if one.goal is None else one.goal.text,
        "MET": _met,
    },
    msgspec.to_builtins,
)

_CHECKS: View[Check] = View(
    {
        "BAD": lambda one: one.scenario,
        "CASE": lambda one: one.case,
        "ROUND": lambda one: one.round,
        "EXPECTED": lambda one: one.expected,
        "IN HISTORY": lambda one: one.history,
        "CHECKER": lambda one: one.verdict,
    },
    msgspec.to_builtins,
)
