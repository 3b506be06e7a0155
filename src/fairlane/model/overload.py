"""Decide whether more work comes than workers do, from the next jobs of a queue. Knows no clock, no store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from fairlane.model.instants import MINUTE, SECOND, Instant, Micros
from fairlane.model.job import JobRecord

LATE: Final[Micros] = 10 * SECOND
"""A job that might start has waited too long, if others' jobs have, too."""

LONG: Final[Micros] = 15 * MINUTE
"""So long nobody's job should wait, be it behind jobs of its own tenant."""

LOOKED_AT: Final = 20
"""How many of the next jobs are enough to judge by."""


class Overload(NamedTuple):
    """How long the next jobs of a queue have waited at most, and of how many tenants they are."""

    waited: Micros
    tenants: int


def overload(next_jobs: Iterable[JobRecord], now: Instant) -> Overload | None:
    """Say that jobs which might start wait too long: of several tenants 10 s, of a single one 15 minutes.

    A tenant alone in the order waits behind its own jobs: that is a backlog, and delays nobody else.
    """
    waits: dict[str, Micros] = {}
    for job in next_jobs:
        waits[job.tenant] = max(waits.get(job.tenant, 0), now - job.run_at)
    late = [waited for waited in waits.values() if waited >= LATE]
    longest = max(late, default=0)
    return Overload(longest, len(late)) if len(late) > 1 or longest >= LONG else None
