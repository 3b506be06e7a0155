"""Jobs as callers and operators see them: enqueue, read, search, explain, edit, cancel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.model.errors import TenantMismatch
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle.admission import Refusal
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.model.lifecycle.states import CancelReply, State
from fairlane.store.contract.line import FirstInLine, FirstRequest
from fairlane.store.contract.request import (
    MAX_PAGE_SIZE,
    MAX_ROWS_READ,
    OperatorRequest,
    Request,
    check_instant,
)

MAX_BATCH_SIZE: Final = 1_000
MAX_BATCH_BYTES: Final = 16 * 2**20

Scalar: TypeAlias = str | int | float | bool | None


class EnqueueRequest(OperatorRequest, frozen=True, kw_only=True):
    """Jobs that become visible together. Well formed (S3-S6), at most 1,000 jobs and 16 MB (S12).

    `must_be_declared` refuses unknown tenants (S7). `is_repeated` marks a request that is sent again after
    an unknown outcome: ids that exist already, in any home, then answer for themselves (S15).
    """

    jobs: tuple[NewJob, ...]
    must_be_declared: bool = False
    is_repeated: bool = False


def check_tenants(request: EnqueueRequest) -> None:
    """Raise `TenantMismatch` if a job belongs to a tenant outside the scope."""
    for job in request.jobs:
        if not request.scope.covers(job.tenant):
            raise TenantMismatch(job.tenant, str(request.scope.tenant))


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """The job that answers for one item: a new one, or an earlier one with the same key.

    `is_created`: this request created the job, now or when it was sent before (S15). It is true for every
    job that has the item's own id. If the earlier job is gone but its idempotency key is still stored, the
    record is a tombstone: the first job's id, final state and `settled_at` with this item's other values.
    """

    job: JobRecord
    is_created: bool


class Created(msgspec.Struct, frozen=True, gc=False):
    """A new job that answers for its own item, and when it was enqueued.

    Builds its record on demand: a caller that enqueues a thousand jobs rarely reads one.
    """

    new: NewJob
    now: Instant

    @property
    def is_created(self) -> bool:
        """True."""
        return True

    @property
    def job(self) -> JobRecord:
        """The job as stored."""
        return new_record(self.new, self.now)


class OverLimit(msgspec.Struct, frozen=True):
    """A tenant above its waiting limit whose job was stored nevertheless; worth a warning (S17)."""

    tenant: str
    queue: str
    waiting: int
    limit: int


class EnqueueReply(msgspec.Struct, frozen=True):
    """One answer per item, in order, or the refusals. With any refusal nothing was stored.

    `over` has an entry for each stored job above a limit, counting that job.
    """

    enqueued: tuple[Enqueued | Created, ...] = ()
    refused: tuple[Refusal, ...] = ()
    over: tuple[OverLimit, ...] = ()


class GetRequest(Request, frozen=True, kw_only=True):
    """Ask for jobs by id."""

    ids: tuple[UUID, ...]


class Filtered(Request, frozen=True, kw_only=True):
    """Filters that must all hold, each an exact match. A time range is of `enqueued_at`: [since, until).

    Only scope, states, correlation id and time have an index. The others, `created_by` among them, are
    compared while reading, so a page may be short or even empty with a cursor (S51).
    """

    states: frozenset[State] = frozenset()
    queue: str | None = None
    task: str | None = None
    correlation_id: str | None = None
    created_by: str | None = None
    tag: str | None = None
    parent_id: UUID | None = None
    since: Instant | None = None
    until: Instant | None = None


class FindRequest(Filtered, frozen=True, kw_only=True):
    """Ask for the jobs that meet every filter.

    `where` compares arguments: a dotted path into them and the plain value that must stand there; `metadata`
    does the same with the metadata, as it was stored last.
    """

    where: tuple[tuple[str, Scalar], ...] = ()
    metadata: tuple[tuple[str, Scalar], ...] = ()
    limit: int = 50
    cursor: str | None = None


class FindReply(msgspec.Struct, frozen=True):
    """A page, newest enqueue first. It may be short or empty although a cursor says that there is more."""

    jobs: tuple[JobRecord, ...]
    cursor: str | None


class CountRequest(Request, frozen=True, kw_only=True):
    """Ask for counts of one queue or all, at most `MAX_COUNTS` per page."""

    queue: str | None = None
    limit: int = MAX_PAGE_SIZE
    cursor: str | None = None


class Count(msgspec.Struct, frozen=True, order=True):
    """How many jobs of a tenant and queue are in one state; zero counts are left out."""

    tenant: str
    queue: str
    state: State
    jobs: int


class CountPage(msgspec.Struct, frozen=True):
    """A page of counts, sorted; it may be short or empty with a cursor."""

    counts: tuple[Count, ...]
    cursor: str | None


class TallyRequest(Filtered, frozen=True, kw_only=True):
    """Ask how many jobs match every filter, reading at most `limit` of them, up to `MAX_ROWS_READ`."""

    limit: int = MAX_ROWS_READ
    cursor: str | None = None


class JobTally(msgspec.Struct, frozen=True, order=True):
    """How many jobs of a queue are in one state for one reason, and when the oldest was enqueued.

    `reason` is the first word of their `because`, or "".
    """

    queue: str
    state: State
    reason: str
    jobs: int
    first_at: Instant


class TallyPage(msgspec.Struct, frozen=True):
    """Sorted tallies of the jobs that one call has read, and how many it has read."""

    tallies: tuple[JobTally, ...]
    looked_at: int
    cursor: str | None


class PeekRequest(Request, frozen=True, kw_only=True):
    """Ask for the next jobs of a queue, at most `MAX_PAGE_SIZE`."""

    queue: str
    limit: int = 10


class ExplainRequest(Request, frozen=True, kw_only=True):
    """Ask why a job is not running."""

    id: UUID


Reason: TypeAlias = Literal[
    "turn",
    "time",
    "retry",
    "snooze",
    "unknown_task",
    "unknown_version",
    "paused",
    "running_limit",
    "rate",
    "gate",
    "breaker",
    "budget",
    "no_worker",
    "running",
    "finished",
]


class Why(msgspec.Struct, frozen=True):
    """Why a job waits: what blocks it, until when if known, and how many jobs of its tenant go first.

    The store checks again at `until` at the latest, earlier if an override ends. `ahead` counts to 10,000.
    """

    reason: Reason
    subject: str = ""
    until: Instant | None = None
    ahead: int | None = None


class EditRequest(OperatorRequest, frozen=True, kw_only=True):
    """New values for one waiting job; UNSET keeps a value. The caller has validated a new payload (S64)."""

    id: UUID
    priority: int | UnsetType = UNSET
    run_at: Instant | UnsetType = UNSET
    expires_at: Instant | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    payload: bytes | UnsetType = UNSET
    checksum: int | UnsetType = UNSET
    version: int | UnsetType = UNSET


def check_edit(request: EditRequest) -> None:
    """Raise ValueError if a new time is after `LAST_INSTANT`."""
    check_instant("run_at", request.run_at)
    check_instant("expires_at", request.expires_at)


class EditReply(msgspec.Struct, frozen=True):
    """`edited` with the new record, or why not. `not_delayed`: only a delayed job's time can change."""

    answer: Literal["edited", "not_waiting", "not_delayed", "not_found"]
    job: JobRecord | None = None


