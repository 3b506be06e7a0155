"""Draw a chart as SVG: points or lines on two axes, with a legend. Knows no benchmark and no file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, TypeAlias

import msgspec

Point: TypeAlias = tuple[float, float]

_WIDTH: Final = 860
_HEIGHT: Final = 420
_LEFT: Final = 70
_RIGHT: Final = 220
_TOP: Final = 40
_BOTTOM: Final = 50
_COLORS: Final = ("#d1495b", "#00798c", "#edae49", "#30638e", "#7a5195", "#3d405b", "#6a994e")
_MOST_POINTS: Final = 1_000
_TICKS: Final = 6


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Some series of points. Logarithmic axes leave out values that are not above zero."""

    name: str
    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[Point]]
    has_lines: bool = False
    is_log_x: bool = False
    is_log_y: bool = True


class _Axis:
    """Maps values to positions between two ends, and chooses the ticks."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, is_log: bool) -> None:
        self._is_log = is_log
        self._start, self._end = start, end
        self._low, self._high = (min(values), max(values)) if values else (1.0, 10.0)
        if is_log:
            self._low, self._high = math.floor(math.log10(self._low)), math.ceil(math.log10(self._high))
        else:
            self._low = min(0.0, self._low)
        if self._high <= self._low:
            self._high = self._low + 1

    def at(self, value: float) -> float:
        environment = math.log10(value) if self._is_log else value
        return self._start + (self._end - self._start) * (environment - self._low) / (self._high - self._low)

    def ticks(self) -> list[float]:
        if self._is_log:
            return [10.0**power for power in range(int(self._low), int(self._high) + 1)]
        step = 10.0 ** math.floor(math.log10((self._high - self._low) / _TICKS))
        step *= next(by for by in (1, 2, 5, 10) if (self._high - self._low) / (step * by) <= _TICKS)
        return [step * n for n in range(math.ceil(self._low / step), math.floor(self._high / step) + 1)]


def svg(chart: Chart) -> str:
    """Return the chart as SVG.

    >>> svg(Chart(name="n", title="a < b", x="s", y="ms", series={"one": [(0, 5)]})).count("<circle")
    1
    """
    return "\n".join([*_lines(chart), "</svg>", ""])


def _lines(chart: Chart) -> Iterator[str]:
    points = {name: thinned(_drawable(chart, found)) for name, found in chart.series.items()}
    xs = [x for found in points.values() for x, _ in found]
    ys = [y for found in points.values() for _, y in found]
    across = _Axis(xs, _LEFT, _WIDTH - _RIGHT, is_log=chart.is_log_x)
    up = _Axis(ys, _HEIGHT - _BOTTOM, _TOP, is_log=chart.is_log_y)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    yield _text(_LEFT, _TOP - 16, chart.title, 'font-size="14"')
    for tick in across.ticks():
        yield _grid(across.at(tick), _TOP, across.at(tick), _HEIGHT - _BOTTOM)
        yield _text(across.at(tick), _HEIGHT - _BOTTOM + 18, f"{tick:,.10g}", 'text-anchor="middle"')
    for tick in up.ticks():
        yield _grid(_LEFT, up.at(tick), _WIDTH - _RIGHT, up.at(tick))
        yield _text(_LEFT - 6, up.at(tick) + 4, f"{tick:,.10g}", 'text-anchor="end"')
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, chart.x, 'text-anchor="middle"')
    yield _text(8, _TOP - 16, chart.y)
    for number, (name, found) in enumerate(points.items()):
        color = _COLORS[number % len(_COLORS)]
        placed = [(across.at(x), up.at(y)) for x, y in found]
        if chart.has_lines and placed:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield from (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}" fill-opacity="0.6"/>'
            for x, y in placed
        )
        row = _TOP + 10 + 20 * number
        yield f'<rect x="{_WIDTH - _RIGHT + 14}" y="{row - 9}" width="10" height="10" fill="{color}"/>'
        yield _text(_WIDTH - _RIGHT + 30, row, name)


def _drawable(chart: Chart, points: Sequence[Point]) -> list[Point]:
    return [(x, y) for x, y in points if (x > 0 or not chart.is_log_x) and (y > 0 or not chart.is_log_y)]


def thinned(points: Sequence[Point], most: int = _MOST_POINTS) -> Sequence[Point]:
    """Leave out points evenly, so that no more than `most` are left.

    >>> thinned([(n, n) for n in range(10)], most=5)
    [(0, 0), (2, 2), (4, 4), (6, 6), (8, 8)]
    """
    return points if len(points) <= most else points[:: -(-len(points) // most)]


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'
