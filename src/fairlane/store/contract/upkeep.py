"""The store itself: its schema, what it keeps and for how long, its own books."""

from __future__ import annotations

from typing import Protocol

import msgspec

from fairlane.model.lifecycle import Home
from fairlane.model.retention import Retention
from fairlane.store.contract.inspection import Inspection, InspectRequest
from fairlane.store.contract.request import PAGE_MOST, Request


class MigrateReply(msgspec.Struct, frozen=True):
    """The schema before and after, and the names of the steps between."""

    before: int
    after: int
    steps: tuple[str, ...] = ()


class PruneRequest(Request, frozen=True, kw_only=True):
    """Remove what has been kept long enough, in one bounded pass."""

    retention: Retention
    most: int = 1_000


class PruneReply(msgspec.Struct, frozen=True):
    """What was removed; `is_partial` says that there was more."""

    jobs: int = 0
    results: int = 0
    keys: int = 0
    is_partial: bool = False


class ForgetRequest(Request, frozen=True, kw_only=True):
    """Erase the contents of one tenant; the scope must be that tenant's."""

    reason: str
    who: str
    most: int = 1_000
    cursor: str | None = None


class ForgetReply(msgspec.Struct, frozen=True):
    """How many jobs were emptied, how many still run, and where the next pass goes on; no cursor: the end.

    Those that still run are met by passes from the start once they have ended.
    """

    erased: int = 0
    running: int = 0
    cursor: str | None = None


class PurgeRequest(Request, frozen=True, kw_only=True):
    """Cancel waiting jobs of the scope, of one queue or task or of all, in one bounded pass."""

    reason: str
    who: str
    queue: str | None = None
    task: str | None = None
    most: int = 1_000
    cursor: str | None = None


class PurgeReply(msgspec.Struct, frozen=True):
    """How many were cancelled, and where the next pass goes on; no cursor: the end."""

    cancelled: int = 0
    cursor: str | None = None


class DedicateRequest(Request, frozen=True, kw_only=True):
    """Say what a store is for."""

    purpose: str


class StrandBook(msgspec.Struct, frozen=True, order=True):
    """The store's own counts of one (queue, tenant): what limits are compared with."""

    queue: str
    tenant: str
    waiting: int
    running: int


class GateBook(msgspec.Struct, frozen=True, order=True):
    """The store's own count of one gate."""

    gate: str
    used: int


class CensusRequest(Request, frozen=True, kw_only=True):
    """Ask for the books, at most `PAGE_MOST` tenants' at a time."""

    limit: int = PAGE_MOST
    cursor: str | None = None


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """The store's own books, to be compared with a recount. Zero entries are left out.

    Tenants' books come in pages, by queue and tenant; all others stand on the first page alone.
    """

    homes: dict[Home, int]
    tenants: tuple[StrandBook, ...]
    gates: tuple[GateBook, ...]
    idempotency_keys: int
    dedup_keys: int
    cursor: str | None = None


def not_dedicated(before: str | None) -> str:
    """Say why a store cannot be dedicated, given what it was dedicated to before."""
    return "the store holds jobs" if before is None else f"the store is for {before}"


class Upkeep(Protocol):
    """Keep the store in shape.

    Passes are bounded and may be repeated. Each job is a step of its own: a pass that is cut short has done
    some jobs whole and the others not at all.
    """

    async def migrate(self) -> MigrateReply:
        """Bring the schema to this version; safe twice and by several at once. Never goes back."""

    async def plan(self) -> MigrateReply:
        """Say what `migrate` would do now. Changes nothing, and makes no store where there is none."""

    async def prune(self, request: PruneRequest) -> PruneReply:
        """Remove finished jobs, results and idempotency keys whose time is over (S52).

        Never a job that is hot, never a key before its job. Counts follow.
        """

    async def forget(self, request: ForgetRequest) -> ForgetReply:
        """Erase payloads, results, errors, tags, metadata and keys of a tenant; husks keep the counts.

        Waiting jobs are cancelled because `purged` first; running ones are asked to stop and are erased by
        a later pass. Keys go with the last pass. A pass looks at no more than `READ_MOST` jobs and goes on
        from the cursor of the one before, oldest enqueue first. `Scope.all()`, and a foreign cursor, raise
        ValueError.
        """

    async def purge(self, request: PurgeRequest) -> PurgeReply:
        """Cancel waiting jobs because `purged`, oldest enqueue first (S46). Running ones go on.

        A pass looks at no more than `READ_MOST` jobs, whether they match or not, and goes on from the cursor
        of the one before. What is enqueued meanwhile may be met. A foreign cursor raises ValueError.
        """

    async def census(self, request: CensusRequest) -> Census:
        """Open the books, for invariants and `doctor`, not for hot paths.

        Each number is exact when it is read; they are not of one instant. A foreign cursor, or a limit above
        `PAGE_MOST`, raises ValueError.
        """

    async def gates(self, request: Request) -> tuple[GateBook, ...]:
        """Say how many running claims hold each gate now, by name; gates that nobody holds are left out.

        Gates belong to all tenants together: under the scope of one there are none.
        """

    async def inspect(self, request: InspectRequest) -> Inspection:
        """Look into the store itself; for `doctor`. Reads only, and is bounded by the time it is given."""

    async def dedicate(self, request: DedicateRequest) -> None:
        """Say what the store is for, for good; the same again is fine.

        ValueError, and nothing changes, if it holds any job or is for something else: who runs tests on a
        store must know that nobody's work is in it.
        """

    async def purpose(self, request: Request) -> str | None:
        """Say what the store was dedicated to; None if to nothing."""

    async def aclose(self) -> None:
        """Let go of connections, threads and files. Twice is fine."""
