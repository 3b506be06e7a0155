"""What a benchmark of several rounds found: the machine, and each figure with its spread and its goal.

`tools/proofs` renders the JSON as a page. Knows no benchmark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from fairlane.lab.bench.environment import host, versions
from fairlane.lab.bench.report import (
    Amount,
    Goal,
    Measure,
    RoundResult,
    conclude,
    show_number,
)

Amounts = Mapping[str, Amount]
"""The figures of one round of one scenario, by name."""


class Figures(msgspec.Struct, frozen=True):
    """All figures of a run, in the order of their scenarios."""

    host: Mapping[str, str | int | float]
    rounds: int
    measures: tuple[Measure, ...]


def play(
    scenarios: Mapping[str, Callable[[int], Amounts]], goals: Mapping[str, Goal], rounds: int
) -> Figures:
    """Run every scenario once in each round, so that a busy moment of the machine meets all of them.

    A scenario gets the number of the round. `goals` are by the name of the figure.
    """
    about: Mapping[str, str | int | float] = {**host(), **versions()}
    found: dict[str, list[RoundResult]] = {name: [] for name in scenarios}
    for number in range(rounds):
        for name, scenario in scenarios.items():
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
            found[name].append(RoundResult(scenario(number)))
    measures = (one for name, results in found.items() for one in conclude(name, results, lambda _: goals))
    return Figures(about, rounds, tuple(measures))


def show(figures: Figures) -> None:
    """Print them for people."""
    print(", ".join(f"{key} {value}" for key, value in figures.host.items()))
    print(f"the median of {figures.rounds} rounds (the lowest to the highest)")
    for line in lines(figures.measures):
        print(line)


def lines(measures: Iterable[Measure]) -> Sequence[str]:
    """Lay out a line for each figure.

    >>> found = conclude("start", [RoundResult({"first job": Amount(210, "ms")})])
    >>> lines(found)
    ['start: first job 210.00 ms (210.00 to 210.00)']
    """
    return [
        f"{one.scenario}: {one.name} {show_number(one.median, one.unit)} {one.unit}".rstrip()
        + f" ({show_number(one.low, one.unit)} to {show_number(one.high, one.unit)})"
        + ("" if one.goal is None else f", asked {one.goal.text}: {_MET[bool(one.met)]}")
        for one in measures
    ]


def tell(figures: Figures, *, as_json: bool) -> None:
    """Print them, for people or as one JSON object."""
    if as_json:
        print(msgspec.json.encode(figures).decode())
    else:
        show(figures)


_MET: Final = {True: "met", False: "not met"}
