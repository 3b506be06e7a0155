"""Render a report of `fairlane bench` as a page. Knows the keys of a report, no benchmark by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from fairlane.lab.bench.report import Measure, Report, show_number
from tools.proofs.measurement import PROOFS, ROOT, SMALL, Measurement

_MET: Final = {None: "", True: "yes", False: "**no**"}


def report_of(measurement: Measurement) -> Report:
    """Return the stored report of `fairlane bench`."""
    return msgspec.json.decode(measurement.report, type=Report)


def figures(measurement: Measurement) -> tuple[Measure, ...]:
    """Return the figures of a report of `fairlane bench`."""
    return report_of(measurement).measures


def page(measurement: Measurement, name: str, title: str, about: str) -> str:
    """Return the page: goals, figures, the command, and the machine."""
    return "\n".join(_lines(measurement, report_of(measurement), name, title, about)) + "\n"


def _lines(measurement: Measurement, report: Report, name: str, title: str, about: str) -> Iterator[str]:
    yield f"# {title}"
    yield ""
    yield f"Generated from `docs/proofs/{name}.json`, which `make proofs` writes; do not edit by hand."
    yield ""
    yield about
    yield "What each row is: [Measure your machine](../how-to/measure-your-machine.md#what-each-scenario-is)."
    yield ""
    yield from ["```sh", measurement.command, "```", ""]
    yield from [SMALL, ""] if measurement.small else []
    yield from circumstances(measurement, report)
    yield ""
    yield summary(report)
    for scenario, found in groupby(report.measures, key=lambda one: one.scenario):
        yield from ["", f"## {scenario}", ""]
        yield from table(found)
    for plot in report.plots:
        drawn = Path(plot)
        where = drawn.relative_to(PROOFS.relative_to(ROOT))
        yield from ["", f"![{drawn.stem.replace('-', ' ')}]({where})"]


def circumstances(measurement: Measurement, report: Report) -> Iterator[str]:
    """Return the commit, the command and the machine of a measurement."""
    yield from ["| | |", "|---|---|"]
    yield f"| commit | {measurement.commit} |"
    for title, told in (("versions", report.versions), ("host", report.host), ("store", report.store)):
        yield f"| {title} | {', '.join(f'{key} {value}' for key, value in told.items())} |"
    yield f"| settings | {', '.join(f'{key} {_plain(value)}' for key, value in report.settings.items())} |"
    yield f"| switched on | {'; '.join(report.on)} |"
    yield f"| figures are | the median of {rounds_of(report)}, the lowest and the highest |"


def rounds_of(report: Report) -> str:
    """Return how many rounds there were, in words."""
    rounds = report.settings["rounds"]
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def summary(report: Report) -> str:
    """Count goals and checks."""
    asked = [one for one in report.measures if one.goal is not None]
    jobs = sum(check.jobs for check in report.checks)
    bad = sum(not check.ok for check in report.checks)
    return (
        f"{sum(one.met is True for one in asked)} of {len(asked)} goals are met. "
        f"{len(report.checks)} runs with {jobs:,} jobs were checked, {bad} of them bad. "
        f"All took {report.seconds:,.0f} s."
    )


def table(found: Iterable[Measure]) -> Iterator[str]:
    """Return a row for each figure."""
    yield from ["| figure | median | low | high | asked | met |", "|---|---:|---:|---:|---|---|"]
    for one in found:
        low, high = (show_number(value, one.unit) for value in (one.low, one.high))
        asked = "" if one.goal is None else one.goal.text
        yield f"| {one.name} | {amount(one)} | {low} | {high} | {asked} | {_MET[one.met]} |"


def amount(one: Measure) -> str:
    """Return a median with its unit."""
    return show_number(one.median, one.unit) + (f" {one.unit}" if one.unit and one.median is not None else "")


def limit(one: Measure) -> str:
    """Return the goal's number of a figure."""
    if one.goal is None:
        return ""
    return f"{'≥' if one.goal.is_least else '≤'} {show_number(one.goal.limit, one.unit)}"


def _plain(value: object) -> str:
    return "/".join(map(str, value)) or "–" if isinstance(value, tuple) else str(value)
