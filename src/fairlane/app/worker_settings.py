"""How a worker behaves: the table `worker` of fairlane.toml, in whole microseconds. Checks nothing else."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import SECOND, Micros
from fairlane.model.judge import MAX_CRASHES


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Leases, the end, and what a worker does beside running jobs (S37, S40, S61).

    `max_jobs` and `max_memory` (bytes) are when a process has done enough and is replaced.
    """

    processes: int = 1
    lease: Micros = 12 * SECOND
    renew_every: Micros = 4 * SECOND
    shutdown_deadline: Micros = 30 * SECOND
    max_jobs: int | None = None
    max_memory: int | None = None
    max_crashes: int = MAX_CRASHES
    duties: bool = True
