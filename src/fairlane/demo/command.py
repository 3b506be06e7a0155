"""`fairlane demo`: play both runs, show them, sum up, clean up."""

from __future__ import annotations

import importlib.util
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fairlane.demo.arrivals import NOISY, PROCESSES, SLOTS, describe, draw_up
from fairlane.demo.screen import Lines, Live, in_words, summary
from fairlane.model.history import Kind, Verdict
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.signals import run_until_stopped
from fairlane.stage.crew import StageError
from fairlane.stage.figures import Figures, percentile
from fairlane.stage.plan import Plan
from fairlane.stage.run import Run

DEFAULT_SECONDS: Final = 40.0

_LONGEST: Final[Micros] = 120 * SECOND

FAIR: Final = "fair between tenants"
FIFO: Final = "first in, first out"

Say = Callable[[str], None]


def run_demo(
    say: Say, *, seconds: float = DEFAULT_SECONDS, seed: int | None = None, keep: bool = False
) -> int:
    """Play the same arrivals twice and say what came of it; the exit code is 0 if nothing was lost."""
    seed = secrets.randbelow(10_000) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="fairlane-demo-"))
    try:
        return run_until_stopped(_play(say, folder, seconds / 2, seed))
    except StageError as error:
        say(str(error))
        return 1
    finally:
        if keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


async def _play(say: Say, folder: Path, seconds: float, seed: int) -> int:
    arrivals = draw_up(seed, seconds)
    say(describe(arrivals, seed))
    runs: list[tuple[str, Figures]] = []
    verdicts: list[Verdict] = []
    for title, name, one_tenant in ((FAIR, "fair", False), (FIFO, "fifo", True)):
        say(f"\n{title}:" if not one_tenant else f"\n{title} (the same arrivals, all under one tenant):")
        url = f"sqlite:///{folder / name / 'fairlane.db'}"
        plan = Plan(url=url, folder=str(folder / name), slots=SLOTS)
        run = Run(plan, processes=PROCESSES, at_most=_LONGEST, tenant="everyone" if one_tenant else None)
        with _screen(title, say) as show:
            verdicts.append(await run.play(arrivals, show))
        runs.append((title, run.figures))
    say("")
    for line in summary(runs):
        say(line)
    say("")
    return _conclude(say, runs, verdicts)


def _conclude(say: Say, runs: list[tuple[str, Figures]], verdicts: list[Verdict]) -> int:
    fair, fifo = (percentile(figures.waits(without={NOISY}), 0.95) for _, figures in runs)
    say(
        f"With fair turns, 95 of 100 jobs of the quiet tenants began within {in_words(fair)}; "
        f"first in, first out, within {in_words(fifo)}: {fifo / max(fair, 1):,.0f} times as long."
    )
    lost = sum(violation.kind is Kind.LOST for verdict in verdicts for violation in verdict.violations)
    twice = sum(verdict.reruns.jobs for verdict in verdicts)
    say(f"lost {lost}, run twice {twice}, says the history checker:")
    for (title, _), verdict in zip(runs, verdicts, strict=True):
        say(f"  {title}: {_in_short(verdict)}")
    return 0 if all(verdict.ok for verdict in verdicts) else 1


def _in_short(verdict: Verdict) -> str:
    """Say what a good verdict rests on; a bad one speaks for itself."""
    counts = verdict.counts
    if not verdict.ok:
        return str(verdict)
    return (
        f"kept: {counts.acknowledged_jobs:,} jobs acknowledged, {counts.started:,} starts by handlers, "
        f"{counts.found:,} found in the end, each in one place"
    )


def _screen(title: str, say: Say) -> Lines | Live:
    is_rich = sys.stdout.isatty() and importlib.util.find_spec("rich") is not None
    return Live(title) if is_rich else Lines(say)
