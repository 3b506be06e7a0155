"""Draw both runs of the demo as one SVG, for light and dark pages. Reads no clock and no file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from fairlane.lab.demo.arrivals import NOISY, PROCESSES, QUIET, SLOTS, WORK
from fairlane.lab.demo.screen import format_wait
from fairlane.lab.ledger import Moment
from fairlane.lab.workload.stats import RunStats, percentile
from fairlane.model.instants import SECOND, Micros

_WIDTH: Final = 880
_HEIGHT: Final = 440
_PANEL: Final = 372
_LEFTS: Final = (62, 482)
_TOP, _BOTTOM = 140, 312
"""The chart of waits; below it is the noisy tenant's backlog."""
_BACKLOG_TOP, _BACKLOG_BOTTOM = 344, 390
_TICKS: Final = 5
_STEPS: Final = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)
_SAMPLES: Final = 60

_STYLE: Final = """\
<style>
  svg { --back: #ffffff; --edge: #e1e6e6; --text: #15201f; --soft: #5f6d6b; --grid: #e8ecec;
        --good: #1b7340; --bad: #b0241c; --dot-good: #2c9a5d; --dot-bad: #d5483e; --crowd: #b1c1c8;
        font: 12px Inter, ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
  @media (prefers-color-scheme: dark) {
    svg { --back: #141a1c; --edge: #242e31; --text: #e7edec; --soft: #8b9a98; --grid: #263134;
          --good: #62cc8f; --bad: #f58b82; --dot-good: #4fb97d; --dot-bad: #ee7a70; --crowd: #465b64; }
  }
  .back { fill: var(--back); stroke: var(--edge); } .grid { stroke: var(--grid); }
  text { fill: var(--text); } .soft { fill: var(--soft); font-size: 11px; }
  .title { font-size: 17px; font-weight: 600; } .name { font-size: 14px; font-weight: 600; }
  .figure { font-size: 20px; font-weight: 600; } .end { text-anchor: end; } .middle { text-anchor: middle; }
  .good { fill: var(--good); } .bad { fill: var(--bad); } .crowd { fill: var(--crowd); }
  .dot-good { fill: var(--dot-good); } .dot-bad { fill: var(--dot-bad); } circle { fill-opacity: .75; }
</style>"""


class DrawnRun(NamedTuple):
    """One run: its title, when it began, its statistics, and whether it is the fair one."""

    title: str
    began_at: Moment
    stats: RunStats
    is_fair: bool


class _Scale(NamedTuple):
    """Maps seconds to positions; both panels share it, so that they can be compared."""

    longest_run: float
    longest_wait: float

    def x(self, left: float, seconds: float) -> float:
        return left + _PANEL * seconds / self.longest_run

    def y(self, seconds: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * seconds / self.longest_wait


def draw(runs: Sequence[DrawnRun]) -> str:
    """Return the picture: each quiet job's wait by its arrival, above the noisy tenant's backlog."""
    waits = [wait for run in runs for wait in run.stats.waits(without={NOISY})]
    ends = [(job.ended_at or 0) - run.began_at for run in runs for job in run.stats.jobs.values()]
    scale = _Scale(max(ends, default=1) / SECOND, max(1.1 * max(waits, default=0), SECOND) / SECOND)
    noisy = max((run.stats.tenants[NOISY].enqueued for run in runs if NOISY in run.stats.tenants), default=0)
    head = f"One tenant enqueues {noisy:,} jobs at once. How long do {len(QUIET)} quiet tenants wait?"
    setup = (
        f"The same arrivals twice: {PROCESSES} worker processes with {SLOTS} slots each, "
        f"{WORK * 1_000 // SECOND} ms per job. Each dot is one job of a quiet tenant."
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(head)}</title>",
        f"<desc>{escape('; '.join(f'{run.title}: {_result(run.stats)}' for run in runs))}</desc>",
        _STYLE,
        f'<rect class="back" x=".5" y=".5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="8"/>',
        _text(24, 36, head, "title"),
        _text(24, 58, setup, "soft"),
    ]
    for left, run in zip(_LEFTS, runs, strict=True):
        lines += _panel(left, run, scale)
    return "\n".join([*lines, "</svg>", ""])


def _panel(left: int, run: DrawnRun, scale: _Scale) -> Iterator[str]:
    mood = "good" if run.is_fair else "bad"
    right = left + _PANEL
    yield _text(left, 94, run.title[:1].upper() + run.title[1:], "name")
    yield _text(right, 94, format_wait(_p95(run.stats)), f"figure end {mood}")
    yield _text(right, 110, "95 % of the quiet tenants' jobs start within this time", "soft end")
    yield _text(left, 130, "seconds a quiet tenant's job waits for its start", "soft")
    for tick in _ticks(scale.longest_wait):
        yield f'<path class="grid" d="M{left} {scale.y(tick):.1f}H{right}"/>'
        yield _text(left - 8, scale.y(tick) + 4, f"{tick:g}", "soft end")
    for job in run.stats.jobs.values():
        if job.tenant != NOISY and job.started_at is not None:
            x = scale.x(left, (job.sent_at - run.began_at) / SECOND)
            y = scale.y(job.wait / SECOND)
            yield f'<circle class="dot-{mood}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>'
    yield _text(left, _BACKLOG_TOP - 8, "jobs of the noisy tenant that still wait", "soft")
    yield f'<path class="crowd" d="{_backlog(left, run, scale)}"/>'
    yield f'<path class="grid" d="M{left} {_BACKLOG_BOTTOM}H{right}"/>'
    for tick in _ticks(scale.longest_run):
        yield _text(scale.x(left, tick), _BACKLOG_BOTTOM + 16, f"{tick:g}", "soft middle")
    yield _text(
        left + _PANEL / 2, _BACKLOG_BOTTOM + 34, "seconds since the noisy tenant's jobs came", "soft middle"
    )


def _backlog(left: int, run: DrawnRun, scale: _Scale) -> str:
    """Return the outline of the number of noisy jobs that have not started, over time."""
    jobs = [job for job in run.stats.jobs.values() if job.tenant == NOISY]
    points: list[str] = []
    for sample in range(_SAMPLES + 1):
        seconds = scale.longest_run * sample / _SAMPLES
        until = run.began_at + round(seconds * SECOND)
        waiting = sum(job.started_at is None or job.started_at > until for job in jobs)
        height = (_BACKLOG_BOTTOM - _BACKLOG_TOP) * waiting / max(1, len(jobs))
        points.append(f"{scale.x(left, seconds):.1f} {_BACKLOG_BOTTOM - height:.1f}")
    return f"M{left} {_BACKLOG_BOTTOM}L{'L'.join(points)}V{_BACKLOG_BOTTOM}Z"


def _ticks(longest: float) -> list[float]:
    """Return round numbers from 0 up to a value, at most five steps.

    >>> _ticks(12.3), _ticks(0.9)
    ([0, 5, 10], [0.0, 0.5])
    """
    step = next((step for step in _STEPS if longest / step <= _TICKS), _STEPS[-1])
    return [step * number for number in range(math.floor(longest / step) + 1)]


def _p95(stats: RunStats) -> Micros:
    return round(percentile(stats.waits(without={NOISY}), 0.95))


def _result(stats: RunStats) -> str:
    return f"95 % of the quiet tenants' jobs start within {format_wait(_p95(stats))}"


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'
