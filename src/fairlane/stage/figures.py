"""Count what happens to each tenant's jobs, from the ledger's records alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from fairlane.model.instants import Instant, Micros
from fairlane.model.ledger import Ended, Moment, Record, Started


class Span(NamedTuple):
    """For whom something went on, from when until when."""

    tenant: str
    start: int
    end: int


class Seen(msgspec.Struct, gc=False):
    """One job: who brought it, when its first attempt started, when its last one ended.

    It was about to be enqueued at `brought_at`; from `there_at` on it was certainly there. When it was
    claimed and settled is the store's word, by the store's clock.
    """

    tenant: str
    brought_at: Moment
    there_at: Moment
    started_at: Moment | None = None
    ended_at: Moment | None = None
    claimed_at: Instant | None = None
    settled_at: Instant | None = None

    @property
    def wait(self) -> Micros:
        """How long the job waited for its start; 0 as long as it has none."""
        return 0 if self.started_at is None else self.started_at - self.brought_at


class Tally(msgspec.Struct):
    """One tenant's jobs: how many came, started and ended, and how long each waited for its start."""

    came: int = 0
    started: int = 0
    ended: int = 0
    waits: list[Micros] = msgspec.field(default_factory=list[int])

    @property
    def waiting(self) -> int:
        """Jobs that nobody has begun."""
        return self.came - self.started

    @property
    def running(self) -> int:
        """Jobs in a handler."""
        return self.started - self.ended


class Figures:
    """The tallies of one run. A tenant here is who brought the job, whatever tenant it was stored under."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}
        self.jobs: dict[str, Seen] = {}

    @property
    def ended(self) -> int:
        """How many jobs have ended, of all tenants."""
        return sum(tally.ended for tally in self.tallies.values())

    def bring(self, tenant: str, jobs: Sequence[str], before: Moment, after: Moment) -> None:
        """Note jobs that were enqueued between these moments."""
        self.tallies.setdefault(tenant, Tally()).came += len(jobs)
        self.jobs.update((job, Seen(tenant, before, after)) for job in jobs)

    def follow(self, records: Iterable[Record]) -> None:
        """Take in what handlers wrote; a second start of a job counts in the checker, not here."""
        for record in records:
            if not isinstance(record, Started | Ended):
                continue
            seen = self.jobs[record.job]
            tally = self.tallies[seen.tenant]
            if isinstance(record, Ended):
                tally.ended += seen.ended_at is None
                seen.ended_at = record.at
            elif record.attempt == 1:
                seen.started_at = record.at
                tally.started += 1
                tally.waits.append(seen.wait)

    def handled(self) -> list[Span]:
        """Give when a handler ran for each job that has ended."""
        return [
            Span(one.tenant, one.started_at, one.ended_at)
            for one in self.jobs.values()
            if one.started_at is not None and one.ended_at is not None
        ]

    def claimed(self) -> list[Span]:
        """Give when each job that has ended had a slot, as the store tells it."""
        return [
            Span(one.tenant, one.claimed_at, one.settled_at)
            for one in self.jobs.values()
            if one.claimed_at is not None and one.settled_at is not None
        ]

    def waits(self, *, without: Collection[str] = ()) -> list[Micros]:
        """Give the waits of all tenants but these."""
        return [wait for name, tally in self.tallies.items() if name not in without for wait in tally.waits]


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value that this share of all does not exceed (nearest rank); 0 of none.

    >>> percentile([30, 10, 20, 40], 0.5), percentile([30, 10, 20, 40], 0.95), percentile([], 0.5)
    (20, 40, 0)
    """
    if not values:
        return 0
    return sorted(values)[max(0, -(-round(share * 1_000) * len(values) // 1_000) - 1)]
