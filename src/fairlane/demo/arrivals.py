"""Draw up who enqueues what and when: one list, so that both ways of serving meet the same work. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.stage.arrivals import Arrival, now_and_then

NOISY: Final = "noisy"
QUIET: Final = tuple(f"quiet-{number:02}" for number in range(1, 13))

WORK: Final[Micros] = SECOND // 50
"""How long each job works."""

PROCESSES: Final = 2
SLOTS: Final = 8
"""Of each process."""

_BATCH: Final = 500
_FILL: Final = 0.6
"""How much of the time the flood takes at full speed; the rest is for machines that are slower."""


def draw_up(seed: int, seconds: float) -> list[Arrival]:
    """Give the arrivals of a run of about so many seconds, in the order of time.

    The noisy tenant brings everything at once; each quiet one a job about every second while that is worked
    off.

    >>> arrivals = draw_up(7, 10)
    >>> arrivals[0].tenant, sum(one.jobs for one in arrivals if one.tenant == NOISY)
    ('noisy', 5000)
    """
    draw = Random(seed)  # noqa: S311 (a repeatable list, no secret)
    busy = seconds * _FILL
    flood = round(busy * PROCESSES * SLOTS * SECOND / WORK / _BATCH) * _BATCH
    arrivals = [Arrival(0, NOISY, _BATCH, WORK) for _ in range(flood // _BATCH)]
    for tenant in QUIET:
        arrivals += now_and_then(draw, tenant, WORK, busy, since=0.5)
    return sorted(arrivals)


def describe(arrivals: Sequence[Arrival], seed: int) -> str:
    """Say in one line what the list holds."""
    noisy = sum(one.jobs for one in arrivals if one.tenant == NOISY)
    quiet = sum(one.jobs for one in arrivals if one.tenant != NOISY)
    return (
        f"arrivals of seed {seed}: {noisy:,} jobs of one noisy tenant at once, {quiet} of {len(QUIET)} quiet "
        f"ones over {max(one.at for one in arrivals) / SECOND:.0f} s; each works "
        f"{WORK * 1_000 // SECOND} ms; {PROCESSES} processes of {SLOTS} slots"
    )
