"""Jobs as workers and duties move them: claimed, renewed, settled, promoted, reclaimed, expired."""

from __future__ import annotations

from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant, Micros
from fairlane.model.job import Claim, Progress, Settlement
from fairlane.model.judge import MAX_CRASHES
from fairlane.model.lifecycle import State
from fairlane.store.contract.request import Request

RECLAIM_MOST: Final = 500
DUE_MOST: Final = 1_000
"""How many due delayed jobs of a queue one claim makes ready before it may answer early."""

PARK_MOST: Final = 64
"""How many strands one claim may park before it may answer early (S42)."""

WAKE_MOST: Final = 500
"""How many parked tenants and strands of a queue one claim or pass wakes before it answers early."""


class Wish(msgspec.Struct, frozen=True):
    """Up to so many jobs of one queue. A queue may occur more than once in a request."""

    queue: str
    most: int


class ClaimRequest(Request, frozen=True, kw_only=True):
    """What a worker could start now: its wishes in order, `total` over all of them.

    When only `headroom` of the total are left, only tenants with nothing running in the queue are served
    (S48). `isolates` says that this worker runs suspects alone (S39).
    """

    worker: str
    lease: Micros
    wishes: tuple[Wish, ...]
    total: int
    headroom: int = 0
    isolates: bool = False


class ClaimReply(msgspec.Struct, frozen=True):
    """The claims in the order served, and when to look again.

    `next_due_at` is the earliest instant at which time alone makes another job of these queues claimable (a
    delayed job's time, the end of a rate's wait or of a pause), if any is known; it is not looked for when
    the total was reached. `is_partial` says that the store stopped early by its own bounds, with less than
    the total: ask again at once. Each such answer brings the queue on, so that asking again ends.
    """

    claims: tuple[Claim, ...] = ()
    next_due_at: Instant | None = None
    is_partial: bool = False


class Renewal(msgspec.Struct, frozen=True):
    """One claim to keep, with the handler's newest progress if there is any."""

    id: UUID
    fence: int
    progress: Progress | None = None


class RenewRequest(Request, frozen=True, kw_only=True):
    """All the claims that a worker holds."""

    worker: str
    lease: Micros
    renewals: tuple[Renewal, ...]


class RenewReply(msgspec.Struct, frozen=True):
    """Which claims are lost, which jobs are asked to stop, and until when the rest are leased."""

    stale: tuple[UUID, ...] = ()
    cancel_asked: tuple[UUID, ...] = ()
    lease_until: Instant = 0


class SettleRequest(Request, frozen=True, kw_only=True):
    """How attempts ended and, optionally, what the worker could start next (S35).

    A job is named under one fence: the answer says none.
    Without `waits`, a claim that another transaction has settled and not committed (`settle_in`) is neither
    settled nor named, where the store could only wait for that transaction.
    """

    worker: str
    settlements: tuple[Settlement, ...]
    claim: ClaimRequest | None = None
    waits: bool = True


class Settled(msgspec.Struct, frozen=True):
    """What a settlement made of a job: it may be another state than asked for (see `judge.heed`)."""

    id: UUID
    state: State


class SettleReply(msgspec.Struct, frozen=True):
    """What was settled, what was stale, and the new claims if any were asked for.

    A store that was lost after some of its steps tells of those: what is neither settled nor stale is to be
    sent again, and the claims are partial.
    """

    settled: tuple[Settled, ...] = ()
    stale: tuple[UUID, ...] = ()
    claimed: ClaimReply | None = None


class WorkerRequest(Request, frozen=True, kw_only=True):
    """Ask about the claims of one worker."""

    worker: str


class ReclaimRequest(Request, frozen=True, kw_only=True):
    """Take back claims whose lease ran out, by `lapsed_by` if that was before now.

    Who looked at the pulse knows only that workers could renew until then (`Pulse.now`).
    """

    most: int = RECLAIM_MOST
    lapsed_by: Instant | None = None
    max_crashes: int = MAX_CRASHES


class Lost(msgspec.Struct, frozen=True):
    """A claim that was taken back: whose, and what became of the job."""

    id: UUID
    tenant: str
    queue: str
    worker: str
    fence: int
    state: State


class ReclaimReply(msgspec.Struct, frozen=True):
    """The claims that were taken back; `is_partial` says that there were more, `is_idle` that none is held.

    Only a pass that took nothing back knows whether any is held.
    """

    lost: tuple[Lost, ...] = ()
    is_partial: bool = False
    is_idle: bool = False


class PassRequest(Request, frozen=True, kw_only=True):
    """One bounded pass of a duty."""

    most: int = 1_000


