"""The settings of a worker: the table `[worker]` of fairlane.toml, in whole microseconds. Checks nothing."""

from __future__ import annotations

import msgspec

from fairlane.model.instants import SECOND, Micros


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Lease and renewal, shutdown, and whether the worker takes part in the duties (S37, S61).

    After `max_jobs` jobs a worker stops in good order, so that its supervisor replaces it.
    """

    lease: Micros = 12 * SECOND
    renew_every: Micros = 4 * SECOND
    shutdown_deadline: Micros = 30 * SECOND
    max_jobs: int | None = None
    duties: bool = True
