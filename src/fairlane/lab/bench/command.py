"""Run one benchmark: prepare the environment, measure, describe the machine, draw charts, clean up."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlane.lab.bench.charts import Chart, svg
from fairlane.lab.bench.environment import BenchEnvironment, host, versions
from fairlane.lab.bench.report import Report
from fairlane.lab.bench.scenario import BenchResult, BenchSettings, PrintLine
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
"""What is enabled in every run: nothing can be disabled for a better figure."""

Benchmark = Callable[[BenchSettings], Awaitable[BenchResult]]


def run_bench(
    name: str,
    bench: Benchmark,
    say: PrintLine,
    *,
    url: str | None,
    folder: Path | None,
    plot: Path | None,
    keep: bool,
    sizes: Mapping[str, Any],
) -> Report:
    """Measure in a new folder, or in a store dedicated to benchmarks, and leave nothing behind."""
    inside = Path(tempfile.mkdtemp(prefix="fairlane-bench-", dir=folder)).resolve()
    try:
        settings = BenchSettings(environment=BenchEnvironment(inside, url), say=say, **sizes)
        report, charts = run_until_stopped(_measure(name, bench, settings, sizes))
    finally:
        if keep:
            say(f"kept: {inside}")
        else:
            shutil.rmtree(inside, ignore_errors=True)
    plots = () if plot is None else tuple(_draw(plot, chart) for chart in charts)
    return msgspec.structs.replace(report, plots=plots)


async def _measure(
    name: str, bench: Benchmark, settings: BenchSettings, sizes: Mapping[str, Any]
) -> tuple[Report, list[Chart]]:
    await settings.environment.check()
    clock = MachineClock()
    machine, began_at = host(), clock.elapsed()
    store = await settings.environment.describe()
    result = await bench(settings)
    report = Report(
        bench=name,
        versions=versions(),
        host=machine,
        store=store,
        settings=sizes,
        on=ON,
        measures=tuple(result.measures),
        checks=tuple(result.checks),
        plots=(),
        seconds=(clock.elapsed() - began_at) / 1e6,
        ok=all(check.ok for check in result.checks),
    )
    return report, result.charts


def _draw(folder: Path, chart: Chart) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{chart.name}.svg"
    file.write_text(svg(chart), encoding="utf-8")
    return str(file)
