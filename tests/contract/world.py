"""Short helpers for long requests, so that a test reads like the rule it checks. Hides no reply."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.fingerprint import marked
from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND, Instant
from fairlane.model.job import ATTEMPTS_KEPT, Claim, JobRecord, NewJob, Progress, Settlement
from fairlane.model.journal.entries import Entry, JournalName, NewEntry
from fairlane.model.journal.operations import Operation
from fairlane.model.journal.sealing import seal_all
from fairlane.model.lifecycle.states import CancelReply, State
from fairlane.model.policy.budget import Account, BudgetRules
from fairlane.model.policy.overrides import PolicyChange, Rules, Subject, SubjectKind, TaskRules
from fairlane.model.policy.prune_mark import NO_MARK
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.backoff import Backoff
from fairlane.model.retry.decision import (
    AttemptResult,
    Cancelled,
    Failed,
    HandedBack,
    PermanentFailure,
    Snoozed,
    Succeeded,
    Unknown,
    decide_settlement,
)
from fairlane.model.retry.revoke import RevokeHow
from fairlane.model.review import ReviewAction
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.budgets import AccountsRequest, SpendReply, SpendRequest
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    PassRequest,
    PromoteReply,
    QueueRequest,
    ReclaimReply,
    ReclaimRequest,
    Renewal,
    RenewReply,
    RenewRequest,
    RevokedJob,
    RevokeRequest,
    SettleReply,
    SettleRequest,
    StuckReply,
    StuckRequest,
)
from fairlane.store.contract.dead import (
    DeadGetRequest,
    DeadLetter,
    DeadRequest,
    DeleteRequest,
    FollowReply,
    FollowRequest,
    Reprocessing,
    ReprocessReply,
    ReprocessRequest,
    ReviewReply,
    ReviewRequest,
)
from fairlane.store.contract.jobs import (
    EditReply,
    EditRequest,
    EnqueueReply,
    EnqueueRequest,
    ExplainRequest,
    FindRequest,
    GetRequest,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    Why,
)
from fairlane.store.contract.journal import (
    MAX_ENTRIES,
    AppendRequest,
    EntriesRequest,
    NumberRequest,
    PendingReply,
    PendingRequest,
)
from fairlane.store.contract.line import FirstInLine, FirstRequest, JobLine
from fairlane.store.contract.policies import (
    HoldRequest,
    OverrideRequest,
    PolicyView,
    PutRequest,
    ReadRequest,
    SubjectRequest,
)
from fairlane.store.contract.registry import (
    HeartbeatRequest,
    RegisterRequest,
    StoreStatus,
    TaskRecord,
    WorkerRecord,
)
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import (
    Census,
    ForgetRequest,
    PruneReply,
    PruneRequest,
    PurgeReply,
    PurgeRequest,
)
from tests.invariants import check, count_all, read_books
from tests.oracle.clock import DrivenClock

ALL = Scope.all()
PAYLOAD = b'{"v":1,"arguments":{}}'
LEASE = 12 * SECOND
MICRO = 0.000001
"""The smallest step of a clock, in the seconds that `advance` takes."""


def payload(**arguments: Any) -> bytes:
    """Encode plain arguments as a payload."""
    return msgspec.json.encode({"v": 1, "arguments": arguments})


def failed(
    error_class: ErrorClass = ErrorClass.RETRYABLE, message: str = "boom", after: int | None = None
) -> Failed:
    """Return the result of an attempt that failed."""
    return Failed(Failure(error_class, "ValueError", message), after)


def ruined(error_class: ErrorClass = ErrorClass.NON_RETRYABLE, message: str = "hopeless") -> PermanentFailure:
    """Return the result of an attempt that makes its job dead."""
    return PermanentFailure(Failure(error_class, "ValueError", message))


OPERATION = Operation(action="tests.steer", actor="ann", origin="tests", note="as agreed")
"""Who steers, in tests of the audit."""

KEPT_BY_A_NEW_RUN = (
    "queue",
    "task",
    "payload",
    "checksum",
    "version",
    "priority",
    "dedup_key",
    "dedup_until",
    "correlation_id",
    "max_attempts",
    "timeout",
    "at_most_once",
    "tags",
    "metadata",
    "created_by",
    "stuck_after",
    "on_stuck",
)
"""The fields of a dead job that are those of the job in its place (S53)."""

SUCCEEDED = Succeeded()
SNOOZED = Snoozed(60 * SECOND)
HANDED_BACK = HandedBack()
UNSTARTED = HandedBack(is_unstarted=True)
CANCELLED = Cancelled("no longer wanted")

ENDING_IN: Mapping[State, AttemptResult | None] = {
    State.DELAYED: SNOOZED,
    State.READY: HANDED_BACK,
    State.RUNNING: None,
    State.SUCCEEDED: SUCCEEDED,
    State.DEAD: ruined(),
    State.CANCELLED: CANCELLED,
}
"""How to end a first attempt so that its job is in this state then; a running one does not end."""

ENDINGS: Mapping[str, AttemptResult] = {
    "succeeded": SUCCEEDED,
    "retried": failed(),
    "exhausted": failed(ErrorClass.NON_RETRYABLE),
    "snoozed": SNOOZED,
    "ruined": ruined(),
    "cancelled": CANCELLED,
    "handed back": HANDED_BACK,
    "unknown task": Unknown(),
}
"""Every way in which a worker can end an attempt."""


def stored(ending: Failed | PermanentFailure, task: str = "noop") -> Failure:
    """Return the failure that the history of a job has after this ending: with its fingerprint."""
    return marked(task, ending.failure)


def _still_open(queue_requests: Iterable[tuple[str, int]], claims: Iterable[Claim]) -> list[tuple[str, int]]:
    """Subtract what was claimed from the queue requests, first request first."""
    served = Counter(claim.job.queue for claim in claims)
    left = []
    for queue, limit in queue_requests:
        taken = min(limit, served[queue])
        served[queue] -= taken
        left.append((queue, limit - taken))
    return left


class World:
    """A store, its clock, and the verbs with defaults for most tests."""

    def __init__(self, store: Store, clock: DrivenClock) -> None:
        """Start with the same ids in every run."""
        self.store = store
        self.clock = clock
        self._ids = IdMaker(random.Random(7).getrandbits)
        self.attempts_kept = ATTEMPTS_KEPT

    # ── time ──────────────────────────────────────────────────────────────────

    @property
    def now(self) -> Instant:
        """Return the store's now."""
        return self.clock.now()

    def advance(self, seconds: float) -> Instant:
        """Let time pass."""
        return self.clock.advance(seconds)

    # ── jobs in ───────────────────────────────────────────────────────────────

    def new(self, tenant: str = "acme", **values: Any) -> NewJob:
        """Return a well-formed new job."""
        values = {"id": self._ids.next(self.now), "queue": "default", "task": "noop", **values}
        body = {"payload": PAYLOAD, "checksum": 0}
        return NewJob(**{**body, **values, "tenant": tenant})

    async def send(self, *jobs: NewJob, scope: Scope = ALL, **options: Any) -> EnqueueReply:
        """Enqueue a batch and return the reply."""
        return await self.store.jobs.enqueue(EnqueueRequest(scope=scope, jobs=jobs, **options))

    async def enqueue(self, tenant: str = "acme", **values: Any) -> JobRecord:
        """Enqueue one job that must be stored."""
        reply = await self.send(self.new(tenant, **values))
        assert not reply.refused, reply.refused
        return reply.enqueued[0].job

    async def enqueue_many(self, number: int, tenant: str = "acme", **values: Any) -> list[JobRecord]:
        """Enqueue a batch of equal jobs that must be stored."""
        reply = await self.send(*(self.new(tenant, **values) for _ in range(number)))
        assert not reply.refused, reply.refused
        return [one.job for one in reply.enqueued]

    # ── jobs out ──────────────────────────────────────────────────────────────

    def claim_request(
        self,
        total: int = 1,
        queue: str = "default",
        *,
        queue_requests: Iterable[tuple[str, int]] | None = None,
        worker: str = "w1",
        lease: int = LEASE,
        scope: Scope = ALL,
        headroom: int = 0,
        ahead: int = 0,
        names_breakers: bool = False,
    ) -> ClaimRequest:
        """Return the request of a claim, to be sent alone or with a settlement."""
        wanted = ((queue, total),) if queue_requests is None else queue_requests
        return ClaimRequest(
            scope=scope,
            worker=worker,
            lease=lease,
            queue_requests=tuple(QueueRequest(*queue_request) for queue_request in wanted),
            total=total,
            headroom=headroom,
            ahead=ahead,
            names_breakers=names_breakers,
        )

    async def claim_reply(self, total: int = 1, queue: str = "default", **options: Any) -> ClaimReply:
        """Claim once and return the reply, which may be partial."""
        return await self.store.claims.claim(self.claim_request(total, queue, **options))

    async def claim_whole(
        self,
        total: int = 1,
        queue: str = "default",
        queue_requests: Iterable[tuple[str, int]] | None = None,
        **options: Any,
    ) -> ClaimReply:
        """Claim until the reply is not partial, and return all as one reply."""
        open_wishes = [(queue, total)] if queue_requests is None else list(queue_requests)
        claims: list[Claim] = []
        while True:
            reply = await self.claim_reply(total - len(claims), queue_requests=open_wishes, **options)
            claims += reply.claims
            if not reply.is_partial or len(claims) == total:
                return ClaimReply(tuple(claims), reply.next_due_at, is_ahead_cut=reply.is_ahead_cut)
            open_wishes = _still_open(open_wishes, reply.claims)

    async def claim(self, total: int = 1, queue: str = "default", **options: Any) -> list[Claim]:
        """Claim until the reply is not partial, and return the claims."""
        return list((await self.claim_whole(total, queue, **options)).claims)

    async def claim_one(self, queue: str = "default", **options: Any) -> Claim:
        """Claim exactly one job."""
        (claim,) = await self.claim(1, queue, **options)
        return claim

    async def tenants_served(self, total: int, queue: str = "default", **options: Any) -> list[str]:
        """Claim and return the tenants in the order served."""
        return [claim.job.tenant for claim in await self.claim(total, queue, **options)]

    def verdict(self, claim: Claim, ending: AttemptResult = SUCCEEDED, **options: Any) -> Settlement:
        """Decide a settlement by a plain policy: one second, doubling, no jitter."""
        return decide_settlement(claim, ending, Backoff.exponential(1, jitter=0), draw=0.5, **options)

    async def settle_reply(
        self,
        *settlements: Settlement,
        worker: str = "w1",
        scope: Scope = ALL,
        claim: ClaimRequest | None = None,
    ) -> SettleReply:
        """Settle and return the reply."""
        return await self.store.claims.settle(
            SettleRequest(
                scope=scope,
                worker=worker,
                settlements=settlements,
                claim=claim,
                attempts_kept=self.attempts_kept,
            )
        )

    async def settle(
        self, claim: Claim, ending: AttemptResult = SUCCEEDED, worker: str = "w1", spent: int = 0
    ) -> State:
        """Settle one claim that must be accepted."""
        reply = await self.settle_reply(self.verdict(claim, ending, spent=spent), worker=worker)
        assert not reply.stale
        return reply.settled[0].state

    async def run(self, ending: AttemptResult = SUCCEEDED, queue: str = "default") -> JobRecord:
        """Claim one job, end its attempt with this result, and return the job."""
        claim = await self.claim_one(queue)
        await self.settle(claim, ending)
        return await self.get(claim.job.id)

    async def bring_to(self, state: State, tenant: str = "acme", **values: Any) -> Claim:
        """Enqueue a job, bring it into a state by one claim, and return the claim.

        It must be the first in its queue. For delayed it is snoozed, for ready handed back.
        """
        job = await self.enqueue(tenant, **values)
        claim = await self.claim_one(job.queue)
        assert claim.job.id == job.id
        ending = ENDING_IN[state]
        if ending is not None:
            assert await self.settle(claim, ending) is state
        return claim

    async def die(self, tenant: str = "acme", **values: Any) -> JobRecord:
        """Let one job die, which must be the first in its queue; its payload has a checksum."""
        job = await self.enqueue(tenant, **{"checksum": 7, **values})
        dead = await self.run(ruined(), job.queue)
        assert dead.id == job.id
        return dead

    async def lose(self) -> ReclaimReply:
        """Let every lease expire and reclaim."""
        self.advance(LEASE / SECOND)
        return await self.reclaim()

    async def renew(
        self,
        *claims: Claim,
        worker: str = "w1",
        lease: int = LEASE,
        progress: Progress | None = None,
        metadata: bytes | None = None,
        spent: int = 0,
    ) -> RenewReply:
        """Renew claims."""
        renewals = tuple(Renewal(claim.job.id, claim.fence, progress, metadata, spent) for claim in claims)
        return await self.store.claims.renew(
            RenewRequest(scope=ALL, worker=worker, lease=lease, renewals=renewals)
        )

    async def reclaim(self, **options: Any) -> ReclaimReply:
        """Take back claims whose lease has expired."""
        request = ReclaimRequest(scope=ALL, attempts_kept=self.attempts_kept, **options)
        return await self.store.claims.reclaim(request)

    async def take_stuck(self, **options: Any) -> StuckReply:
        """Take back claims that are older than they may be."""
        request = StuckRequest(scope=ALL, attempts_kept=self.attempts_kept, **options)
        return await self.store.claims.take_stuck(request)

    async def revoke(
        self, *ids: UUID, how: RevokeHow, scope: Scope = ALL, **options: Any
    ) -> tuple[RevokedJob, ...]:
        """End claims as an operator does."""
        options |= {"reason": "by hand", "who": "ops", "attempts_kept": self.attempts_kept}
        request = RevokeRequest(scope=scope, ids=ids, how=how, **options)
        return (await self.store.claims.revoke(request)).jobs

    async def promote(self, scope: Scope = ALL, **options: Any) -> PromoteReply:
        """Make due jobs ready."""
        return await self.store.claims.promote(PassRequest(scope=scope, **options))

    async def expire(self) -> int:
        """Cancel expired jobs."""
        return (await self.store.claims.expire(PassRequest(scope=ALL))).expired

    # ── looking and steering ──────────────────────────────────────────────────

    async def get(self, id: UUID, scope: Scope = ALL) -> JobRecord:
        """Return one job that must exist."""
        return (await self.store.jobs.get(GetRequest(scope=scope, ids=(id,))))[id]

    async def is_known(self, id: UUID, scope: Scope = ALL) -> bool:
        """Whether an id exists in this scope."""
        return id in await self.store.jobs.get(GetRequest(scope=scope, ids=(id,)))

    async def find_all(self, scope: Scope = ALL, page: int = 50, **filters: Any) -> list[JobRecord]:
        """Page through everything that matches."""
        found: list[JobRecord] = []
        cursor: str | None = None
        used: list[str | None] = []
        while True:
            reply = await self.store.jobs.find(FindRequest(scope=scope, limit=page, cursor=cursor, **filters))
            found += reply.jobs
            cursor = reply.cursor
            assert cursor not in used, "this cursor leads round in a circle"
            used.append(cursor)
            if cursor is None:
                return found

    async def counts(self, scope: Scope = ALL, queue: str | None = None) -> dict[tuple[str, str, State], int]:
        """Return all counts by (tenant, queue, state)."""
        return {
            (one.tenant, one.queue, one.state): one.jobs for one in await count_all(self.store, scope, queue)
        }

    async def states(self) -> Counter[State]:
        """Count all jobs by state."""
        totals: Counter[State] = Counter()
        for (_, _, state), number in (await self.counts()).items():
            totals[state] += number
        return totals

    async def explain(self, id: UUID, scope: Scope = ALL) -> Why:
        """Return why a job waits; it must exist."""
        why = await self.store.jobs.explain(ExplainRequest(scope=scope, id=id))
        assert why is not None
        return why

    async def cancel(self, *ids: UUID, reason: str = "", scope: Scope = ALL) -> Mapping[UUID, CancelReply]:
        """Cancel jobs."""
        return await self.store.jobs.cancel(StopRequest(scope=scope, ids=ids, reason=reason, who="ops"))

    async def condemn(self, *ids: UUID, reason: str = "", scope: Scope = ALL) -> tuple[UUID, ...]:
        """Condemn jobs."""
        return await self.store.jobs.condemn(StopRequest(scope=scope, ids=ids, reason=reason, who="ops"))

    async def run_now(self, *ids: UUID, scope: Scope = ALL) -> tuple[UUID, ...]:
        """Make delayed jobs due."""
        return await self.store.jobs.run_now(RunNowRequest(scope=scope, ids=ids))

    async def edit(self, id: UUID, scope: Scope = ALL, **values: Any) -> EditReply:
        """Change a waiting job."""
        return await self.store.jobs.edit(EditRequest(scope=scope, id=id, **values))

    async def peek(
        self, limit: int = 10, queue: str = "default", scope: Scope = ALL
    ) -> tuple[JobRecord, ...]:
        """Return the next jobs of a queue."""
        return await self.store.jobs.peek(PeekRequest(scope=scope, queue=queue, limit=limit))

    async def first_in_line(self, *lines: tuple[str, str], scope: Scope = ALL) -> tuple[FirstInLine, ...]:
        """Return the first ready jobs of lines, each a tenant and a queue."""
        request = FirstRequest(scope=scope, lines=tuple(JobLine(*line) for line in lines))
        return await self.store.jobs.first_in_line(request)

    async def purge(self, scope: Scope = ALL, **options: Any) -> PurgeReply:
        """Cancel waiting jobs."""
        return await self.store.upkeep.purge(
            PurgeRequest(scope=scope, reason="spring cleaning", who="ops", **options)
        )

    async def forget(self, tenant: str = "acme") -> None:
        """Forget a tenant, in as many passes as it takes."""
        cursor: str | None = None
        while True:
            request = ForgetRequest(scope=Scope(tenant), reason="asked to", who="ops", cursor=cursor)
            cursor = (await self.store.upkeep.forget(request)).cursor
            if cursor is None:
                return

    async def letters(self, scope: Scope = ALL, page: int = 50, **filters: Any) -> list[DeadLetter]:
        """Page through all dead letters that match."""
        found: list[DeadLetter] = []
        cursor: str | None = None
        used: list[str | None] = []
        while True:
            reply = await self.store.dead.find(DeadRequest(scope=scope, limit=page, cursor=cursor, **filters))
            found += reply.letters
            cursor = reply.cursor
            assert cursor not in used, "this cursor leads round in a circle"
            used.append(cursor)
            if cursor is None:
                return found

    async def sight(self) -> tuple[object, ...]:
        """Return everything visible about jobs, to compare around a verb that must change nothing."""
        return (
            await self.find_all(),
            await self.counts(),
            await self.letters(),
            await self.census(),
            await self.journal("audit"),
            await self.journal("events"),
        )

    async def letter(self, id: UUID) -> DeadLetter | None:
        """Return a job's dead letter, if it has one."""
        return await self.store.dead.get(DeadGetRequest(scope=ALL, id=id))

    async def review(
        self, action: ReviewAction, *ids: UUID, scope: Scope = ALL, who: str = "ann", **options: Any
    ) -> tuple[ReviewReply, ...]:
        """Do something about dead letters."""
        return await self.store.dead.review(
            ReviewRequest(scope=scope, ids=ids, action=action, who=who, **options)
        )

    def again(self, dead: JobRecord, **values: Any) -> Reprocessing:
        """Return the request to run a dead job again as it was, under a key of its own (S53)."""
        kept = {name: getattr(dead, name) for name in KEPT_BY_A_NEW_RUN}
        key = f"{dead.idempotency_key}#r1"
        new = {**kept, "parent_id": dead.id, "idempotency_key": key, **values}
        return Reprocessing(dead.id, dead.checksum, self.new(**{"tenant": dead.tenant, **new}))

    async def reprocess(
        self, *items: Reprocessing, scope: Scope = ALL, who: str = "ann", **options: Any
    ) -> tuple[ReprocessReply, ...]:
        """Run dead letters again."""
        return await self.store.dead.reprocess(ReprocessRequest(scope=scope, items=items, who=who, **options))

    async def rerun(self, dead: JobRecord, **values: Any) -> JobRecord:
        """Run one dead letter again, which must succeed, and return the new job."""
        item = self.again(dead, **values)
        (reply,) = await self.reprocess(item)
        assert (reply.answer, reply.job) == ("reprocessed", item.job.id), reply
        return await self.get(item.job.id)

    async def delete(self, *ids: UUID, scope: Scope = ALL, **options: Any) -> tuple[UUID, ...]:
        """Delete dead letters."""
        return await self.store.dead.delete(DeleteRequest(scope=scope, ids=ids, **options))

    async def follow(self, **options: Any) -> FollowReply:
        """Let dead letters learn how the jobs in their place have ended."""
        return await self.store.dead.follow(FollowRequest(scope=ALL, **options))

    async def append(self, name: JournalName, *entries: NewEntry, scope: Scope = ALL) -> None:
        """Append entries to a journal."""
        await self.store.journal.append(AppendRequest(scope=scope, journal=name, entries=entries))

    async def pending(self, name: JournalName, limit: int = MAX_ENTRIES, scope: Scope = ALL) -> PendingReply:
        """Return what waits for a number in a journal, and its end."""
        return await self.store.journal.pending(PendingRequest(scope=scope, journal=name, limit=limit))

    async def appended(self, name: JournalName, scope: Scope = ALL) -> list[NewEntry]:
        """Return the entries of a journal that wait for a number, oldest first."""
        return [one.entry for one in (await self.pending(name, scope=scope)).entries]

    async def journal(self, name: JournalName, scope: Scope = ALL) -> tuple[object, ...]:
        """Return a journal: what waits for a number, its end, and its newest numbered entries."""
        pending = await self.pending(name, scope=scope)
        newest = EntriesRequest(scope=scope, journal=name, backwards=True)
        return pending.entries, pending.end, (await self.store.journal.entries(newest)).entries

    async def numbered(
        self, name: JournalName, scope: Scope = ALL, page: int = 100, **filters: Any
    ) -> list[Entry]:
        """Page through the numbered entries that match, to the end."""
        request = EntriesRequest(scope=scope, journal=name, limit=page, **filters)
        found: list[Entry] = []
        while True:
            reply = await self.store.journal.entries(request)
            assert len(reply.entries) <= page
            found += reply.entries
            if reply.after in {None, request.after}:
                return found
            is_further = (reply.after or 0) > request.after
            assert is_further is not request.backwards or not request.after, "this cursor goes back"
            request = msgspec.structs.replace(request, after=reply.after)

    async def number(
        self, name: JournalName, most: int = MAX_ENTRIES, memory: bytes | None = None
    ) -> tuple[Entry, ...]:
        """Number what waits in a journal, as its duty does, and return it."""
        reply = await self.pending(name, most)
        entries = seal_all(reply.entries, reply.end.last, b"", None)
        request = NumberRequest(
            scope=ALL,
            journal=name,
            revision=reply.end.revision,
            taken=tuple(one.place for one in reply.entries),
            entries=entries,
            memory=reply.end.memory if memory is None else memory,
        )
        assert await self.store.journal.number(request)
        return entries

    async def census(self) -> Census:
        """Return the store's own counters, all pages."""
        return await read_books(self.store)

    async def prune(self, **times: Any) -> PruneReply:
        """Remove what is older than these retention times."""
        request = PruneRequest(scope=ALL, retention=Retention(**times))
        return numbers_of(await self.store.upkeep.prune(request))

    # ── policies ──────────────────────────────────────────────────────────────

    async def declare(self, kind: SubjectKind, name: str, rules: Rules) -> None:
        """Declare the rules of one subject."""
        await self.store.policies.put(PutRequest(scope=ALL, rules={Subject(kind, name): rules}))

    async def put(self, rules: Mapping[Subject, Rules]) -> None:
        """Declare the rules of many subjects."""
        await self.store.policies.put(PutRequest(scope=ALL, rules=rules))

    async def put_gate(self, gate: str, *tasks: str) -> None:
        """Declare a gate and the tasks that use it."""
        await self.put({Subject(SubjectKind.TASK, task): TaskRules(gate=gate) for task in tasks})

    async def put_budget(self, budget: str, *tasks: str, **rules: Any) -> None:
        """Declare a budget and the tasks under it; its period is a day of UTC by default."""
        await self.put({Subject(SubjectKind.TASK, task): TaskRules(budget=budget) for task in tasks})
        values = {"ceiling": 100, "currency": "USD", "per": "day", "on_spent": "park", **rules}
        await self.declare(SubjectKind.BUDGET, budget, BudgetRules(**values))

    async def accounts(self, budget: str, scope: Scope = ALL, **options: Any) -> dict[str, Account]:
        """Return the accounts of a budget by tenant."""
        reply = await self.store.budgets.accounts(AccountsRequest(scope=scope, budget=budget, **options))
        return {one.tenant: one.account for one in reply.accounts}

    async def account(self, budget: str, tenant: str = "") -> tuple[int, int]:
        """Return what is spent and reserved."""
        account = (await self.accounts(budget))[tenant]
        return account.spent, account.reserved

    async def spend(self, budget: str, scope: Scope = ALL, **options: Any) -> SpendReply:
        """Return who has spent what."""
        return await self.store.budgets.spend(SpendRequest(scope=scope, budget=budget, **options))

    async def override(
        self, kind: SubjectKind, name: str, change: PolicyChange, until: Instant | None = None
    ) -> PolicyView:
        """Set an override of one subject."""
        return await self.store.policies.override(
            OverrideRequest(scope=ALL, subject=Subject(kind, name), change=change, who="ops", until=until)
        )

    async def reset(self, kind: SubjectKind, name: str) -> PolicyView:
        """Remove an override."""
        return await self.store.policies.reset(SubjectRequest(scope=ALL, subject=Subject(kind, name)))

    async def pause(self, kind: SubjectKind, name: str, until: Instant | None = None) -> PolicyView:
        """Pause one subject."""
        return await self.store.policies.pause(self._hold(kind, name, until))

    async def resume(self, kind: SubjectKind, name: str) -> PolicyView:
        """Resume one subject."""
        return await self.store.policies.resume(SubjectRequest(scope=ALL, subject=Subject(kind, name)))

    async def close(self, kind: SubjectKind, name: str, until: Instant | None = None) -> PolicyView:
        """Close one subject."""
        return await self.store.policies.close(self._hold(kind, name, until))

    async def reopen(self, kind: SubjectKind, name: str) -> PolicyView:
        """Reopen one subject."""
        return await self.store.policies.reopen(SubjectRequest(scope=ALL, subject=Subject(kind, name)))

    def _hold(self, kind: SubjectKind, name: str, until: Instant | None) -> HoldRequest:
        return HoldRequest(
            scope=ALL, subject=Subject(kind, name), who="ops", reason="maintenance", until=until
        )

    async def view(self, kind: SubjectKind, name: str) -> PolicyView:
        """Return the policy of one subject."""
        subject = Subject(kind, name)
        return (await self.store.policies.read(ReadRequest(scope=ALL, subjects=(subject,))))[subject]

    # ── workers ───────────────────────────────────────────────────────────────

    async def register(
        self, worker: str = "w1", *tasks: TaskRecord, renew_every: int = 4 * SECOND
    ) -> WorkerRecord:
        """Register a worker that serves the default queue."""
        record = WorkerRecord(
            id=worker, host="here", pid=7, version="1", queues=("default",), slots=16, tasks=tasks
        )
        await self.store.registry.register(RegisterRequest(scope=ALL, record=record, renew_every=renew_every))
        return record

    async def beat(self, worker: str = "w1", renew_every: int = 4 * SECOND) -> bool:
        """Send a heartbeat of a worker."""
        return await self.store.registry.heartbeat(
            HeartbeatRequest(scope=ALL, worker=worker, state="busy", renew_every=renew_every)
        )

    async def status(self) -> StoreStatus:
        """Return the status of the registry."""
        return await self.store.registry.status(Request(scope=ALL))

    # ── at the end ────────────────────────────────────────────────────────────

    async def check_invariants(self) -> None:
        """Check what must hold for any store at rest."""
        is_usual = self.attempts_kept == ATTEMPTS_KEPT
        await check(self.store, attempts_kept=ATTEMPTS_KEPT if is_usual else None)


def numbers_of(reply: PruneReply) -> PruneReply:
    """Return how much a pass of pruning has removed, without the states and the mark."""
    return msgspec.structs.replace(reply, states={}, mark=NO_MARK)
