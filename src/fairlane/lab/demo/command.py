"""`fairlane demo`: do both runs, show them, summarize, clean up."""

from __future__ import annotations

import importlib.util
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fairlane.lab.demo.arrivals import NOISY, PROCESSES, SLOTS, describe, make_arrivals
from fairlane.lab.demo.picture import DrawnRun, draw
from fairlane.lab.demo.screen import Lines, Live, format_wait, summary
from fairlane.lab.history import Verdict, ViolationKind
from fairlane.lab.workload.plan import RunPlan
from fairlane.lab.workload.run import WorkloadRun
from fairlane.lab.workload.stats import RunStats, percentile
from fairlane.lab.workload.worker_processes import RunError
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.signals import run_until_stopped

DEFAULT_SECONDS: Final = 40.0

_LONGEST: Final[Micros] = 120 * SECOND

FAIR: Final = "fair between tenants"
FIFO: Final = "first in, first out"

PrintLine = Callable[[str], None]


def run_demo(
    say: PrintLine,
    *,
    seconds: float = DEFAULT_SECONDS,
    seed: int | None = None,
    keep: bool = False,
    svg: Path | None = None,
) -> int:
    """Run the same arrivals twice and print the results; return exit code 0 if no promise was broken.

    With `svg` a picture of both runs is written to that file.
    """
    seed = secrets.randbelow(10_000) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="fairlane-demo-"))
    try:
        code, runs = run_until_stopped(_run_both(say, folder, seconds / 2, seed))
    except RunError as error:
        say(str(error))
        return 1
    finally:
        if keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if svg is not None:
        svg.write_text(draw(runs), encoding="utf-8")
        say(f"drawn: {svg}")
    return code


async def _run_both(say: PrintLine, folder: Path, seconds: float, seed: int) -> tuple[int, list[DrawnRun]]:
    arrivals = make_arrivals(seed, seconds)
    say(describe(arrivals, seed))
    runs: list[tuple[str, RunStats]] = []
    drawn: list[DrawnRun] = []
    verdicts: list[Verdict] = []
    for title, name, is_fifo in ((FAIR, "fair", False), (FIFO, "fifo", True)):
        say(f"\n{title}:" if not is_fifo else f"\n{title} (the same arrivals, all under one tenant):")
        url = f"sqlite:///{folder / name / 'fairlane.db'}"
        plan = RunPlan(url=url, folder=str(folder / name), slots=SLOTS)
        run = WorkloadRun(plan, processes=PROCESSES, timeout=_LONGEST, tenant="everyone" if is_fifo else None)
        with _screen(title, say) as show:
            verdicts.append(await run.execute(arrivals, show))
        runs.append((title, run.stats))
        drawn.append(DrawnRun(title, run.began_at, run.stats, is_fair=not is_fifo))
    say("")
    for line in summary(runs):
        say(line)
    say("")
    return _conclude(say, runs, verdicts), drawn


def _conclude(say: PrintLine, runs: list[tuple[str, RunStats]], verdicts: list[Verdict]) -> int:
    fair, fifo = (percentile(stats.waits(without={NOISY}), 0.95) for _, stats in runs)
    say(
        f"Fair between tenants, 95 % of the quiet tenants' jobs started within {format_wait(fair)}; "
        f"first in, first out, within {format_wait(fifo)}: {fifo / max(fair, 1):,.0f} times as long."
    )
    lost = sum(
        violation.kind is ViolationKind.LOST for verdict in verdicts for violation in verdict.violations
    )
    twice = sum(verdict.reruns.jobs for verdict in verdicts)
    say(f"The history checker: {lost} jobs lost, {twice} run twice.")
    for (title, _), verdict in zip(runs, verdicts, strict=True):
        say(f"  {title}: {_in_short(verdict)}")
    return 0 if all(verdict.ok for verdict in verdicts) else 1


def _in_short(verdict: Verdict) -> str:
    """Return what a good verdict is based on, or a bad verdict in full."""
    counts = verdict.counts
    if not verdict.ok:
        return str(verdict)
    return (
        f"kept: {counts.acknowledged_jobs:,} jobs acknowledged, {counts.started:,} handler starts, "
        f"{counts.found:,} jobs found at the end, each in exactly one place"
    )


def _screen(title: str, say: PrintLine) -> Lines | Live:
    is_rich = sys.stdout.isatty() and importlib.util.find_spec("rich") is not None
    return Live(title) if is_rich else Lines(say)
