"""`fairlane bench`: make a place, measure, say on what, draw what is asked for, clean up."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlane.bench.charts import Chart, svg
from fairlane.bench.place import Place, host, versions
from fairlane.bench.report import Report
from fairlane.bench.scenario import Outcome, Say, Setting
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.signals import run_until_stopped

ON: Final = (
    "fair turns between tenants",
    "fenced claims with leases, renewed",
    "a row in history for every job",
    "counters of every tenant",
    "duties in every worker",
    "wake-ups",
)
"""What is switched on in every run: nothing can be switched off for the sake of a figure."""

Bench = Callable[[Setting], Awaitable[Outcome]]


def run_bench(
    name: str,
    bench: Bench,
    say: Say,
    *,
    url: str | None,
    folder: Path | None,
    plot: Path | None,
    keep: bool,
    sizes: Mapping[str, Any],
) -> Report:
    """Measure in a new folder, or in a store that is dedicated to it, and leave nothing behind."""
    inside = Path(tempfile.mkdtemp(prefix="fairlane-bench-", dir=folder)).resolve()
    try:
        setting = Setting(place=Place(inside, url), say=say, **sizes)
        report, charts = run_until_stopped(_measure(name, bench, setting, sizes))
    finally:
        if keep:
            say(f"kept: {inside}")
        else:
            shutil.rmtree(inside, ignore_errors=True)
    plots = () if plot is None else tuple(_draw(plot, chart) for chart in charts)
    return msgspec.structs.replace(report, plots=plots)


async def _measure(
    name: str, bench: Bench, setting: Setting, sizes: Mapping[str, Any]
) -> tuple[Report, list[Chart]]:
    await setting.place.check()
    clock = MachineClock()
    machine, began_at = host(), clock.elapsed()
    store = await setting.place.describe()
    outcome = await bench(setting)
    report = Report(
        bench=name,
        versions=versions(),
        host=machine,
        store=store,
        settings=sizes,
        on=ON,
        measures=tuple(outcome.measures),
        checks=tuple(outcome.checks),
        plots=(),
        seconds=(clock.elapsed() - began_at) / 1e6,
        ok=all(check.ok for check in outcome.checks),
    )
    return report, outcome.charts


def _draw(folder: Path, chart: Chart) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{chart.name}.svg"
    file.write_text(svg(chart), encoding="utf-8")
    return str(file)
