"""Detect overload of a queue from how long its next jobs have waited. Knows no clock, no store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from fairlane.model.instants import MINUTE, SECOND, Instant, Micros
from fairlane.model.job import JobRecord

LATE: Final[Micros] = 10 * SECOND
"""Jobs of several tenants that could start have waited too long after this time."""

LONG: Final[Micros] = 15 * MINUTE
"""No job should wait longer, not even behind jobs of its own tenant."""

LOOKED_AT: Final = 20
"""How many of the next jobs are looked at."""


class Overload(NamedTuple):
    """The longest wait among the next jobs of a queue, and how many tenants wait too long."""

    waited: Micros
    tenants: int


def overload(next_jobs: Iterable[JobRecord], now: Instant) -> Overload | None:
    """Return the overload if jobs wait too long: 10 s for several tenants, 15 minutes for a single one.

    A tenant that is alone waits behind its own jobs: a backlog that delays nobody else.
    """
    waits: dict[str, Micros] = {}
    for job in next_jobs:
        waits[job.tenant] = max(waits.get(job.tenant, 0), now - job.run_at)
    late = [waited for waited in waits.values() if waited >= LATE]
    longest = max(late, default=0)
    return Overload(longest, len(late)) if len(late) > 1 or longest >= LONG else None
