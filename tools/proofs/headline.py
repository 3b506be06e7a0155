"""The five figures of README.md, between two marks, each with the command that repeats it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tools.proofs.bench_page import amount, report_of, rounds_of
from tools.proofs.index import Figures, unmet
from tools.proofs.measurement import SMALL, Measurement
from tools.proofs.stores import STORES

BEGIN: Final = "<!-- figures: `make proofs` writes what stands up to the next mark -->"
END: Final = "<!-- end of figures -->"


class Row(NamedTuple):
    """One figure: its words, where `{}` stands for each value, and whose values they are."""

    text: str
    page: str
    scenario: str
    names: tuple[str, ...]


ROWS: Final = (
    Row(
        "Wait of the quiet tenants while one tenant floods the queue, p95 | "
        "**{}** with fair turns, {} first in, first out",
        "fairness",
        "flood",
        ("fair p95", "fifo p95"),
    ),
    Row(
        "Cost of a claim of ten jobs, p95: with 10,000 jobs waiting, and with 1,000,000 | **{}**, **{}**",
        "scale",
        "claims",
        ("100 tenants, 10,000 jobs: p95", "100 tenants, 1,000,000 jobs: p95"),
    ),
    Row(
        "Whole jobs through one worker process: one tenant, and 1,000 tenants | **{}**, **{}**",
        "throughput",
        "async",
        ("1 process, 1 tenant: drained", "1 process, 1,000 tenants: drained"),
    ),
    Row(
        "From the enqueue to the start of the handler, in an idle worker, p50 and p95 | **{}**, **{}**",
        "latency",
        "idle pick-up",
        ("p50", "p95"),
    ),
    Row("Memory of an idle worker | **{}**", "worker", "at rest", ("memory",)),
)


def replaced(readme: str, measurement: Mapping[str, Measurement], figures: Figures) -> str:
    """Return the README with new figures between the marks; `ValueError` if it has no marks."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        message = f"README.md has no place for figures: {BEGIN} … {END}"
        raise ValueError(message)
    return head + "\n".join([BEGIN, "", *_lines(measurement, figures), "", END]) + tail


def _lines(measurement: Mapping[str, Measurement], figures: Figures) -> Iterator[str]:
    if any(one.small for one in measurement.values()):
        yield f"{SMALL} See [Proofs](docs/proofs/README.md)."
        yield ""
    yield from _circumstances(measurement)
    yield from ["", "| what | measured | command |", "|---|---|---|"]
    for row in ROWS:
        values = {one.name: amount(one) for one in figures.get(row.page, ()) if one.scenario == row.scenario}
        if all(name in values for name in row.names) and row.page in measurement:
            shown = row.text.format(*(values[name] for name in row.names))
            yield f"| {shown} | `{measurement[row.page].command}` |"
    yield ""
    missed = ", ".join(f"{title} {unmet(figures, store)}" for store, title in STORES.items())
    yield f"Goals not met: {missed}."
    yield "[Proofs](docs/proofs/README.md) has every goal and every figure, for all three stores."


def _circumstances(measurement: Mapping[str, Measurement]) -> Iterator[str]:
    if "throughput" in measurement:
        report = report_of(measurement["throughput"])
        host, versions = report.host, report.versions
        yield f"SQLite {versions['sqlite']} on {host['cores']} cores with Python {versions['python']}."
        yield f"With durable commits (`synchronous={report.store['synchronous']}`), fair claims, fences,"
        yield f"history and counters. Medians of {rounds_of(report)}."
