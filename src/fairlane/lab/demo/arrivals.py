"""The arrivals of the demo: one list, so that both runs get the same work. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from fairlane.lab.workload.arrivals import Arrival, about_every_second
from fairlane.model.instants import SECOND, Micros

NOISY: Final = "noisy"
QUIET: Final = tuple(f"quiet-{number:02}" for number in range(1, 13))

WORK: Final[Micros] = SECOND // 50
"""The duration of each job."""

PROCESSES: Final = 2
SLOTS: Final = 8
"""Slots of each process."""

_BATCH: Final = 500
_FILL: Final = 0.6
"""The part of the time that the flood takes at full speed; the rest is for slower machines."""


def make_arrivals(seed: int, seconds: float) -> list[Arrival]:
    """Return the arrivals of a run of about this many seconds, in the order of time.

    The noisy tenant enqueues everything at once, each quiet tenant one job about every second meanwhile.

    >>> arrivals = make_arrivals(7, 10)
    >>> arrivals[0].tenant, sum(one.jobs for one in arrivals if one.tenant == NOISY)
    ('noisy', 5000)
    """
    draw = Random(seed)  # noqa: S311 (a repeatable list, no secret)
    busy = seconds * _FILL
    flood = round(busy * PROCESSES * SLOTS * SECOND / WORK / _BATCH) * _BATCH
    arrivals = [Arrival(0, NOISY, _BATCH, WORK) for _ in range(flood // _BATCH)]
    for tenant in QUIET:
        arrivals += about_every_second(draw, tenant, WORK, busy, since=0.5)
    return sorted(arrivals)


def describe(arrivals: Sequence[Arrival], seed: int) -> str:
    """Describe the arrivals in one line."""
    noisy = sum(one.jobs for one in arrivals if one.tenant == NOISY)
    quiet = sum(one.jobs for one in arrivals if one.tenant != NOISY)
    return (
        f"arrivals (seed {seed}): one noisy tenant enqueues {noisy:,} jobs at once, {len(QUIET)} quiet "
        f"tenants {quiet} jobs over {max(one.at for one in arrivals) / SECOND:.0f} s; "
        f"each job takes {WORK * 1_000 // SECOND} ms; {PROCESSES} worker processes with {SLOTS} slots each"
    )
