"""Dead letters: jobs that run again only if a person decides so. Made by settle, reclaim and condemn."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request

Review: TypeAlias = Literal["pending", "reprocessed", "resolved", "ignored", "discarded"]


class DeadLetter(msgspec.Struct, frozen=True):
    """A dead job and its review by people. `error_class` is that of its last failure, if any."""

    job: JobRecord
    error_class: ErrorClass | None
    review: Review = "pending"


class DeadRequest(Request, frozen=True, kw_only=True):
    """Filters that must all hold; `since` and `until` are about the time of death."""

    queue: str | None = None
    task: str | None = None
    error_class: ErrorClass | None = None
    review: Review | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: int = 50
    cursor: str | None = None


class DeadPage(msgspec.Struct, frozen=True):
    """A page, latest death first; it may be short or empty with a cursor."""

    letters: tuple[DeadLetter, ...]
    cursor: str | None


class DeadGetRequest(Request, frozen=True, kw_only=True):
    """Ask for one dead letter."""

    id: UUID


class DeadCount(msgspec.Struct, frozen=True, order=True):
    """How many dead letters of a tenant and queue have one review; zero counts are left out."""

    tenant: str
    queue: str
    review: Review
    letters: int


class DeadCountRequest(Request, frozen=True, kw_only=True):
    """Ask for counts, at most `MAX_PAGE_SIZE` per page."""

    limit: int = MAX_PAGE_SIZE
    cursor: str | None = None


class DeadCountPage(msgspec.Struct, frozen=True):
    """A page of counts, sorted; it may be short or empty with a cursor."""

    counts: tuple[DeadCount, ...]
    cursor: str | None


class DeadLettersFacet(Protocol):
    """Read dead letters."""

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        """Return one dead letter with payload and history; None if there is none with this id."""

    async def find(self, request: DeadRequest) -> DeadPage:
        """Return a page, latest death first, of at most 10,000 rows. A foreign cursor raises ValueError."""

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        """Count per (tenant, queue, review), sorted; each count is exact as in `JobsFacet.count`."""
