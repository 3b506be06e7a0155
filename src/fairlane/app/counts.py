"""How many jobs there are, by state and by reason, and how many of them were looked at to know it (S51)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from fairlane.model.instants import to_datetime
from fairlane.model.lifecycle import WAITING, State, is_finished
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Count, Tally, TallyRequest
from fairlane.store.contract.request import READ_MOST


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Counts(Mapping[State, int]):
    """Numbers of jobs by state; every state is there. Compares like a dict.

    `because` has the jobs of a state apart by the first word of their `because`: `time`, `retry` or `snooze`
    of delayed ones. It is empty where counters answered, which know no reasons. `looked_at` says how many
    jobs were compared with the filters; `cursor` is where to go on, if not all were. `oldest_at` is the
    earliest enqueue of a job that was counted, where jobs were looked at.
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
        """Whether every job was looked at; if not, the numbers are of some of them."""
        return self.cursor is None

    @property
    def total(self) -> int:
        """All jobs that were counted."""
        return sum(self.states.values())

    @property
    def waiting(self) -> int:
        """Those that are delayed or ready."""
        return sum(number for state, number in self.states.items() if state in WAITING)

    @property
    def unfinished(self) -> int:
        """Those that wait or run."""
        return sum(number for state, number in self.states.items() if not is_finished(state))

    @property
    def is_finished(self) -> bool:
        """Whether nothing of it waits or runs: every job was looked at, and has ended one way or another.

        Also true where there is no job at all: compare `total` with how many there should be.
        """
        return self.is_complete and self.unfinished == 0


def counts_of(counts: Iterable[Count], wanted: frozenset[State]) -> Counts:
    """Add up what counters say, of some states or of all."""
    states = dict.fromkeys(State, 0)
    for count in counts:
        if not wanted or count.state in wanted:
            states[count.state] += count.jobs
    return Counts(states=states, because={}, looked_at=sum(states.values()))


class Tallied(msgspec.Struct, frozen=True):
    """What all pages of a tally come to."""

    tallies: tuple[Tally, ...]
    looked_at: int
    cursor: str | None


async def tally_all(store: Store, request: TallyRequest, most: int | None = None) -> Tallied:
    """Ask for page after page, until everything, or so many jobs, were looked at."""
    tallies: list[Tally] = []
    looked_at = 0
    while True:
        left = READ_MOST if most is None else min(READ_MOST, most - looked_at)
        page = await store.jobs.tally(msgspec.structs.replace(request, most=max(1, left)))
        tallies += page.tallies
        looked_at += page.looked_at
        if page.cursor is None or (most is not None and looked_at >= most):
            return Tallied(tuple(tallies), looked_at, page.cursor)
        request = msgspec.structs.replace(request, cursor=page.cursor)


def counts_from(tallied: Tallied) -> Counts:
    """Add up what was looked at."""
    states = dict.fromkeys(State, 0)
    because: dict[State, dict[str, int]] = {}
    for one in tallied.tallies:
        states[one.state] += one.jobs
        if one.word:
            words = because.setdefault(one.state, {})
            words[one.word] = words.get(one.word, 0) + one.jobs
    first_at = min((one.first_at for one in tallied.tallies), default=None)
    return Counts(
        states=states,
        because=because,
        looked_at=tallied.looked_at,
        cursor=tallied.cursor,
        oldest_at=None if first_at is None else to_datetime(first_at),
    )
