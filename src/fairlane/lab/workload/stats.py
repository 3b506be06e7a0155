"""Statistics of a run by tenant, from the ledger's records alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from fairlane.lab.ledger import Ended, Moment, Record, Started
from fairlane.model.instants import Instant, Micros


class Interval(NamedTuple):
    """A time interval that belongs to a tenant."""

    tenant: str
    start: int
    end: int


class JobTimes(msgspec.Struct, gc=False):
    """The times of one job: when it was enqueued, when its first attempt started, when its last one ended.

    Its enqueue was sent at `sent_at` and answered at `acknowledged_at`. `claimed_at` and `settled_at` are
    from the store's history, by the store's clock.
    """

    tenant: str
    sent_at: Moment
    acknowledged_at: Moment
    started_at: Moment | None = None
    ended_at: Moment | None = None
    claimed_at: Instant | None = None
    settled_at: Instant | None = None

    @property
    def wait(self) -> Micros:
        """How long the job waited for its start; 0 before that."""
        return 0 if self.started_at is None else self.started_at - self.sent_at


class TenantStats(msgspec.Struct):
    """One tenant's jobs: how many were enqueued, started and ended, and each one's wait for its start."""

    enqueued: int = 0
    started: int = 0
    ended: int = 0
    waits: list[Micros] = msgspec.field(default_factory=list[int])

    @property
    def waiting(self) -> int:
        """Jobs that have not started."""
        return self.enqueued - self.started

    @property
    def running(self) -> int:
        """Jobs whose handler is running."""
        return self.started - self.ended


class RunStats:
    """The statistics of one run. A tenant here is the sender, even if all jobs are stored under one."""

    def __init__(self) -> None:
        self.tenants: dict[str, TenantStats] = {}
        self.jobs: dict[str, JobTimes] = {}

    @property
    def ended(self) -> int:
        """How many jobs have ended, of all tenants."""
        return sum(stats.ended for stats in self.tenants.values())

    def add_enqueued(self, tenant: str, jobs: Sequence[str], before: Moment, after: Moment) -> None:
        """Add jobs whose enqueue was sent at `before` and answered at `after`."""
        self.tenants.setdefault(tenant, TenantStats()).enqueued += len(jobs)
        self.jobs.update((job, JobTimes(tenant, before, after)) for job in jobs)

    def add_records(self, records: Iterable[Record]) -> None:
        """Add what handlers recorded; a second start of a job counts in the checker, not here."""
        for record in records:
            if not isinstance(record, Started | Ended):
                continue
            seen = self.jobs[record.job]
            stats = self.tenants[seen.tenant]
            if isinstance(record, Ended):
                stats.ended += seen.ended_at is None
                seen.ended_at = record.at
            elif record.attempt == 1:
                seen.started_at = record.at
                stats.started += 1
                stats.waits.append(seen.wait)

    def handled(self) -> list[Interval]:
        """Return when the handler of each ended job ran."""
        return [
            Interval(one.tenant, one.started_at, one.ended_at)
            for one in self.jobs.values()
            if one.started_at is not None and one.ended_at is not None
        ]

    def claimed(self) -> list[Interval]:
        """Return when each ended job occupied a slot, according to the store."""
        return [
            Interval(one.tenant, one.claimed_at, one.settled_at)
            for one in self.jobs.values()
            if one.claimed_at is not None and one.settled_at is not None
        ]

    def waits(self, *, without: Collection[str] = ()) -> list[Micros]:
        """Return the waits of all tenants but these."""
        return [wait for name, stats in self.tenants.items() if name not in without for wait in stats.waits]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the percentile (nearest rank) of some values; 0 if there are none.

    >>> percentile([30, 10, 20, 40], 0.5), percentile([30, 10, 20, 40], 0.95), percentile([], 0.5)
    (20, 40, 0)
    """
    if not values:
        return 0
    return sorted(values)[max(0, -(-round(share * 1_000) * len(values) // 1_000) - 1)]
