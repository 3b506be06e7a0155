"""`fairlane bench`: the options of each benchmark, and how its figures are printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from fairlane.cli.command import Command, Group
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation, refuse_missing
from fairlane.cli.render.output import TableView
from fairlane.cli.value_types import ValueType
from fairlane.model.errors import ConfigError

if TYPE_CHECKING:  # loaded when a benchmark is run: the help needs none of it
    from fairlane.lab.bench.command import Benchmark
    from fairlane.lab.bench.report import Check, Measure, Report

_KINDS: Final = ("async", "plain", "with ledger")
_SCENARIOS: Final = (
    "flood", "names", "tiny", "headroom", "held", "weights", "seconds", "returning", "reweighed",
    "priority", "strict", "claimers",
)  # fmt: skip


def _numbers(highest: int) -> ValueType[tuple[int, ...]]:
    """Return the type of a comma-separated list of whole numbers up to this one."""

    def read(text: str) -> tuple[int, ...]:
        parts = text.split(",")
        numbers = tuple(int(part) for part in parts if part.isdecimal())
        if len(numbers) < len(parts) or not all(1 <= number <= highest for number in numbers):
            message = f"{text!r}: use whole numbers from 1 to {highest:,}, as in 1,10"
            raise ValueError(message)
        return numbers

    return ValueType("numbers", read)


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all benchmarks share."""
    for option in reversed(
        [
            click.option(
                "--rounds",
                type=click.IntRange(1, 100),
                default=5,
                show_default=True,
                help="The number of rounds.",
            ),
            click.option(
                "--seed", type=click.IntRange(0), default=1, help="Repeat the arrivals of an earlier run."
            ),
            click.option(
                "--folder",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                help="Where SQLite files go; use a real disk. Default: the system's temporary folder.",
            ),
            click.option(
                "--plot",
                type=click.Path(file_okay=False, path_type=Path),
                help="Draw SVG files into this folder.",
            ),
            click.option(
                "--keep", is_flag=True, help="Keep the files of failed runs, and print their folder."
            ),
        ]
    ):
        command = option(command)
    return command


_seconds = click.option(
    "--seconds",
    type=click.FloatRange(0.2, 600),
    default=10,
    show_default=True,
    help="The approximate duration of a run.",
)
_slots = click.option(
    "--slots",
    type=click.IntRange(1, 1_000),
    default=16,
    show_default=True,
    help="Slots of each worker process.",
)


def _alone(_context: click.Context, _option: click.Parameter, value: int | None) -> tuple[int, ...]:
    return () if value is None else (value,)


_processes = click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="The number of worker processes.",
    callback=_alone,
)


