"""What a schedule says: when its slots are, and which job a slot makes. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from fairlane.model.instants import DAY, Instant, Micros
from fairlane.model.job import NewJob
from fairlane.model.schedule.timing import Timing

Overlap: TypeAlias = Literal["allow", "skip", "queue_one"]
"""What becomes of a slot while a job of an earlier one is there (S14): `skip` while that waits or runs,
`queue_one` while it waits."""

CatchUp: TypeAlias = Literal["skip", "latest"] | int
"""Which slots are taken late that nobody has taken in time: none, the last one, or the last so many."""

LOOK_BACK: Final[Micros] = DAY
"""How old a slot may be that is taken late, unless the schedule says otherwise."""


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as somebody has written it down. Every value has been checked.

    `job` is what each slot enqueues, but for its id and times; `for_tenants` has one job made for each
    declared tenant with these labels instead, spread over `spread`. Slots are those of the timing from
    `starts` to `ends`, both included. A slot less than `unique_for` after the one that was taken before it is
    skipped. After `pause_after` dead jobs in a row the schedule is paused.
    """

    name: str
    job: NewJob
    timing: Timing
    for_tenants: Mapping[str, str] | None = None
    spread: Micros = 0
    starts: Instant | None = None
    ends: Instant | None = None
    catch_up: CatchUp = "latest"
    look_back: Micros = LOOK_BACK
    overlap: Overlap = "allow"
    unique_for: Micros = 0
    pause_after: int | None = None
    note: str = ""

    @property
    def task(self) -> str:
        """The task of its jobs."""
        return self.job.task

    @property
    def tenant(self) -> str | None:
        """The tenant of its jobs; None if they are made for many."""
        return self.job.tenant if self.for_tenants is None else None
