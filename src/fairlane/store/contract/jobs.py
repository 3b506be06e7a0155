"""Jobs as callers and operators see them: put in, looked at, changed while they wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.model.admission import Refusal
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle import CancelReply, State
from fairlane.model.moves import born
from fairlane.store.contract.request import PAGE_MOST, READ_MOST, Request, check_instant

BATCH_MOST: Final = 1_000
BATCH_BYTES: Final = 16 * 2**20

Scalar: TypeAlias = str | int | float | bool | None


class EnqueueRequest(Request, frozen=True, kw_only=True):
    """Jobs that become visible together. Well formed (S3-S6), at most 1,000 and 16 MB (S12).

    `must_be_declared` asks that tenants are known (S7). `is_repeated` marks the same request sent again
    after an unknown outcome: ids that are there already, in any home, then answer for themselves (S15).
    """

    jobs: tuple[NewJob, ...]
    must_be_declared: bool = False
    is_repeated: bool = False


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """The job that stands for one item: new, or an earlier one that answers for it.

    `is_created` says that this enqueue made it: now, or when the same request was sent before (S15). So it
    holds for whatever has the item's own id. If the earlier job is no longer kept but its idempotency key is,
    the record is a husk: the first job's id, final state and `settled_at` with this item's own values.
    """

    job: JobRecord
    is_created: bool


class Created(msgspec.Struct, frozen=True, gc=False):
    """The new job that stands for its own item, and when it came in.

    Its record is made when it is asked for: whoever enqueues a thousand jobs hardly looks at one.
    """

    new: NewJob
    now: Instant

    @property
    def is_created(self) -> bool:
        """Always."""
        return True

    @property
    def job(self) -> JobRecord:
        """The job as the store keeps it."""
        return born(self.new, self.now)


class OverLimit(msgspec.Struct, frozen=True):
    """A tenant that was allowed above its waiting limit, to be told of (S17)."""

    tenant: str
    queue: str
    waiting: int
    limit: int


class EnqueueReply(msgspec.Struct, frozen=True):
    """One answer per item in order, or the refusals; with any refusal nothing was stored.

    `over` has an entry for each stored job above a limit; `waiting` counts that job too.
    """

    enqueued: tuple[Enqueued | Created, ...] = ()
    refused: tuple[Refusal, ...] = ()
    over: tuple[OverLimit, ...] = ()


class GetRequest(Request, frozen=True, kw_only=True):
    """Ask for jobs by id."""

    ids: tuple[UUID, ...]


class Filtered(Request, frozen=True, kw_only=True):
    """Filters that must all hold. A time range is of `enqueued_at`: from `since`, before `until`."""

    states: frozenset[State] = frozenset()
    queue: str | None = None
    task: str | None = None
    correlation_id: str | None = None
    tag: str | None = None
    parent_id: UUID | None = None
    since: Instant | None = None
    until: Instant | None = None


class FindRequest(Filtered, frozen=True, kw_only=True):
    """Ask for the jobs that meet every filter.

    `where` compares arguments: a dotted path into them and the plain value that must stand there.
    """

    where: tuple[tuple[str, Scalar], ...] = ()
    limit: int = 50
    cursor: str | None = None


class FindReply(msgspec.Struct, frozen=True):
    """A page, newest enqueue first. Short or even empty with a cursor: there may be more."""

    jobs: tuple[JobRecord, ...]
    cursor: str | None


class CountRequest(Request, frozen=True, kw_only=True):
    """Ask for counts, of one queue or of all, at most `PAGE_MOST` at a time."""

    queue: str | None = None
    limit: int = PAGE_MOST
    cursor: str | None = None


class Count(msgspec.Struct, frozen=True, order=True):
    """How many jobs of a tenant are in one state of one queue; zero counts are left out."""

    tenant: str
    queue: str
    state: State
    jobs: int


class CountPage(msgspec.Struct, frozen=True):
    """A page of counts in their order; short or even empty with a cursor."""

    counts: tuple[Count, ...]
    cursor: str | None


class TallyRequest(Filtered, frozen=True, kw_only=True):
    """Ask how many jobs meet every filter, looking at no more than `most` of them, up to `READ_MOST`."""

    most: int = READ_MOST
    cursor: str | None = None


class Tally(msgspec.Struct, frozen=True, order=True):
    """How many jobs of a queue are in one state for one reason, and when the oldest of them was enqueued.

    `word` is the first word of their `because`; "" where they have none.
    """

    queue: str
    state: State
    word: str
    jobs: int
    first_at: Instant


class TallyPage(msgspec.Struct, frozen=True):
    """Sorted tallies of the jobs that one call has looked at, and how many it has looked at."""

    tallies: tuple[Tally, ...]
    looked_at: int
    cursor: str | None


class PeekRequest(Request, frozen=True, kw_only=True):
    """Ask for the next jobs of a queue, at most `PAGE_MOST`."""

    queue: str
    most: int = 10


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
    "no_worker",
    "running",
    "finished",
]


class Why(msgspec.Struct, frozen=True):
    """Why a job waits: what holds it, until when if that is known, and how many of its tenant go first.

    `until` is when the store looks again at the latest: an override that ends sooner counts. `ahead` is
    counted up to 10,000.
    """

    reason: Reason
    subject: str = ""
    until: Instant | None = None
    ahead: int | None = None


class EditRequest(Request, frozen=True, kw_only=True):
    """New values for one waiting job; what is UNSET stays. A new payload was validated before (S64)."""

    id: UUID
    priority: int | UnsetType = UNSET
    run_at: Instant | UnsetType = UNSET
    expires_at: Instant | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    payload: bytes | UnsetType = UNSET
    checksum: int | UnsetType = UNSET
    version: int | UnsetType = UNSET


def check_edit(request: EditRequest) -> None:
    """Raise ValueError if a new time is beyond all instants."""
    check_instant("run_at", request.run_at)
    check_instant("expires_at", request.expires_at)


class EditReply(msgspec.Struct, frozen=True):
    """`edited` with the new record, or why not. `not_delayed`: only a delayed job's time can be moved."""

    answer: Literal["edited", "not_waiting", "not_delayed", "not_found"]
    job: JobRecord | None = None