def _only(names: tuple[str, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--only", multiple=True, type=click.Choice(names), help="Only this scenario; may be repeated."
    )


def _jobs(default: int, highest: int, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--jobs", type=click.IntRange(1, highest), default=default, show_default=True, help=text
    )


@click.group(cls=Group)
def bench() -> None:
    """Measure this machine with real worker processes.

    Each run has its own SQLite file, and is checked.

    Each figure is the median of several rounds, with the lowest and the highest value, and its goal if it has
    one. With --url the store must be dedicated to benchmarks. Exits with 1 if a check fails: jobs are missing
    in history, or the history checker found a violation. A missed goal is not a failure.
    """


@bench.command(cls=Command)
@click.pass_obj
def dedicate(invocation: Invocation) -> None:
    """Dedicate an empty store to benchmarks, permanently. A missing store is created."""
    import asyncio

    from fairlane.lab.bench.environment import BENCHMARKS
    from fairlane.lab.bench.environment import dedicate as dedicate_store

    if invocation.url is None:
        raise ConfigError("give the store with --url", key="url")
    asyncio.run(dedicate_store(invocation.url))
    invocation.output.answer("The store is now dedicated to benchmarks.", {"purpose": BENCHMARKS})


@bench.command(cls=Command)
@_jobs(20_000, 1_000_000, "Jobs of each case.")
@click.option(
    "--processes",
    type=_numbers(64),
    default="1,2",
    show_default=True,
    help="The numbers of worker processes.",
)
@click.option(
    "--tenants",
    type=_numbers(1_000_000),
    default="1,1000,100000",
    show_default=True,
    help="The numbers of tenants.",
)
@_only(_KINDS)
@_slots
@_shared
@click.pass_obj
def throughput(invocation: Invocation, /, *, only: tuple[str, ...], **options: Any) -> None:
    """Enqueue in bulk, then drain: jobs per second and CPU time, with handlers that do nothing."""
    from fairlane.lab.bench.throughput import throughput as measured

    _run(invocation, "throughput", lambda settings: measured(settings, only), options)


@bench.command(cls=Command)
@_jobs(1_000, 100_000, "Single enqueues to time; also the jobs that find the full load.")
@_seconds
@_processes
@_slots
@_shared
@click.pass_obj
def latency(invocation: Invocation, /, **options: Any) -> None:
    """Time an enqueue, and a job's wait for an idle worker and for one at half load."""
    from fairlane.lab.bench.latency import latency as measured

    _run(invocation, "latency", measured, options)


@bench.command(cls=Command)
@_only(_SCENARIOS)
@click.option(
    "--backlog",
    type=click.IntRange(1, 10_000_000),
    help="Jobs that are held, or that wait while a weight is raised. Default: depends on --seconds.",
    callback=_alone,
)
@_seconds
@_processes
@_slots
@_shared
@click.pass_obj
def fairness(invocation: Invocation, /, *, only: tuple[str, ...], **options: Any) -> None:
    """Let a noisy tenant flood quiet ones; measure who waits and who gets which share.

    The same arrivals run fairly and, all under one tenant, first in, first out.
    """
    from fairlane.lab.bench.fairness.scenarios import fairness as measured

    _run(invocation, "fairness", lambda settings: measured(settings, only), options)


@bench.command(cls=Command)
@_jobs(1_000, 100_000, "Claims of ten jobs in each case and round.")
@click.option(
    "--tenants",
    type=_numbers(1_000_000),
    default="100,1000,10000,100000",
    show_default=True,
    help="The numbers of tenants with jobs.",
)
@click.option(
    "--backlog",
    type=_numbers(10_000_000),
    default="10000,100000,1000000",
    show_default=True,
    help="The numbers of jobs that wait or are held.",
)
@_shared
@click.pass_obj
def scale(invocation: Invocation, /, **options: Any) -> None:
    """Measure a claim as tenants, backlog and held jobs grow."""
    from fairlane.lab.bench.scale import scale as measured

    _run(invocation, "scale", measured, options)


def _run(invocation: Invocation, name: str, measured: Benchmark, options: dict[str, Any]) -> None:
    from fairlane.lab.bench.command import run_bench

    if invocation.url is not None:
        refuse_missing(invocation.url)
    folder, plot, keep = (options.pop(key) for key in ("folder", "plot", "keep"))
    say = invocation.output.note
    report = run_bench(
        name, measured, say, url=invocation.url, folder=folder, plot=plot, keep=keep, sizes=options
    )
    _show(invocation, report)
    if not report.ok:
        raise click.exceptions.Exit(Exit.REFUSED)


def _show(invocation: Invocation, report: Report) -> None:
    output = invocation.output
    if invocation.is_json:
        output.answer("", msgspec.to_builtins(report))
        return
    for title, facts in (("host", report.host), ("versions", report.versions), ("store", report.store)):
        output.line(f"{title}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
    output.line("settings: " + ", ".join(f"{key} {_plain(value)}" for key, value in report.settings.items()))
    output.line(f"switched on: {'; '.join(report.on)}")
    output.line("")
    output.table(report.measures, _MEASURES)
    output.line("")
    bad = [check for check in report.checks if not check.ok]
    jobs = sum(check.jobs for check in report.checks)
    output.line(
        f"{len(report.checks)} runs with {jobs:,} jobs checked, {len(bad)} bad; {report.seconds:.0f} s"
    )
    output.table(bad, _CHECKS)
    for plot in report.plots:
        output.line(f"drawn: {plot}")


def _plain(value: float | str | tuple[int, ...]) -> str:
    return "/".join(map(str, value)) or "-" if isinstance(value, tuple) else str(value)


def _number(value: float | None, unit: str) -> str:
    from fairlane.lab.bench.report import show_number

    return show_number(value, unit)


def _met(one: Measure) -> str:
    return {None: "", True: "yes", False: "no"}[one.met]


_MEASURES: TableView[Measure] = TableView(
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

_CHECKS: TableView[Check] = TableView(
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
