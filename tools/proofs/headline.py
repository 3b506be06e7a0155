"""The figures of README.md, between two marks. Knows which figures people ask for first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tools.proofs.bench_page import amount, report_of, rounds_of
from tools.proofs.index import Figures, count
from tools.proofs.kept import SMALL, Kept

BEGIN: Final = "<!-- figures: `make proofs` writes what stands up to the next mark -->"
END: Final = "<!-- end of figures -->"


class Row(NamedTuple):
    """One line of the table: its words, and whose figures stand in it."""

    text: str
    page: str
    scenario: str
    names: tuple[str, ...]


ROWS: Final = (
    Row(
        "whole jobs through one worker process, one tenant",
        "throughput",
        "async",
        ("1 process, 1 tenant: drained",),
    ),
    Row("… of 1,000 tenants", "throughput", "async", ("1 process, 1,000 tenants: drained",)),
    Row("… plain functions, which run in threads", "throughput", "plain", ("1 process, 1 tenant: drained",)),
    Row("enqueued in bulk", "throughput", "async", ("1 process, 1 tenant: enqueued in bulk",)),
    Row("one durable enqueue, p50 and p99", "latency", "enqueue", ("p50", "p99")),
    Row("an idle worker picks a job up, p50 and p95", "latency", "idle pick-up", ("p50", "p95")),
    Row("memory of an idle worker", "worker", "at rest", ("memory",)),
    Row("quiet tenants' wait, p95: alone", "fairness", "flood", ("alone p95",)),
    Row("… beside a flood of one tenant, with fair turns", "fairness", "flood", ("fair p95",)),
    Row("… beside the same flood, first in, first out", "fairness", "flood", ("fifo p95",)),
)


def replaced(readme: str, kept: Mapping[str, Kept], figures: Figures) -> str:
    """Give the README with new figures between the marks; `ValueError` if it has none."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        message = f"README.md has no place for figures: {BEGIN} … {END}"
        raise ValueError(message)
    return head + "\n".join([BEGIN, "", *_lines(kept, figures), "", END]) + tail


def _lines(kept: Mapping[str, Kept], figures: Figures) -> Iterator[str]:
    if any(one.small for one in kept.values()):
        yield f"{SMALL} See [Proofs](docs/proofs/README.md)."
        yield ""
    yield from _circumstances(kept)
    yield from ["", "| `fairlane bench` | median |", "|---|---:|"]
    for row in ROWS:
        values = {one.name: amount(one) for one in figures.get(row.page, ()) if one.scenario == row.scenario}
        shown = [values[name] for name in row.names if name in values]
        if shown:
            yield f"| {row.text} | {', '.join(shown)} |"
    yield from _claims(figures)
    yield ""
    yield f"Of what is asked for, {count(figures)}"
    yield "[Every goal, with what was measured](docs/proofs/README.md)."


def _claims(figures: Figures) -> Iterator[str]:
    """Show what a claim costs in every case of `scale`."""
    read = {one.name: amount(one) for one in figures.get("scale", ())}
    if read:
        yield from ["", "| a claim of ten, in a store with | p50 | p95 |", "|---|---:|---:|"]
    for name, value in read.items():
        case, _, cut = name.partition(": ")
        if cut == "p50":
            yield f"| {case} | {value} | {read[f'{case}: p95']} |"


def _circumstances(kept: Mapping[str, Kept]) -> Iterator[str]:
    if "throughput" in kept:
        report = report_of(kept["throughput"])
        host, versions = report.host, report.versions
        yield f"On {host['cores']} cores with Python {versions['python']} and SQLite {versions['sqlite']},"
        yield f"everything on (durable `synchronous={report.store['synchronous']}`, fair claims, fences,"
        yield f"history, counters); medians of {rounds_of(report)}."
