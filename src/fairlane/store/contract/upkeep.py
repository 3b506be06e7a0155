"""The store itself: schema, retention, forgetting, counters, inspection."""

from __future__ import annotations

from typing import Protocol

import msgspec

from fairlane.model.lifecycle.states import Home, State
from fairlane.model.policy.pressure import StoreSize
from fairlane.model.policy.prune_mark import NO_MARK, PruneMark
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.repair import RepairReply, RepairRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request


class MigrateReply(msgspec.Struct, frozen=True):
    """The schema version before and after, and the steps between."""

    before: int
    after: int
    steps: tuple[str, ...] = ()


class PruneRequest(Request, frozen=True, kw_only=True):
    """Remove what has passed its retention, in one bounded pass.

    `mark` is that of the last reply, if it had the same retention and scope: the pass then reads only what
    has become old since. Without it, it reads the whole history. `is_archived`: jobs that it removes go to
    the open batch of the history facet, in the same step (S105).

    `is_early`: besides, the oldest succeeded and cancelled jobs go before their time (S126). A pass takes
    those that ended after what passes with this `mark` have taken: up to `limit`, or on a store whose space
    comes back by the day those of the next whole day. `is_measured`: say how large the store is afterwards.
    """

    retention: Retention
    limit: int = 1_000
    mark: PruneMark = NO_MARK
    is_archived: bool = False
    is_early: bool = False
    is_measured: bool = False


class PruneReply(msgspec.Struct, frozen=True):
    """What was removed, `states` says of which states. `is_partial`: there was more.

    `has_more_early`: another early pass may find more that it may remove. `size` is None unless asked for,
    and where the store does not know it.
    """

    jobs: int = 0
    results: int = 0
    keys: int = 0
    is_partial: bool = False
    states: dict[State, int] = {}
    mark: PruneMark = NO_MARK
    has_more_early: bool = False
    size: StoreSize | None = None


class ForgetRequest(Request, frozen=True, kw_only=True):
    """Erase the contents of a tenant's jobs; the scope must be that tenant."""

    reason: str
    who: str
    limit: int = 1_000
    cursor: str | None = None


class ForgetReply(msgspec.Struct, frozen=True):
    """How many jobs were erased, how many still run, and the cursor for the next pass; None at the end.

    Jobs that still run are erased by a new run of passes once they have ended.
    """

    erased: int = 0
    running: int = 0
    cursor: str | None = None


class PurgeRequest(Request, frozen=True, kw_only=True):
    """Cancel waiting jobs of the scope, optionally of one queue or task, in one bounded pass."""

    reason: str
    who: str
    queue: str | None = None
    task: str | None = None
    limit: int = 1_000
    cursor: str | None = None


class PurgeReply(msgspec.Struct, frozen=True):
    """How many were cancelled, and the cursor for the next pass; None at the end."""

    cancelled: int = 0
    cursor: str | None = None


class DedicateRequest(Request, frozen=True, kw_only=True):
    """Dedicate a store to a purpose."""

    purpose: str


class TenantCounters(msgspec.Struct, frozen=True, order=True):
    """The store's counters of one (queue, tenant), which limits are compared with."""

    queue: str
    tenant: str
    waiting: int
    running: int


class GateCounter(msgspec.Struct, frozen=True, order=True):
    """The store's counter of one gate."""

    gate: str
    used: int


class CensusRequest(Request, frozen=True, kw_only=True):
    """Ask for the counters, of at most `MAX_PAGE_SIZE` tenants per page."""

    limit: int = MAX_PAGE_SIZE
    cursor: str | None = None


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """The store's own counters, to be compared with a recount. Zeros are left out.

    Counters of tenants come in pages, ordered by queue and tenant; all others are on the first page.
    """

    homes: dict[Home, int]
    tenants: tuple[TenantCounters, ...]
    gates: tuple[GateCounter, ...]
    idempotency_keys: int
    dedup_keys: int
    cursor: str | None = None


def not_dedicated(before: str | None) -> str:
    """Return why a store cannot be dedicated, given its purpose so far."""
    return "the store holds jobs" if before is None else f"the store is for {before}"


class UpkeepFacet(Protocol):
    """Maintain the store.

    Passes are bounded and may be repeated. Each job is its own atomic step: an interrupted pass has handled
    some jobs completely and the others not at all.
    """

    async def migrate(self) -> MigrateReply:
        """Migrate the schema to this version. Safe to repeat and to run concurrently. Never downgrades."""

    async def plan(self) -> MigrateReply:
        """Return what `migrate` would do now. Changes nothing and creates no store."""

    async def prune(self, request: PruneRequest) -> PruneReply:
        """Remove finished jobs, results and idempotency keys past their retention (S52, S103, S126).

        Oldest settlement first. Never removes a hot job, nor a key before its job. Counters change in the
        same step. A job that was settled with an earlier instant than a pass has read is removed by the next
        pass without a mark.
        """

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        """Erase payloads, results, errors, tags, metadata, creators and keys of a tenant; counts stay true.

        Waiting jobs are cancelled first, because `purged`. Running jobs are asked to stop and are erased by a
        later pass. Keys, and names in what budgets keep (S114), are erased by the last pass. A pass reads at
        most `MAX_ROWS_READ` jobs, oldest enqueue first, and continues at the cursor. `Scope.all()` and a
        foreign cursor raise ValueError.
        """

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        """Cancel waiting jobs because `purged`, oldest enqueue first (S46). Running jobs go on.

        A pass reads at most `MAX_ROWS_READ` jobs, matching or not, and continues at the cursor. It may
        include jobs that were enqueued meanwhile. A foreign cursor raises ValueError.
        """

    async def census(self, request: CensusRequest) -> Census:
        """Return the store's own counters, for invariants and `doctor`, not for hot paths.

        Each number is exact when it is read, but they are not a snapshot. A foreign cursor, or a limit above
        `MAX_PAGE_SIZE`, raises ValueError.
        """

    async def repair(self, request: RepairRequest) -> RepairReply:
        """Compare places, lists and counters with a tenant's unfinished jobs in a queue; restore them (S90).

        One atomic step. Jobs are never changed: what is derived from them is made anew, and the tenant keeps
        its virtual time. What nobody finds wrong is left as it is, parks included. Under the scope of another
        tenant there are no jobs.
        """

    async def gates(self, request: Request) -> tuple[GateCounter, ...]:
        """Return how many running claims use each gate now, by name; unused gates are left out.

        Gates belong to all tenants: under the scope of one there are none.
        """

    async def inspect(self, request: InspectRequest) -> Inspection:
        """Inspect the store itself, for `doctor`. Only reads, within the given time."""

    async def dedicate(self, request: DedicateRequest) -> None:
        """Dedicate the store to a purpose, permanently; repeating it is fine.

        Raises ValueError and changes nothing if the store holds jobs or has another purpose: a test suite
        must know that it runs on no real work.
        """

    async def purpose(self, request: Request) -> str | None:
        """Return the purpose of the store; None if it has none."""

    async def aclose(self) -> None:
        """Close connections, threads and files. Safe to repeat."""
