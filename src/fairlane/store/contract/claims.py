"""Jobs as workers and duties move them: claimed, renewed, settled, promoted, reclaimed, expired."""

from __future__ import annotations

from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant, Micros
from fairlane.model.job import ATTEMPTS_KEPT, Claim, JobRecord, Progress, Settlement
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.amounts import Millionths
from fairlane.model.retry.revoke import RevokeAnswer, RevokeHow
from fairlane.store.contract.breakers import OpenBreakers
from fairlane.store.contract.request import OperatorRequest, Request

MAX_RECLAIMED: Final = 500
"""Claims that one pass takes back unless the request says otherwise."""

MAX_DUE: Final = 1_000
"""Due delayed jobs of a queue that one claim makes ready before it may answer early."""

MAX_PARKED: Final = 64
"""Tenant queues and strands that one claim parks before it may answer early (S42)."""

MAX_UNPARKED: Final = 500
"""Tenant queues and strands of a queue that one claim or pass unparks before it answers early."""


class QueueRequest(msgspec.Struct, frozen=True):
    """Ask for up to this many jobs of one queue. A claim may name a queue more than once."""

    queue: str
    limit: int


class ClaimRequest(Request, frozen=True, kw_only=True):
    """What a worker can start: requests per queue, served in order, up to `total` jobs together.

    Once only `headroom` of the total is left, only tenants with nothing running in the queue are served
    (S48). The last `ahead` of the total are claimed before the worker has a free slot for them: once only
    these are left, the claim ends before the first job that may not be claimed ahead (S68). A worker whose
    handlers may use breakers wants to hear of those that are not closed (`names_breakers`, S124).
    """

    worker: str
    lease: Micros
    queue_requests: tuple[QueueRequest, ...]
    total: int
    headroom: int = 0
    ahead: int = 0
    names_breakers: bool = False


class ClaimReply(msgspec.Struct, frozen=True):
    """The claims in the order served, and when to ask again.

    `next_due_at` is the earliest known instant at which another job of these queues becomes claimable by time
    alone: a delayed job is due, a rate or a pause ends. It is not computed if the total was reached.
    `is_partial`: the store stopped early by its own bounds, below the total; ask again at once. Every partial
    reply makes progress, so repeating it ends. `is_ahead_cut`: the next job may not be claimed ahead (S68);
    ask again, for it alone, when a slot is free. `permits`: the jobs among them that pass a breaker which is
    not closed (S58). `open_breakers`: if the request wants to hear of them and there are claims, which
    breakers are not closed since the last job was claimed (S124); none that opened before is missing.
    """

    claims: tuple[Claim, ...] = ()
    next_due_at: Instant | None = None
    is_partial: bool = False
    is_ahead_cut: bool = False
    permits: tuple[UUID, ...] = ()
    open_breakers: OpenBreakers | None = None


class Renewal(msgspec.Struct, frozen=True):
    """One claim to extend, with the handler's newest progress, metadata and spend so far, if any (S113)."""

    id: UUID
    fence: int
    progress: Progress | None = None
    metadata: bytes | None = None
    spent: Millionths = 0


class RenewRequest(Request, frozen=True, kw_only=True):
    """Extend all claims that a worker holds."""

    worker: str
    lease: Micros
    renewals: tuple[Renewal, ...]


class RenewReply(msgspec.Struct, frozen=True):
    """Claims that are lost, jobs that are asked to stop, and the lease of the rest."""

    stale: tuple[UUID, ...] = ()
    cancel_asked: tuple[UUID, ...] = ()
    lease_until: Instant = 0


class EndingRequest(Request, frozen=True, kw_only=True):
    """A request that ends attempts. A job's record keeps the last `attempts_kept` of them from then on (S24).

    At most `MAX_ATTEMPTS_KEPT`.
    """

    attempts_kept: int = ATTEMPTS_KEPT


class SettleRequest(EndingRequest, frozen=True, kw_only=True):
    """How attempts ended and, optionally, what the worker can start next (S35).

    A request names a job at most once: the reply has ids without fences. Without `waits`, a claim that an
    open transaction has settled (`settle_in`) is skipped and not named, if the store would have to wait for
    that transaction.
    """

    worker: str
    settlements: tuple[Settlement, ...]
    claim: ClaimRequest | None = None
    waits: bool = True


class SettledJob(msgspec.Struct, frozen=True):
    """The state a job got by its settlement.

    `model.retry.decision.reconcile` may have chosen another than asked for.
    """

    id: UUID
    state: State


class SettleReply(msgspec.Struct, frozen=True):
    """What was settled, what was stale, and new claims if asked for.

    A store that was lost between two steps reports the steps done: send again what is neither settled nor
    stale. The claims are partial then.
    """

    settled: tuple[SettledJob, ...] = ()
    stale: tuple[UUID, ...] = ()
    claimed: ClaimReply | None = None