class PromoteReply(msgspec.Struct, frozen=True):
    """How many became ready, and when the next will."""

    promoted: int = 0
    next_due_at: Instant | None = None
    is_partial: bool = False


class ExpireReply(msgspec.Struct, frozen=True):
    """How many waiting jobs were past their time."""

    expired: int = 0
    is_partial: bool = False


class Claims(Protocol):
    """The life of a job between ready and its end, and the passes that keep it moving.

    Claims and passes serve all tenants: `claim`, `promote`, `reclaim` and `expire` raise ValueError under the
    scope of one. A pass treats each job as a step of its own and may be cut short between two; repeating it
    is always right.
    """

    @property
    def turns_at_once(self) -> int:
        """How many calls of one lane are worth having under way: more than one if another process works."""

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        """Hand out ready jobs, fairly across tenants (S35, S41-S48).

        Atomic for each queue, and one queue after the other where there are several: a job is in at most one
        live claim, and every limit, rate and gate is exact. Jobs come one after the other: from the first
        wish that has any claimable job left, the tenant with the smallest virtual time (ties: who became
        ready first), of its claimable strands the one whose head has the smallest `sort_key` (then id), its
        head. Each claim has a fresh fence (S36) that `renew` and `settle` demand, raises `attempt`, and frees
        a de-duplication key that lasts until `started`. Jobs past their expiry are not handed out. Fewer than
        asked is normal; empty while something is claimable is a bug unless the reply is partial.

        A queue is made ready when its first wish comes up, which is never if the total is reached before.
        First due delayed jobs, promoted or not: `DUE_MOST` of them, earliest first. Then what was parked
        until now, or because of a policy that has changed since (S54): the earliest of these times first,
        among equals the smallest (virtual time, ready since, task) at which it was parked. Then, of the
        queue's strands that wait at a gate, as many as the gate has room for: gate by gate, the smallest
        (virtual time, ready since, task) first (S43); and again when nothing else is left, since what was
        woken may be held by something else. What is parked joins the fair order when it is woken, not before;
        at most `WAKE_MOST` tenants and strands of the queue together.
        """

    async def renew(self, request: RenewRequest) -> RenewReply:
        """Extend the leases of these claims from now on and keep their progress.

        Each renewal stands alone: one whose (job, fence, worker) does not match changes nothing and is
        named as stale, the others go on. A claim that has run out but was not taken back can be renewed. One
        that is just being settled by somebody else may be neither extended nor named.
        In queues that count seconds, time beyond the charge so far is charged here.
        """

    async def settle(self, request: SettleRequest) -> SettleReply:
        """End attempts: move each job to where its settlement says, in one step with counts, keys and gates.

        Each settlement stands alone: one whose (job, fence, worker) does not match a running job changes
        nothing and is named as stale, the others are settled. Accepted until someone has reclaimed the job,
        however late (S37). A cancel asked meanwhile and the job's expiry overrule it (`judge.heed`). A
        settled job is in its new home, with the attempt in its history, or in none of this. A place given
        back at a gate is there for the next claim; queues in which strands wait at that gate get a hint. With
        `claim` the reply also has new claims; whether that is one step is the store's business.
        """

    async def settle_in(self, connection: Any, request: SettleRequest) -> SettleReply:
        """End attempts in the handler's open transaction on its own connection (S63).

        As `settle`, except that the commit of that transaction makes it so, and its rollback, also to a
        savepoint, leaves the claims as they were, unless their leases ran out meanwhile. While it is open,
        renewals, cancels and passes leave these claims alone. It asks nothing but the connection, as
        `Jobs.enqueue_in` does, and raises what that does. `claim` is not looked at.
        """

    async def asked_to_cancel(self, request: WorkerRequest) -> tuple[UUID, ...]:
        """Name the running jobs of a worker whose cancel flag is set."""

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        """Take back claims whose lease has ended and do with each what `judge.lose` says.

        Bounded; oldest lease first. Counts, gates and keys are put right in a job's own step. A reclaimed job
        that goes back to ready keeps its place and is a suspect. A lease that ended after `lapsed_by` is left
        alone.
        """

    async def promote(self, request: PassRequest) -> PromoteReply:
        """Make due delayed jobs ready, end waits that time has ended, and fill gates that have room.

        Bounded; earliest first. Wakes in every queue what a claim of it would wake, within the same bounds.
        Claims do not depend on it; it keeps the counts true and wakes workers.
        """

    async def expire(self, request: PassRequest) -> ExpireReply:
        """Cancel waiting jobs whose expiry has passed, because `expired`. Bounded; earliest first."""