class StopRequest(OperatorRequest, frozen=True, kw_only=True):
    """Cancel or condemn these jobs, with the reason and who asked."""

    ids: tuple[UUID, ...]
    reason: str = ""
    who: str = ""


class RunNowRequest(OperatorRequest, frozen=True, kw_only=True):
    """Make delayed jobs due."""

    ids: tuple[UUID, ...]


class JobsFacet(Protocol):
    """Enqueue jobs, read them in any home, change them while they wait."""

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        """Store all jobs of the batch, or none.

        Atomic together with idempotency and de-duplication keys, counts and limits. A repeat of a key whose
        first enqueue is not yet committed waits for it, for a bounded time (S13, S14). Each item is checked
        in the order of S15 and sees the items before it: two equal keys in a batch make one job. An item that
        replaces a dead job takes over its key in the same step, and its correlation id if the dead job still
        exists (S13). One refused item refuses the batch; every refusal is listed. A reply means that the jobs
        are durable, as the store promises it. An empty batch gets an empty reply. A tenant outside the scope
        raises `TenantMismatch`. Stored jobs wake the workers that wait for their queues.
        """

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:
        """Store all jobs of the batch, or none, in the application's open transaction on its own connection.

        As `enqueue`, but the application's commit makes the jobs visible and durable, and its rollback, also
        to a savepoint, removes them. Neither commits nor rolls back anything but the batch itself. After a
        refusal, or an error after which the transaction can go on, it contains nothing of the batch.

        Uses only the connection, in the caller's thread. With a synchronous connection it never suspends, so
        that callers without an event loop can run it to completion. Workers find the jobs by polling. The
        scope is checked first. A store or connection that cannot do this raises `Unsupported`, which names
        the alternative: the outbox. Without an open transaction it raises `StoreError`.
        """

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        """Return the jobs with these ids, from any home; ids that are not found are left out."""

    async def find(self, request: FindRequest) -> FindReply:
        """Return a page of jobs over all homes, newest enqueue first.

        Reads at most 10,000 rows per call. The order never changes: paging with the cursor finds every job
        that matches throughout exactly once, even if jobs settle meanwhile. No cursor means the end. A
        foreign cursor raises ValueError.
        """

    async def count(self, request: CountRequest) -> CountPage:
        """Count jobs per (tenant, queue, state), sorted; history within its retention.

        Each count is exact when it is read, but counts are not a snapshot, not even within a page. A foreign
        cursor, or a limit above `MAX_PAGE_SIZE`, raises ValueError.
        """

    async def tally(self, request: TallyRequest) -> TallyPage:
        """Count the jobs of all homes that match every filter, inside the store, oldest enqueue first.

        Reads at most `limit` jobs and says how many; continue with the cursor and the same filters. No cursor
        means that every job was read. A job that matches throughout is counted exactly once over all pages,
        in the state in which it was read. So if every page has found only finished jobs, then all jobs have
        finished, including jobs that were enqueued by jobs before them. `looked_at` counts jobs of the scope
        only; the store's indexes decide which jobs it must read. A foreign cursor, or a `limit` that is not 1
        to `MAX_ROWS_READ`, raises ValueError.
        """

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        """Return the next jobs in the order in which a claim of this size would hand them out now (S65).

        Claims nothing and charges nobody. Jobs that are not claimable now are left out. Under the scope of
        one tenant, the order is as if no other tenant had jobs. More than `MAX_PAGE_SIZE` raises ValueError.
        """

    async def first_in_line(self, request: FirstRequest) -> tuple[FirstInLine, ...]:
        """Return the first ready job of each of these lines, sorted by line; those without any are left out.

        First is the lowest sort key, then id, over all tasks. Whether the job may be claimed makes no
        difference: it may be paused, limited or parked. Each is exact when it is read. Locks nothing.
        """

    async def explain(self, request: ExplainRequest) -> Why | None:
        """Return why a job is not running, or that it runs or is finished; None if it does not exist.

        The first of these that holds answers: finished, running, delayed (time, retry, snooze), paused
        (queue, tenant, task), rate of the queue, running limit, rate of the tenant, breaker of the task, rate
        of the task, gate (its limit, then its rate), budget,
        no live worker that serves the queue, turn.
        """

    async def edit(self, request: EditRequest) -> EditReply:
        """Change a delayed or ready job in place, with order and counts. Keeps its idempotency key.

        A parked strand stays parked. A time after `LAST_INSTANT` raises ValueError.
        """

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        """Cancel waiting jobs at once, ask running ones to stop, leave finished ones (S30).

        Each id is its own step. A running job gets a cancel flag and the reason, and its worker is woken; a
        second call keeps the first reason. Ids that are not found are left out.
        """

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        """Move waiting jobs to the dead letters, because `condemned`; return the ids that moved.

        Each id is its own step.
        """

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        """Make delayed jobs due now; return the ids that moved (S53). Each id is its own step."""
