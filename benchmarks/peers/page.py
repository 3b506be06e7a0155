"""Render a comparison: tables for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from benchmarks.peers import flood, speed
from benchmarks.peers.report import PeerRow, PeersReport, against
from fairlane.lab.bench.report import Measure


class Table(NamedTuple):
    """A title, the column heads, and the rows."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def tables(report: PeersReport) -> list[Table]:
    """Return the tables that have rows: each store's figures, the ratios, the floods, what is missing."""
    stores = dict.fromkeys(row.store for row in report.peers)
    found = [_figures(report, store) for store in stores]
    missing = [(one.name, one.why) for one in report.left_out]
    found += [_ratios(report), _floods(report), Table("Left out", ("peer", "why"), missing)]
    return [table for table in found if table.rows]


def text(report: PeersReport) -> str:
    """Return the report for a terminal."""
    parts = [*_about(report)]
    for table in tables(report):
        widths = [max(map(len, column)) for column in zip(table.heads, *table.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (table.heads, *table.rows)
        ]
        parts += ["", table.title, *lines]
    return "\n".join([*parts, "", _checked(report)])


def render(report: PeersReport) -> list[str]:
    """Return the report as the lines of a page, without its head."""
    parts = [f"- {line}" for line in _about(report)]
    for table in tables(report):
        bars = ["|" + "---|" * len(table.heads)]
        rows = ["| " + " | ".join(row) + " |" for row in (table.heads, *table.rows)]
        parts += ["", f"## {table.title}", "", rows[0], *bars, *rows[1:]]
    return [*parts, "", _checked(report)]


def _about(report: PeersReport) -> list[str]:
    host = ", ".join(f"{name} {value}" for name, value in report.host.items())
    settings = ", ".join(f"{name} {value:g}" for name, value in report.settings.items())
    stores = [f"{name}: {about['server']}; {about['durability']}" for name, about in report.stores.items()]
    return [f"host: {host}", *stores, f"settings: {settings}; one worker process each, median (low–high)"]


def _checked(report: PeersReport) -> str:
    bad = [f"{one.case} in round {one.round}: {one.verdict}" for one in report.checks if not one.ok]
    jobs = sum(one.jobs for one in report.checks)
    said = f"{len(report.checks)} runs with {jobs:,} jobs checked in {report.seconds:.0f} s"
    return f"{said}; bad: {'; '.join(bad)}" if bad else f"{said}: every job ran exactly once."


# ── the tables ───────────────────────────────────────────────────────────────


def _figures(report: PeersReport, store: str) -> Table:
    heads = ("peer", "jobs", "drained jobs/s", "bulk jobs/s", "pick-up p50 ms", "p95 ms")
    figures = (speed.DRAINED, speed.BULK, speed.PICKED_P50, speed.PICKED_P95, speed.ENQUEUE, speed.MEMORY)
    rows = [
        (
            _named(row),
            f"{row.jobs:,}",
            *(_cell(_find(report.measures, row.name, figure)) for figure in figures),
            row.settings,
        )
        for row in report.peers
        if row.store == store
    ]
    return Table(f"On {store}", (*heads, "enqueue p99 ms", "memory MB", "settings"), rows)


def _ratios(report: PeersReport) -> Table:
    rows = []
    for row, tenants in product(report.peers, sorted({row.tenants for row in report.peers})):
        scenario = against(row.name, tenants)
        cells = [_find(report.ratios, scenario, figure) for figure in (speed.DRAINED, speed.BULK)]
        if all(cells):
            judged = (part for cell in cells for part in _judged(cell))
            own = row.tenants if row.tenants > 1 else tenants  # beside itself it has the tenants of the row
            rows.append((row.store, row.name, f"{own:,}", *judged))
    heads = ("store", "Fairlane as it comes ÷", "tenants", "drained", "goal", "met", "bulk", "goal", "met")
    return Table("Ratios, round by round", heads, rows)


def _floods(report: PeersReport) -> Table:
    rows = [
        (
            row.store,
            row.name,
            _cell(_find(report.fairness, row.name, flood.ALONE)),
            *_judged(_find(report.fairness, row.name, flood.FLOODED)),
            "yes" if (_find(report.fairness, row.name, flood.BACKLOGGED) or _NONE).met else "no",
        )
        for row in report.peers
        if _find(report.fairness, row.name, flood.FLOODED)
    ]
    heads = ("store", "peer", "alone p95 ms", "with flood p95 ms", "goal", "met", "contested to the end")
    return Table(f"Quiet tenants beside a flood, {flood.SLOTS} at once", heads, rows)


_NONE = Measure(scenario="", name="", unit="", median=0, low=0, high=0, values=())


def _find(measures: Sequence[Measure], scenario: str, name: str) -> Measure | None:
    return next((one for one in measures if (one.scenario, one.name) == (scenario, name)), None)


def _named(row: PeerRow) -> str:
    """Return a peer's name with the version of its package."""
    return f"{row.name} {next(iter(row.versions.values()))}"


def _cell(one: Measure | None) -> str:
    """Return the median and the spread of a figure, and its goal if it is missed."""
    if one is None:
        return "–"
    missed = f" (goal: {one.goal.text})" if one.goal and not one.met else ""
    return f"{_number(one.median)} ({_number(one.low)}–{_number(one.high)}){missed}"


def _judged(one: Measure | None) -> tuple[str, str, str]:
    """Return a figure, its goal, and whether it is met."""
    if one is None or one.goal is None:
        return (_cell(one), "–", "–")
    bare = msgspec.structs.replace(one, goal=None)
    return (_cell(bare), one.goal.text, "yes" if one.met else "no")


def _number(value: float | None) -> str:
    """Round to the digits that matter.

    >>> [_number(value) for value in (12_345.6, 123.4, 12.34, 1.234)]
    ['12,346', '123', '12.3', '1.2']
    """
    if value is None:
        return "not valid"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004 (three digits are enough)
