"""Finished jobs on their way out of a store, into an archive, and back into one (S105, S116)."""

from __future__ import annotations

from typing import Final, Protocol
from uuid import UUID

import msgspec

from fairlane.model.errors import TenantMismatch
from fairlane.model.finished_job import FinishedJob, problem_of
from fairlane.model.instants import Instant
from fairlane.store.contract.request import Request

MAX_RESTORED: Final = 500
"""How many jobs one request brings back."""

MAX_BATCH_PAGE: Final = 500
"""How many jobs one page of a batch holds."""


class BatchRequest(Request, frozen=True, kw_only=True):
    """Ask for a page of the oldest batch, after a job of it; None: from its first."""

    after: UUID | None = None
    limit: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_BATCH_PAGE:
            message = f"a page of a batch holds 1 to {MAX_BATCH_PAGE} jobs, not {self.limit}"
            raise ValueError(message)


class ArchiveBatch(msgspec.Struct, frozen=True):
    """A page of a batch, in the order of the ids. `number` and `closed_at` are of no other batch, ever."""

    number: int
    closed_at: Instant
    jobs: tuple[FinishedJob, ...]
    is_last: bool


class BatchDoneRequest(Request, frozen=True, kw_only=True):
    """Say that a batch is in the archive."""

    number: int


class RestoreRequest(Request, frozen=True, kw_only=True):
    """Bring finished jobs back, at most `MAX_RESTORED` and each once."""

    jobs: tuple[FinishedJob, ...]

    def __post_init__(self) -> None:
        if len(self.jobs) > MAX_RESTORED:
            message = f"one request brings back at most {MAX_RESTORED} jobs, not {len(self.jobs)}"
            raise ValueError(message)
        if len({one.job.id for one in self.jobs}) < len(self.jobs):
            raise ValueError("one request brings a job back once")
        for one in self.jobs:
            if not self.scope.covers(one.job.tenant):
                raise TenantMismatch(one.job.tenant, str(self.scope.tenant))
            problem = problem_of(one)
            if problem is not None:
                message = f"job {one.job.id}: {problem}"
                raise ValueError(message)


class HistoryFacet(Protocol):
    """Hand finished jobs over to an archive, and take them back.

    A pass of pruning with `is_archived` moves what it removes into the open batch. A batch that was asked
    for is closed: nothing comes to it any more, so that whoever writes it, however often, writes the same.
    What is in a batch is no job any more for any other verb. `upkeep.forget` removes a tenant's jobs from it.
    """

    async def next_batch(self, request: BatchRequest) -> ArchiveBatch | None:
        """Close the oldest batch if it is open, and return a page of it; None if there is none.

        A batch of which all jobs were forgotten is returned without jobs.
        """

    async def batch_done(self, request: BatchDoneRequest) -> bool:
        """Remove a batch; return whether it was there. An open one stays: nobody can have written it."""

    async def waiting(self, request: Request) -> int:
        """Return how many jobs are in batches. Under the scope of a tenant only its own count."""

    async def restore(self, request: RestoreRequest) -> tuple[UUID, ...]:
        """Put finished jobs into the history or among the dead letters; return the ids of those that are new.

        Every value is as it was, also when it ended: retention counts from then. An id that is known, in
        whatever state, is left as it is. Counts change in the same step. Nothing runs, no event is appended,
        and no key is held: an idempotency or de-duplication key belongs to enqueues, which are long over.
        """
