"""Render the output of a benchmark that prints `benchmarks.figures`: a table for each scenario."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from benchmarks.figures import Figures
from fairlane.lab.bench.report import Measure
from tools.proofs.bench_page import table
from tools.proofs.measurement import Measurement, circumstances


def figures(measurement: Measurement) -> tuple[Measure, ...]:
    """Return the figures, each with its spread."""
    return _read(measurement).measures


def page(measurement: Measurement, name: str, title: str, about: str) -> str:
    """Return the page."""
    return "\n".join(_lines(measurement, name, title, about)) + "\n"


def _lines(measurement: Measurement, name: str, title: str, about: str) -> Iterator[str]:
    found = _read(measurement)
    yield from [f"# {title}", ""]
    yield f"Generated from `docs/proofs/{name}.json`, which `make proofs` writes; do not edit by hand."
    yield from ["", about, ""]
    yield from circumstances(measurement, found.host)
    rounds = "1 round" if found.rounds == 1 else f"{found.rounds} rounds"
    yield f"Figures are the median of {rounds}, the lowest and the highest. `load` is the number of processes"
    yield "that wanted a processor when it began: more than `cores`, and others had part of the machine."
    for scenario, measures in groupby(found.measures, key=lambda one: one.scenario):
        yield from ["", f"## {scenario}", ""]
        yield from table(measures)


def _read(measurement: Measurement) -> Figures:
    return msgspec.json.decode(measurement.report, type=Figures)
