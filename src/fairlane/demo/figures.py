"""Count what happens to each tenant's jobs, from the ledger's records alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fairlane.demo.arrivals import NOISY
from fairlane.model.instants import Micros
from fairlane.model.ledger import Ended, Moment, Record, Started


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
        self.last_end: Moment = 0
        self._brought: dict[str, tuple[str, Moment]] = {}

    def bring(self, tenant: str, jobs: Sequence[str], at: Moment) -> None:
        """Note jobs that were about to be enqueued at this moment."""
        self.tallies.setdefault(tenant, Tally()).came += len(jobs)
        self._brought.update((job, (tenant, at)) for job in jobs)

    def follow(self, records: Iterable[Record]) -> None:
        """Take in what handlers wrote; a second start of a job counts in the checker, not here."""
        for record in records:
            if isinstance(record, Started) and record.attempt == 1:
                tenant, brought_at = self._brought[record.job]
                tally = self.tallies[tenant]
                tally.started += 1
                tally.waits.append(record.at - brought_at)
            elif isinstance(record, Ended):
                self.tallies[self._brought[record.job][0]].ended += 1
                self.last_end = max(self.last_end, record.at)

    def waits_of_quiet(self) -> list[Micros]:
        """Give the waits of all but the noisy tenant."""
        return [wait for tenant, tally in self.tallies.items() if tenant != NOISY for wait in tally.waits]


def percentile(values: Sequence[Micros], share: float) -> Micros:
    """Give the value that this share of all does not exceed (nearest rank); 0 of none.

    >>> percentile([30, 10, 20, 40], 0.5), percentile([30, 10, 20, 40], 0.95), percentile([], 0.5)
    (20, 40, 0)
    """
    if not values:
        return 0
    return sorted(values)[max(0, -(-round(share * 1_000) * len(values) // 1_000) - 1)]