class StopRequest(Request, frozen=True, kw_only=True):
    """Cancel or condemn jobs: which, why, and who says so."""

    ids: tuple[UUID, ...]
    reason: str = ""
    who: str = ""


class RunNowRequest(Request, frozen=True, kw_only=True):
    """Make delayed jobs due."""

    ids: tuple[UUID, ...]


class Jobs(Protocol):
    """Put jobs in, look at them in any home, change them while they wait."""

    async def enqueue(self, request: EnqueueRequest) -> EnqueueReply:
        """Store all jobs of the batch, or none.

        Atomic with everything that belongs to them: idempotency and de-duplication keys, counts, limits. A
        repeat of a key whose first enqueue is not yet committed waits for it, a bounded time (S13, S14).
        Each item is checked in the order of S15 and sees the items before it, so that two equal keys in a
        batch make one job. An item that replaces a dead job takes over its key, and keeps its correlation id
        if the dead job is kept, in the same step (S13). A refused item refuses all; every refusal is listed.
        Acknowledged means durable as the store promises. An empty batch is answered with nothing. A tenant
        outside the scope raises `TenantMismatch`. Stored jobs wake the workers that wait for their queues.
        """

    async def enqueue_in(self, connection: Any, request: EnqueueRequest) -> EnqueueReply:
        """Store all jobs of the batch, or none, in the application's open transaction on its own connection.

        As `enqueue`, except that the application's commit makes the jobs visible and durable, and its
        rollback, also to a savepoint, takes them back. Neither commits nor rolls back anything but the batch
        itself. With a refusal, and with any error after which the transaction can go on, nothing of the
        batch is in it.

        It asks nothing but the connection, in the caller's thread, and for a plain (not asynchronous)
        connection never suspends: so that callers without an event loop can run it to its end themselves.
        Workers hear of the jobs by their poll. The scope is looked at first; then a store or a connection
        that cannot do this raises `Unsupported`, which names what can: the outbox. Without an open
        transaction it raises `StoreError`.
        """

    async def get(self, request: GetRequest) -> Mapping[UUID, JobRecord]:
        """Give the jobs of these ids from whatever home they are in; ids not found are left out."""

    async def find(self, request: FindRequest) -> FindReply:
        """Give a page of jobs over all homes, newest enqueue first.

        Reads at most 10,000 rows a call. The order never changes, so that paging through with the cursor
        meets every job that matches throughout exactly once, however jobs settle meanwhile. No cursor means
        the end. A foreign cursor raises ValueError.
        """

    async def count(self, request: CountRequest) -> CountPage:
        """Count jobs per (tenant, queue, state), sorted; exact for hot and dead, for history as kept.

        Each count is exact when it is read; counts are not of one instant, neither between pages nor within
        one. A foreign cursor, or a limit above `PAGE_MOST`, raises ValueError.
        """

    async def tally(self, request: TallyRequest) -> TallyPage:
        """Count the jobs of all homes that meet every filter, oldest enqueue first; no job leaves the store.

        Looks at no more than `most` jobs, and says at how many; to go on, ask again with the cursor and
        the same filters. No cursor means that everything was looked at. A job that matches throughout is
        counted exactly once over all pages, each in the state in which it was met: so, once every page has
        found finished jobs alone, all jobs that were there have finished, also those that a job before them
        has enqueued. `looked_at` counts jobs of the scope only; which jobs need no look is a matter of the
        store's indexes. A foreign cursor, or a `most` that is not 1 to `READ_MOST`, raises ValueError.
        """

    async def peek(self, request: PeekRequest) -> tuple[JobRecord, ...]:
        """Give the next jobs in the order in which a claim for so many would hand them out now (S65).

        Takes nothing and charges nobody. Jobs that could not be claimed now are left out. Under the scope of
        one tenant, in the order in which they would come if no other tenant had any. More than `PAGE_MOST`
        raises ValueError.
        """

    async def explain(self, request: ExplainRequest) -> Why | None:
        """Say why a job is not running, or that it runs or is finished; None if there is no such job.

        Checks in this order, the first that holds answers: finished, running, delayed (time, retry,
        snooze), paused (queue, tenant, task), rate of the queue, running limit, rate of the tenant, rate of
        the task, gate (its limit, then its rate), no live worker that serves the queue, turn.
        """

    async def edit(self, request: EditRequest) -> EditReply:
        """Change a delayed or ready job in place. Order, counts and keys follow; idempotency keys stay.

        A strand that is parked stays so. A time after `LAST_INSTANT` raises ValueError.
        """

    async def cancel(self, request: StopRequest) -> Mapping[UUID, CancelReply]:
        """Cancel waiting jobs at once, ask running ones to stop, leave finished ones (S30).

        Each id stands alone: what becomes of one does not depend on the others, nor do they change at once.
        A running job gets its flag, its reason is kept, and its worker is woken. Asking twice keeps the
        first reason. Ids not found are left out.
        """

    async def condemn(self, request: StopRequest) -> tuple[UUID, ...]:
        """Move waiting jobs to the dead letters, because `condemned`; name those that moved.

        Each id stands alone.
        """

    async def run_now(self, request: RunNowRequest) -> tuple[UUID, ...]:
        """Make delayed jobs ready, due now; name those that moved (S53). Each id stands alone."""
