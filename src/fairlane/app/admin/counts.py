"""Counts of jobs by state and reason, and how many jobs were scanned to get them (S51)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from fairlane.model.instants import to_datetime
from fairlane.model.lifecycle.states import WAITING, State, is_finished
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Count, JobTally, TallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Counts(Mapping[State, int]):
    """Numbers of jobs by state, with every state present. A mapping that compares like a dict.

    `because` splits the jobs of a state by their reason, such as `time`, `retry` or `snooze` of delayed jobs;
    it is empty if counters answered, which know no reasons. `looked_at` is how many jobs were scanned, and
    `cursor` where to continue if that was not all. `oldest_at` is the earliest enqueue time among the counted
    jobs; None if counters answered.
    """

    states: Mapping[State, int]
    because: Mapping[State, Mapping[str, int]]
    looked_at: int
    cursor: str | None = None
    oldest_at: datetime | None = None

    def __getitem__(self, state: State) -> int:
        return self.states[State(state)]

    def __iter__(self) -> Iterator[State]:
        return iter(self.states)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def is_complete(self) -> bool:
        """Whether every job was counted; if not, the numbers cover only a part."""
        return self.cursor is None

    @property
    def total(self) -> int:
        """The number of all counted jobs."""
        return sum(self.states.values())

    @property
    def waiting(self) -> int:
        """The number of delayed and ready jobs."""
        return sum(number for state, number in self.states.items() if state in WAITING)

    @property
    def unfinished(self) -> int:
        """The number of jobs that wait or run."""
        return sum(number for state, number in self.states.items() if not is_finished(state))

    @property
    def is_finished(self) -> bool:
        """Whether all jobs have ended: every job was counted, and none waits or runs.

        Danger: also true if there is no job at all. Compare `total` with the number you expect.
        """
        return self.is_complete and self.unfinished == 0


def counts_of(counts: Iterable[Count], wanted: frozenset[State]) -> Counts:
    """Add up a store's counters, of the wanted states or of all."""
    states = dict.fromkeys(State, 0)
    for count in counts:
        if not wanted or count.state in wanted:
            states[count.state] += count.jobs
    return Counts(states=states, because={}, looked_at=sum(states.values()))


class TallyTotal(msgspec.Struct, frozen=True):
    """The sum of all pages of a tally."""

    tallies: tuple[JobTally, ...]
    looked_at: int
    cursor: str | None


async def tally_all(store: Store, request: TallyRequest, limit: int | None = None) -> TallyTotal:
    """Read page after page until all jobs, or `limit` of them, were scanned."""
    tallies: list[JobTally] = []
    looked_at = 0
    while True:
        left = MAX_ROWS_READ if limit is None else min(MAX_ROWS_READ, limit - looked_at)
        page = await store.jobs.tally(msgspec.structs.replace(request, limit=max(1, left)))
        tallies += page.tallies
        looked_at += page.looked_at
        if page.cursor is None or (limit is not None and looked_at >= limit):
            return TallyTotal(tuple(tallies), looked_at, page.cursor)
        request = msgspec.structs.replace(request, cursor=page.cursor)


def counts_from(tallied: TallyTotal) -> Counts:
    """Return the counts of a tally."""
    states = dict.fromkeys(State, 0)
    because: dict[State, dict[str, int]] = {}
    for one in tallied.tallies:
        states[one.state] += one.jobs
        if one.reason:
            reasons = because.setdefault(one.state, {})
            reasons[one.reason] = reasons.get(one.reason, 0) + one.jobs
    first_at = min((one.first_at for one in tallied.tallies), default=None)
    return Counts(
        states=states,
        because=because,
        looked_at=tallied.looked_at,
        cursor=tallied.cursor,
        oldest_at=None if first_at is None else to_datetime(first_at),
    )