class WorkerRequest(Request, frozen=True, kw_only=True):
    """Ask about the claims of one worker."""

    worker: str


class ReclaimRequest(EndingRequest, frozen=True, kw_only=True):
    """Take back claims whose lease expired by `expired_by`, or by now if that is earlier.

    The caller read the registry's status first and knows only that workers could renew until
    `StoreStatus.now`.
    """

    limit: int = MAX_RECLAIMED
    expired_by: Instant | None = None


class LostClaim(msgspec.Struct, frozen=True):
    """A claim that was taken back, and the state of its job now."""

    id: UUID
    tenant: str
    queue: str
    worker: str
    fence: int
    state: State


class ReclaimReply(msgspec.Struct, frozen=True):
    """The claims that were taken back. `is_partial`: there were more. `is_idle`: no job is running.

    Only a pass that took nothing back can tell that none is running.
    """

    lost: tuple[LostClaim, ...] = ()
    is_partial: bool = False
    is_idle: bool = False


class StuckRequest(EndingRequest, frozen=True, kw_only=True):
    """Take back claims that are older than they may be although their worker reports (S31).

    Only of those that began at `started_after` or later: of others the age is not known, because the store's
    clock has jumped since.
    """

    limit: int = MAX_RECLAIMED
    started_after: Instant = 0


class StuckClaim(msgspec.Struct, frozen=True):
    """A stuck claim that was taken back: its job as it was, and the state of the job now."""

    id: UUID
    tenant: str
    queue: str
    task: str
    worker: str
    fence: int
    started_at: Instant
    state: State


class StuckReply(msgspec.Struct, frozen=True):
    """The stuck claims that were taken back. `is_partial`: there may be more."""

    stuck: tuple[StuckClaim, ...] = ()
    is_partial: bool = False


def stuck_claim(job: JobRecord, state: State) -> StuckClaim:
    """Return what is told of a stuck claim: its job as it was, and the state of the job now."""
    worker, started_at = str(job.worker), job.started_at or 0
    return StuckClaim(job.id, job.tenant, job.queue, job.task, worker, job.fence, started_at, state)


class RevokeRequest(OperatorRequest, frozen=True, kw_only=True):
    """End the claims of these jobs (S72), with the reason and who asked. `delay` is that of a retry."""

    ids: tuple[UUID, ...]
    how: RevokeHow
    delay: Micros = 0
    reason: str = ""
    who: str = ""
    attempts_kept: int = ATTEMPTS_KEPT


class RevokedJob(msgspec.Struct, frozen=True):
    """What became of one job, and its state now."""

    id: UUID
    answer: RevokeAnswer
    state: State


class RevokeReply(msgspec.Struct, frozen=True):
    """An answer for each job that was found, in the order of the request."""

    jobs: tuple[RevokedJob, ...] = ()


class PassRequest(Request, frozen=True, kw_only=True):
    """One bounded pass of a duty."""

    limit: int = 1_000


class PromoteReply(msgspec.Struct, frozen=True):
    """How many jobs became ready, and when the next is due."""

    promoted: int = 0
    next_due_at: Instant | None = None
    is_partial: bool = False


class ExpireReply(msgspec.Struct, frozen=True):
    """How many waiting jobs had expired."""

    expired: int = 0
    is_partial: bool = False


