"""Tenants side by side: what each holds of the slots, what is fair, since when it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args
from uuid import UUID

from fairlane.app.admin.views import Held

ShareOrder: TypeAlias = Literal["impact", "waits", "waiting", "running", "dead", "name"]
"""By whom it slows and how it is slowed, by the wait of its first job, by a number, or by name."""

ShareFilter: TypeAlias = Literal["all", "over", "slowed", "waiting", "running", "held", "dead", "idle"]
"""Which tenants: `held` are paused or closed, `idle` have no unfinished job."""

ORDERS: Final[Sequence[ShareOrder]] = get_args(ShareOrder)
FILTERS: Final[Sequence[ShareFilter]] = get_args(ShareFilter)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueShare:
    """One tenant in one queue at one instant.

    `running` are the slots that it holds, `fair` its fair share of all that the queue's jobs hold (S93),
    `guaranteed` what it has of them even if every other tenant wants more. `is_over` and `is_slowed` say
    whether it slows others or is slowed by them (S94). `first_id` is its first ready job, which waits since
    `waits_since`; None if none is ready.
    """

    queue: str
    ready: int
    delayed: int
    running: int
    fair: float
    guaranteed: float
    is_over: bool
    is_slowed: bool
    first_id: UUID | None
    waits_since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantShare:
    """One tenant at one instant: its weight, its unfinished jobs, how many of its jobs are dead.

    The numbers are sums over its `queues`, and `waits_since` is the earliest of theirs. It is over, or
    slowed, if it is so in one of them.
    """

    tenant: str
    weight: float
    labels: Mapping[str, str]
    paused: Held | None
    closed: Held | None
    ready: int
    delayed: int
    running: int
    fair: float
    dead: int
    is_over: bool
    is_slowed: bool
    waits_since: datetime | None
    queues: Sequence[QueueShare]

    @property
    def waiting(self) -> int:
        """Its delayed and ready jobs."""
        return self.delayed + self.ready


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotHolder:
    """A tenant that holds slots of a queue, or is owed some."""

    tenant: str
    running: int
    fair: float
    waits_since: datetime | None = None
    first_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQueue:
    """A queue at one instant: how many slots its jobs hold, how many jobs are ready, of how many tenants.

    `holders` are the tenants that hold most, at most 12. `over` are those that hold more than their share
    while the `slowed` ones wait for less than theirs (S94), at most 12 of each; the numbers beside them are
    of all.
    """

    queue: str
    running: int
    ready: int
    tenants: int
    holders: Sequence[SlotHolder]
    over: Sequence[SlotHolder]
    overs: int
    slowed: Sequence[SlotHolder]
    sloweds: int
    paused: Held | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantShares:
    """One page of tenants, and the queues that they share. Without a cursor there are no more.

    `counts` says how many tenants each filter has. Unless `is_complete`, there are more tenants than are read
    at once: those behind in the alphabet were left out, and shares are of the others alone.
    """

    items: Sequence[TenantShare]
    queues: Sequence[SharedQueue]
    counts: Mapping[ShareFilter, int]
    cursor: str | None
    is_complete: bool
