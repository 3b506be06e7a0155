"""The arrivals of a run: which tenant enqueues how many jobs when. Pure, so that runs can be repeated."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from fairlane.model.instants import SECOND, Micros

WORK: Final = "work"
"""The task that works for a while and records that it ran."""


class Arrival(msgspec.Struct, frozen=True, order=True):
    """`jobs` jobs of one tenant, enqueued `at` after the start of the run; each works for `duration`."""

    at: Micros
    tenant: str
    jobs: int
    duration: Micros
    task: str = WORK
    priority: int = 0


def about_every_second(
    draw: Random, tenant: str, duration: Micros, until: float, *, since: float = 0
) -> list[Arrival]:
    """Return one job about every second, at random times that differ between tenants.

    >>> [one.jobs for one in about_every_second(Random(7), "quiet", 10_000, until=3)]
    [1, 1, 1, 1]
    """
    found: list[Arrival] = []
    at = since + draw.uniform(0, 1)
    while at < until:
        found.append(Arrival(round(at * SECOND), tenant, 1, duration))
        at += draw.uniform(0.5, 1.5)
    return found