class ClaimsFacet(Protocol):
    """Move jobs from ready to their end, and run the passes that keep them moving.

    Claims and passes serve all tenants: `claim`, `promote`, `reclaim`, `take_stuck` and `expire` raise
    ValueError under the scope of one. In a pass each job is its own atomic step. A pass may stop between two
    jobs, and repeating it is always safe.
    """

    @property
    def concurrent_calls(self) -> int:
        """How many calls of one lane may run at once; 1 if the store works in this process."""

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        """Hand out ready jobs, fairly across tenants (S35, S41-S48).

        Atomic per step. A store may serve one queue in several steps (Redis: at most 40 jobs each); queues
        are served one after the other. A job is in at most one live claim, and every limit, rate and gate is
        exact. Each claim has a fresh fence (S36) that `renew` and `settle` demand. A claim also raises
        `attempt` and frees a de-duplication key that lasts until `started`. Expired jobs are not handed out.
        Fewer jobs than asked for is normal. An empty reply while something is claimable is a bug, unless the
        reply is partial or its part ahead was cut.

        Order: the first queue request with a claimable job; in its queue the tenant with the smallest virtual
        time (ties: the one ready longest); of its claimable strands the one whose head has the smallest
        `sort_key` (then id); of that strand its head.

        A queue is prepared when its first request is served, so never if the total was reached before:

        1. Due delayed jobs become ready, earliest first, at most `MAX_DUE`.
        2. Tenant queues and strands are unparked whose time has come, or whose policy has changed since
           (S54): earliest first, among equals the smallest (virtual time, ready since, task) at parking.
        3. Strands that wait at a gate are unparked, as many as the gate has free slots: gate by gate, the
           smallest (virtual time, ready since, task) first (S43). Repeated when nothing else is left, since
           an unparked strand may be blocked by something else.

        A breaker that is not closed (S58) is such a gate: nobody passes while it is open, then as many at
        once as it lets through. Strands wait in its line without a time; a claim that serves one notes the
        job's permit.

        A job under a budget reserves its estimate in the same step; without room its strand is parked, or the
        claim says that the budget is spent (`Claim.is_over_budget`, S59): nothing is reserved then.

        Steps 2 and 3 unpark at most `MAX_UNPARKED` tenant queues and strands together. What is parked joins
        the fair order when it is unparked, not before.
        """

    async def renew(self, request: RenewRequest) -> RenewReply:
        """Extend the leases of these claims from now on, and store their progress and metadata.

        Each renewal stands alone: if its (job, fence, worker) does not match, nothing changes and it is named
        as stale. An expired lease that was not reclaimed can be renewed. A claim that is being settled
        concurrently may be neither extended nor named. Queues that count seconds charge the time since the
        last charge here. What a claim under a budget has spent so far is counted (S113).
        """

    async def settle(self, request: SettleRequest) -> SettleReply:
        """End attempts: move each job to its new state, in one step with counters, keys and gates.

        Each settlement stands alone: if its (job, fence, worker) matches no running job, nothing changes and
        it is named as stale. It is accepted until the job is reclaimed, however late (S37). A cancel that was
        asked for meanwhile, and the job's expiry, overrule it (`model.retry.decision.reconcile`). The job
        moves to its new home together with the attempt's record, or not at all. A freed slot of a gate is
        open to the next claim; queues with strands that wait at that gate get a hint. A job that comes back
        unstarted (S68) gets its attempt's number back and has no record of it, and its tenant the charge; the
        fence stays. Metadata that a settlement brings replaces the job's, whatever becomes of the job (S73).
        What was spent is counted once for each (job, fence), also if the settlement is stale (S113).
        With `claim` the reply also has new claims; the store decides whether that is one step.
        """

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:
        """End attempts in the handler's open transaction on its own connection (S63).

        As `settle`, but the commit of that transaction makes it effective. A rollback, also to a savepoint,
        leaves the claims as they were, unless their leases expired meanwhile. While the transaction is open,
        renewals, cancels and passes leave these claims alone. Uses only the connection and raises what
        `JobsFacet.enqueue_in` raises. Ignores `claim`.
        """

    async def cancel_asked(self, request: WorkerRequest) -> tuple[UUID, ...]:
        """Return the ids of a worker's running jobs whose cancel flag is set."""

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        """Take back claims whose lease has expired; `model.retry.decision.lose_lease` decides what follows.

        Bounded; oldest lease first. Counters, gates and keys change in the same step as their job. A job that
        goes back to ready keeps its place and its failures, and is a suspect (S39). A lease that expired
        after `expired_by` is left alone.
        """

    async def take_stuck(self, request: StuckRequest) -> StuckReply:
        """Take back claims that are stuck; `model.retry.stuck.settle_stuck` decides what follows.

        A claim whose lease has expired is left to `reclaim`: its worker does not report. Bounded; the oldest
        claim first. Each job ends as by a settlement under its fence, so its worker hears `STALE` from then
        on and one attempt is recorded. How long the attempt took tells the estimates nothing (S41).
        """

    async def revoke(self, request: RevokeRequest) -> RevokeReply:
        """End claims because an operator says so; `model.retry.revoke.settle_revoked` decides what follows.

        Each id is its own step. The job ends as by a settlement under its fence, so its worker hears `STALE`
        from then on, one attempt is recorded, and the estimates learn nothing from it (S41). A cancel that
        was asked for meanwhile, and the expiry, overrule it. A waiting job is condemned by `dead`; otherwise
        one that does not run stays as it is, and so does one that runs at most once and is not made dead
        (`answer_revoke`). Ids that are not found are left out.
        """

    async def promote(self, request: PassRequest) -> PromoteReply:
        """Make due delayed jobs ready and unpark what a claim would unpark, in every queue.

        Bounded as a claim is; earliest first. Claims do not depend on this pass: it keeps the counts true and
        sends workers a hint.
        """

    async def expire(self, request: PassRequest) -> ExpireReply:
        """Cancel waiting jobs that have expired, because `expired`. Bounded; earliest first."""
