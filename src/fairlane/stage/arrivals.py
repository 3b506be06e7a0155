"""Who brings which jobs when: one list, so that every way of serving meets the same work. Pure."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from fairlane.model.instants import SECOND, Micros

WORK: Final = "work"
"""The task that takes its time and writes down that it ran."""


class Arrival(msgspec.Struct, frozen=True, order=True):
    """So many jobs of one tenant, this long after the beginning, each of which works so long."""

    at: Micros
    tenant: str
    jobs: int
    lasts: Micros
    task: str = WORK
    priority: int = 0


def now_and_then(
    draw: Random, tenant: str, lasts: Micros, until: float, *, since: float = 0
) -> list[Arrival]:
    """Give one job about every second, at other moments for every tenant.

    >>> [one.jobs for one in now_and_then(Random(7), "quiet", 10_000, until=3)]
    [1, 1, 1, 1]
    """
    found: list[Arrival] = []
    at = since + draw.uniform(0, 1)
    while at < until:
        found.append(Arrival(round(at * SECOND), tenant, 1, lasts))
        at += draw.uniform(0.5, 1.5)
    return found
