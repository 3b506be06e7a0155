"""A Hypothesis state machine that drives a store and the oracle in parallel and compares every answer.

One clock serves both, and it moves only when the machine says so: answers must be equal to the microsecond,
fences and orders included. Visits per state and per transition are counted, so that a run can be gated on
having been everywhere (`Visits`).
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Final, TypeVar
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlane.model.duty_report import DutyReports
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import SECOND
from fairlane.model.job import ATTEMPTS_KEPT, Claim, JobRecord, NewJob, Progress
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.states import TRANSITIONS, Event, State
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    GateRules,
    PolicyChange,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.model.policy.prune_mark import NO_MARK, PruneMark
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
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    PassRequest,
    QueueRequest,
    ReclaimRequest,
    Renewal,
    RenewRequest,
    RevokeRequest,
    SettleRequest,
    StuckRequest,
    WorkerRequest,
)
from fairlane.store.contract.dead import DeadCountRequest, DeadRequest
from fairlane.store.contract.jobs import (
    Count,
    CountRequest,
    EditRequest,
    Enqueued,
    EnqueueReply,
    EnqueueRequest,
    ExplainRequest,
    FindRequest,
    GetRequest,
    JobTally,
    PeekRequest,
    RunNowRequest,
    StopRequest,
    TallyRequest,
)
from fairlane.store.contract.line import FirstRequest, JobLine
from fairlane.store.contract.mailbox import (
    AnswerRequest,
    AskRequest,
    ReadAnswerRequest,
    UnansweredRequest,
)
from fairlane.store.contract.policies import (
    HoldRequest,
    ListRequest,
    OverrideRequest,
    PutRequest,
    ReadRequest,
    SubjectRequest,
)
from fairlane.store.contract.registry import (
    DutiesRequest,
    ForgetWorkersRequest,
    HeartbeatRequest,
    LeadRequest,
    RegisterRequest,
    WorkerRecord,
    WorkersRequest,
)
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import CensusRequest, ForgetRequest, PruneRequest, PurgeRequest
from tests.invariants import check
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore
from tests.stores import Opener

R = TypeVar("R")

TENANTS = ("acme", "globex", "initech", "system")
QUEUES = ("mail", "bulk")
TASKS = ("send", "sync", "shoot")
WORKERS = ("w1", "w2")
METADATA = (b'{"n":1}', b"{}")
SUBJECTS = (
    *(Subject(SubjectKind.QUEUE, name) for name in QUEUES),
    *(Subject(SubjectKind.TENANT, name) for name in TENANTS),
    *(Subject(SubjectKind.TASK, name) for name in TASKS),
)
GATE = Subject(SubjectKind.GATE, "screens")
ALL = Scope.all()

LINES = tuple(JobLine(tenant, queue) for tenant in TENANTS for queue in QUEUES)
SCOPES = (*(ALL,) * 8, *(Scope(tenant) for tenant in TENANTS[:2]))

mostly_all = st.sampled_from(SCOPES)
seeds = st.integers(0, 2**16 - 1)
picks = st.lists(st.integers(0, 10_000), min_size=1, max_size=3)
maybe_until = st.sampled_from((None, None, 2 * SECOND, 60 * SECOND))


async def _enqueue_whole(store: Store, request: EnqueueRequest) -> EnqueueReply:
    """Enqueue, and build every record that a store leaves to be built on demand."""
    reply = await store.jobs.enqueue(request)
    whole = tuple(Enqueued(one.job, one.is_created) for one in reply.enqueued)
    return msgspec.structs.replace(reply, enqueued=whole)


_STUCK_EVENTS: Final = {
    State.DELAYED: Event.RETRY,
    State.CANCELLED: Event.OBEY_CANCEL,
    State.DEAD: Event.STUCK,
}


def _stuck_event(_: JobRecord, after: JobRecord) -> Event:
    return _STUCK_EVENTS[after.state]


_REVOKE_EVENTS: Final = {
    State.DELAYED: Event.RETRY,
    State.READY: Event.HAND_BACK,
    State.CANCELLED: Event.OBEY_CANCEL,
    State.DEAD: Event.FAIL,
}


def _revoke_event(was: JobRecord, after: JobRecord) -> Event:
    return _REVOKE_EVENTS[after.state] if was.state is State.RUNNING else Event.CONDEMN


_HOURS: Final = Retention(
    succeeded=3600 * SECOND,
    cancelled=3600 * SECOND,
    dead=7200 * SECOND,
    dead_reviewed=3600 * SECOND,
    results=60 * SECOND,
    keys=7200 * SECOND,
)
RETENTIONS: Final = {
    1: msgspec.structs.replace(_HOURS, is_from_review=False),
    2: msgspec.structs.replace(
        _HOURS,
        newest_finished=7,
        newest_dead=4,
        tasks={TASKS[0]: 1800 * SECOND},
        tenants={TENANTS[0]: 5400 * SECOND},
        queues={QUEUES[0]: 900 * SECOND},
    ),
    100: msgspec.structs.replace(_HOURS, newest_finished=5),
}
"""By how many passes a sweep takes."""


class Visits:
    """How often each state and transition was visited, over all runs of one test."""

    def __init__(self) -> None:
        """Start at zero."""
        self.states: Counter[State] = Counter()
        self.transitions: Counter[tuple[State | None, Event]] = Counter()

    def missing(self, per_state: int, per_transition: int) -> list[str]:
        """Return what was visited too rarely."""
        rare = [f"{s.value}: {self.states[s]}" for s in State if self.states[s] < per_state]
        return rare + [
            f"{state} --{event}->: {self.transitions[state, event]}"
            for state, event in TRANSITIONS
            if self.transitions[state, event] < per_transition
        ]

    def table(self) -> str:
        """Return the counts for people."""
        states = "  ".join(f"{state.value} {self.states[state]}" for state in State)
        pairs = (f"{a or '-'}:{event} {self.transitions[a, event]}" for a, event in TRANSITIONS)
        return f"states: {states}\ntransitions: {'  '.join(pairs)}"


class StoreMachine(RuleBasedStateMachine):
    """Makes the same calls to a store and the oracle, and demands the same answers."""

    opener: ClassVar[Opener]
    visits: ClassVar[Visits]
    runner: ClassVar[asyncio.Runner]

    def __init__(self) -> None:
        """Open both, empty, on one clock."""
        super().__init__()
        self._stack = AsyncExitStack()
        self.clock = DrivenClock()
        self.oracle: Store = OracleStore(self.clock)
        self.store: Store = self._run(self._stack.enter_async_context(type(self).opener(self.clock)))
        self.ids: list[UUID] = []
        self.claims: list[Claim] = []
        self.number = 0
        self.operation: Operation | None = None
        self.marks: dict[tuple[str | None, int | None], PruneMark] = {}

    def teardown(self) -> None:
        """Compare everything once more, check the invariants, and close."""
        try:
            self.both(lambda s: s.jobs.find(FindRequest(scope=ALL, limit=1000)))
            self._run(check(self.store, attempts_kept=None))
        finally:
            self._run(self._stack.aclose())

    def _run(self, awaitable: Awaitable[R]) -> R:
        async def wait() -> R:
            return await awaitable

        return self.runner.run(wait())

    def both(self, verb: Callable[[Store], Awaitable[R]]) -> R:
        """Call both and compare; an error must be the same error."""
        expected, actual = self._answer(self.oracle, verb), self._answer(self.store, verb)
        assert actual == expected, f"\nstore : {actual}\noracle: {expected}"
        return expected[0]

    def _answer(self, store: Store, verb: Callable[[Store], Awaitable[R]]) -> tuple[R, str]:
        try:
            return self._run(verb(store)), ""
        except (ValueError, LookupError) as error:
            return None, type(error).__name__  # type: ignore[return-value]
        except Exception as error:
            if type(error).__module__ != "fairlane.model.errors":
                raise
            return None, type(error).__name__  # type: ignore[return-value]

    def both_prune(self, scope: Scope, keep: Retention, limit: int) -> None:
        """Let both take a pass that goes on from the last with this scope and retention."""
        about = (scope.tenant, keep.newest_finished)
        mark = self.marks.get(about, NO_MARK)
        request = PruneRequest(scope=scope, retention=keep, limit=limit, mark=mark)
        self.marks[about] = self.both(lambda s: s.upkeep.prune(request)).mark

    # ── what is counted ───────────────────────────────────────────────────────

    def _snapshot(self) -> dict[UUID, JobRecord]:
        """Read every job of the oracle, for counting only."""
        ids = tuple(self.ids)
        return dict(self._run(self.oracle.jobs.get(GetRequest(scope=ALL, ids=ids))))

    def _count(
        self, before: dict[UUID, JobRecord], event_of: Callable[[JobRecord, JobRecord], Event]
    ) -> None:
        for id, after in self._snapshot().items():
            self.visits.states[after.state] += 1
            was = before.get(id)
            if was is None or (was.state, was.attempt) == (after.state, after.attempt):
                continue
            if was.state is State.DELAYED and after.state is State.RUNNING:
                self.visits.transitions[State.DELAYED, Event.DUE] += 1
                self.visits.transitions[State.READY, Event.CLAIM] += 1
            else:
                event = event_of(was, after)
                assert (was.state, event) in TRANSITIONS, f"{was.state} --{event}-> {after.state}"
                assert after.state in TRANSITIONS[was.state, event]
                self.visits.transitions[was.state, event] += 1

    def moving(
        self, verb: Callable[[Store], Awaitable[R]], event_of: Callable[[JobRecord, JobRecord], Event]
    ) -> R:
        """Call both and count the transitions."""
        before = self._snapshot()
        answer = self.both(verb)
        self._count(before, event_of)
        return answer

    # ── rules: the ground ─────────────────────────────────────────────────────

    @initialize(seed=seeds)
    def declare(self, seed: int) -> None:
        """Declare the same policies in both, and enqueue some jobs."""
        rules: dict[Subject, Rules] = {
            Subject(SubjectKind.QUEUE, "mail"): QueueRules(),
            Subject(SubjectKind.QUEUE, "bulk"): QueueRules(
                cost="seconds", limits=Limits(waiting=6, on_full="reject")
            ),
            Subject(SubjectKind.TASK, "shoot"): TaskRules(gate="screens"),
            GATE: GateRules(limit=2),
            Subject(SubjectKind.TENANT, "globex"): TenantRules(weight=2.5),
        }
        self.both(lambda s: s.policies.put(PutRequest(scope=ALL, rules=rules)))
        for number in range(3):
            self.enqueue(seed + number, 6)
            self.work(seed + number)

    @rule(seconds=st.sampled_from((0.000001, 0.5, 1, 3, 13, 61, 3700)))
    def advance(self, seconds: float) -> None:
        """Let time pass for both."""
        self.clock.advance(seconds)

    # ── rules: jobs in ────────────────────────────────────────────────────────

    def _new(self, rng: random.Random) -> NewJob:
        self.number += 1
        key = rng.choice((None, None, None, None, "k1", "k2"))
        return NewJob(
            id=UUID(int=self.number),
            tenant=rng.choice(TENANTS),
            queue=rng.choice(QUEUES),
            task=rng.choice(TASKS),
            payload=b'{"v":1,"arguments":{"n":%d}}' % rng.choice((1, 2)),
            checksum=0,
            priority=rng.choice((0, 0, 0, 1, -1, 100)),
            delay=rng.choice((0, 0, 0, SECOND, 60 * SECOND)),
            expires_in=rng.choice((None, None, None, None, 2 * SECOND, 70 * SECOND)),
            idempotency_key=key,
            fingerprint=b"" if key is None else rng.choice((b"f1", b"f1", b"f2")),
            on_duplicate=rng.choice(("return", "replace_dead", "raise")),
            dedup_key=rng.choice((None, None, None, "d1")),
            dedup_until=rng.choice(("settled", "started")),
            correlation_id=rng.choice((None, None, "c1")),
            created_by=rng.choice((None, None, "ann")),
            max_attempts=rng.choice((1, 2, 2, 5, 5)),
            timeout=rng.choice((None, SECOND, 5 * SECOND)),
            stuck_after=rng.choice((None, None, 3 * SECOND)),
            on_stuck=rng.choice(("dead", "requeue")),
            at_most_once=rng.choice((False, False, False, True)),
            tags=rng.choice(((), ("x",))),
        )

    def _enqueue(self, request: EnqueueRequest) -> None:
        reply = self.both(lambda s: _enqueue_whole(s, request))
        if reply is None:
            return  # a tenant outside the scope: both raised
        for one in reply.enqueued:
            if one.is_created and one.job.id not in self.ids:
                self.ids.append(one.job.id)
                self.visits.transitions[None, Event.ENQUEUE] += 1

    @rule(seed=seeds, size=st.integers(1, 6))
    def enqueue(self, seed: int, size: int) -> None:
        """Enqueue a batch."""
        rng = random.Random(seed)
        jobs = tuple(self._new(rng) for _ in range(size))
        declared = rng.random() < 0.1
        self._enqueue(
            EnqueueRequest(scope=ALL, jobs=jobs, must_be_declared=declared, operation=self.operation)
        )

    @rule(seed=seeds)
    def enqueue_into_scope(self, seed: int) -> None:
        """Enqueue under one tenant's scope, which may be a foreign one, and repeat it as if unconfirmed."""
        jobs = (self._new(random.Random(seed)),)
        self._enqueue(EnqueueRequest(scope=Scope("acme"), jobs=jobs))
        self._enqueue(EnqueueRequest(scope=Scope("acme"), jobs=jobs, is_repeated=True))

    # ── rules: the life of a claim ────────────────────────────────────────────

    def _claim_request(self, rng: random.Random) -> ClaimRequest:
        queue_requests = [
            QueueRequest(rng.choice(QUEUES), rng.randint(1, 4)) for _ in range(rng.randint(1, 3))
        ]
        return ClaimRequest(
            scope=ALL,
            worker=rng.choice(WORKERS),
            lease=rng.choice((2, 12)) * SECOND,
            queue_requests=tuple(queue_requests),
            total=rng.randint(1, 6),
            headroom=rng.choice((0, 0, 0, 1, 2)),
            ahead=rng.choice((0, 0, 1, 2, 4)),
        )

    def _claimed(self, reply: ClaimReply) -> None:
        self.claims += reply.claims

    @rule(seed=seeds)
    def claim(self, seed: int) -> None:
        """Claim, as one worker or the other."""
        request = self._claim_request(random.Random(seed))

        def event_of(was: JobRecord, after: JobRecord) -> Event:
            if after.state is State.CANCELLED:
                return Event.EXPIRE
            return Event.CLAIM if after.state is State.RUNNING else Event.DUE

        self._claimed(self.moving(lambda s: _claim_whole(s, request), event_of))

    def _ending(self, rng: random.Random) -> AttemptResult:
        classes = (
            *(ErrorClass.RETRYABLE, ErrorClass.TRANSIENT) * 2,
            *(ErrorClass.CRASH, ErrorClass.NON_RETRYABLE, ErrorClass.STUCK),
        )
        failure = Failure(rng.choice(classes), "ValueError", "boom")
        endings: tuple[AttemptResult, ...] = (
            Succeeded(b'{"v":1,"result":1}'),
            Succeeded(),
            *(Failed(failure),) * 3,
            Failed(failure, 2 * SECOND),
            PermanentFailure(failure),
            Snoozed(5 * SECOND, "busy"),
            Cancelled("gone"),
            HandedBack(),
            HandedBack(is_unstarted=True),
            Unknown(),
        )
        return rng.choice(endings)

    @precondition(lambda self: self.claims)
    @rule(seed=seeds)
    def settle(self, seed: int) -> None:
        """Settle some claims, live or long lost, and perhaps claim at once."""
        rng = random.Random(seed)
        newest = self.claims[-6:]
        chosen = rng.sample(newest, k=min(len(newest), rng.randint(1, 4)))
        claims = list({claim.job.id: claim for claim in chosen}.values())
        backoff = Backoff.exponential(1, jitter=0)
        settlements = tuple(
            decide_settlement(
                claim,
                self._ending(rng),
                backoff,
                draw=0.5,
                metadata=rng.choice((None, None, *METADATA)),
                spent=rng.choice((0, 2, 9)),
            )
            for claim in claims
        )
        worker = rng.choice((*(str(claims[0].job.worker),) * 4, *WORKERS))
        kept = rng.choice((ATTEMPTS_KEPT, 2))
        request = SettleRequest(
            scope=rng.choice(SCOPES), worker=worker, settlements=settlements, attempts_kept=kept
        )
        asked = {one.id: one.event for one in settlements}

        def event_of(_: JobRecord, after: JobRecord) -> Event:
            event = asked[after.id]
            if event is Event.RETRY and after.state is State.DEAD:
                return Event.EXHAUST
            return Event.OBEY_CANCEL if after.state is State.CANCELLED else event

        self.moving(lambda s: s.claims.settle(request), event_of)
        if rng.random() < 0.7:
            self.claims = [claim for claim in self.claims if claim not in claims]
        if rng.random() < 0.3:
            both = SettleRequest(scope=ALL, worker=worker, settlements=(), claim=self._claim_request(rng))
            claimed = self.both(lambda s: s.claims.settle(both)).claimed
            assert claimed is not None
            self._claimed(claimed)

    @rule(seed=seeds)
    def work(self, seed: int) -> None:
        """Claim and settle for a while, as workers mostly do."""
        rng = random.Random(seed)
        steps = (
            *("enqueue", "claim", "claim", "settle", "settle", "lose", "pass"),
            *("cancel", "condemn", "run_now", "expire", "promote"),
        )
        for _ in range(15):
            self._work_step(rng.choice(steps), rng)

    def _work_step(self, step: str, rng: random.Random) -> None:
        number = rng.getrandbits(16)
        match step:
            case "enqueue":
                self.enqueue(number, rng.randint(1, 4))
            case "claim":
                self.claim(number)
            case "settle" if self.claims:
                self.settle(number)
            case "cancel" if self.claims:
                self._cancel((rng.choice(self.claims).job.id,), ALL)
            case "condemn" | "run_now" if self.ids:
                self.condemn_or_run_now([number], ALL, step)
            case "expire" | "promote":
                self.clock.advance(2)
                getattr(self, step)(ALL, 1000)
            case "lose":
                self.clock.advance(2.5)
                self.reclaim(ALL, 500)
            case _:
                self.clock.advance(rng.choice((0.000001, 1, 2)))

    @precondition(lambda self: self.claims)
    @rule(picked=picks, worker=st.sampled_from(WORKERS), scope=mostly_all, done=st.sampled_from((None, 0.5)))
    def renew(self, picked: list[int], worker: str, scope: Scope, done: float | None) -> None:
        """Renew some claims, live or long lost."""
        claims = [self.claims[n % len(self.claims)] for n in picked]
        progress = None if done is None else Progress(done, "half")
        metadata = METADATA[picked[0] % 2] if picked[0] % 3 else None
        spent = picked[0] % 5
        renewals = tuple(Renewal(claim.job.id, claim.fence, progress, metadata, spent) for claim in claims)
        request = RenewRequest(scope=scope, worker=worker, lease=12 * SECOND, renewals=renewals)
        self.both(lambda s: s.claims.renew(request))
        self.both(lambda s: s.claims.cancel_asked(WorkerRequest(scope=scope, worker=worker)))

    @rule(scope=mostly_all, limit=st.sampled_from((1, 500)))
    def reclaim(self, scope: Scope, limit: int) -> None:
        """Take back lost claims."""
        request = ReclaimRequest(scope=scope, limit=limit, attempts_kept=limit % 9 + 1)
        self.moving(lambda s: s.claims.reclaim(request), lambda *_: Event.LOSE)

    @rule(scope=mostly_all, limit=st.sampled_from((1, 500)), seconds=st.sampled_from((0, 1, 20)))
    def take_stuck(self, scope: Scope, limit: int, seconds: int) -> None:
        """Take back stuck claims; of some it is not known how old they are."""
        request = StuckRequest(scope=scope, limit=limit, started_after=self.clock.now() - seconds * SECOND)
        self.moving(lambda s: s.claims.take_stuck(request), _stuck_event)

    @precondition(lambda self: self.ids)
    @rule(picked=picks, scope=mostly_all, how=st.sampled_from(("retry", "dead", "return")))
    def revoke(self, picked: list[int], scope: Scope, how: RevokeHow) -> None:
        """End the claims of some jobs, in any state, as an operator does."""
        request = RevokeRequest(scope=scope, ids=self._ids(picked), how=how, delay=2 * SECOND, reason="no")
        self.moving(lambda s: s.claims.revoke(request), _revoke_event)

    @rule(scope=mostly_all, limit=st.sampled_from((1, 1000)))
    def promote(self, scope: Scope, limit: int) -> None:
        """Make due jobs ready."""
        self.moving(lambda s: s.claims.promote(PassRequest(scope=scope, limit=limit)), lambda *_: Event.DUE)

    @rule(scope=mostly_all, limit=st.sampled_from((1, 1000)))
    def expire(self, scope: Scope, limit: int) -> None:
        """Cancel what is past its time."""
        self.moving(lambda s: s.claims.expire(PassRequest(scope=scope, limit=limit)), lambda *_: Event.EXPIRE)

    # ── rules: steering jobs ──────────────────────────────────────────────────

    def _ids(self, picked: list[int]) -> tuple[UUID, ...]:
        return tuple(dict.fromkeys(self.ids[n % len(self.ids)] for n in picked))

    @precondition(lambda self: self.ids)
    @rule(picked=picks, scope=mostly_all)
    def cancel(self, picked: list[int], scope: Scope) -> None:
        """Cancel some jobs in any state."""
        self._cancel(self._ids(picked), scope)

    def _cancel(self, ids: tuple[UUID, ...], scope: Scope) -> None:
        request = StopRequest(scope=scope, ids=ids, reason="enough", who="ops", operation=self.operation)
        before = self._snapshot()
        replies = self.moving(lambda s: s.jobs.cancel(request), lambda *_: Event.CANCEL)
        asked = [id for id, reply in replies.items() if reply == "requested"]
        self.visits.transitions[State.RUNNING, Event.ASK_CANCEL] += sum(
            before[id].state is State.RUNNING for id in asked
        )

    @precondition(lambda self: self.ids)
    @rule(picked=picks, scope=mostly_all, verb=st.sampled_from(("condemn", "run_now")))
    def condemn_or_run_now(self, picked: list[int], scope: Scope, verb: str) -> None:
        """Condemn some jobs, or make them due."""
        ids = self._ids(picked)
        if verb == "condemn":
            stop = StopRequest(scope=scope, ids=ids, reason="no", who="ops", operation=self.operation)
            self.moving(lambda s: s.jobs.condemn(stop), lambda *_: Event.CONDEMN)
        else:
            now = RunNowRequest(scope=scope, ids=ids, operation=self.operation)
            self.moving(lambda s: s.jobs.run_now(now), lambda *_: Event.RUN_NOW)

    @precondition(lambda self: self.ids)
    @rule(
        picked=picks,
        scope=mostly_all,
        values=st.fixed_dictionaries(
            {},
            optional={
                "priority": st.sampled_from((-5, 0, 50)),
                "tags": st.just(("y", "z")),
                "expires_at": st.sampled_from((None, 1_800_000_100 * SECOND)),
                "payload": st.just(b'{"v":1,"arguments":{"n":9}}'),
            },
        ),
        later=st.sampled_from((None, None, -5, 30)),
    )
    def edit(self, picked: list[int], scope: Scope, values: dict[str, Any], later: int | None) -> None:
        """Edit a job in any state."""
        if later is not None:
            values = {**values, "run_at": self.clock.now() + later * SECOND}
        id, operation = self._ids(picked)[0], self.operation
        request = EditRequest(scope=scope, id=id, operation=operation, **values)
        self.moving(lambda s: s.jobs.edit(request), lambda *_: Event.DUE)

    # ── rules: policies ───────────────────────────────────────────────────────

    @rule(
        subject=st.sampled_from(SUBJECTS),
        verb=st.sampled_from(("pause", "resume", "resume", "close", "reopen")),
        until=maybe_until,
    )
    def hold(self, subject: Subject, verb: str, until: int | None) -> None:
        """Pause, resume, close or open something."""
        end = None if until is None else self.clock.now() + until
        hold = HoldRequest(
            scope=ALL, subject=subject, who="ops", reason="why not", until=end, operation=self.operation
        )
        plain = SubjectRequest(scope=ALL, subject=subject, who="ops", operation=self.operation)
        verbs: dict[str, Callable[[Store], Awaitable[Any]]] = {
            "pause": lambda s: s.policies.pause(hold),
            "resume": lambda s: s.policies.resume(plain),
            "close": lambda s: s.policies.close(hold),
            "reopen": lambda s: s.policies.reopen(plain),
        }
        self.both(verbs[verb])

    @rule(
        subject=st.sampled_from((*SUBJECTS, GATE)),
        change=st.sampled_from(
            (
                PolicyChange(limits=Limits(running=1)),
                PolicyChange(limits=Limits(waiting=2, on_full="warn")),
                PolicyChange(limits=Limits(rate=Rate(1, "second", burst=2))),
                PolicyChange(queue_limits={"mail": Limits(running=2)}),
                PolicyChange(queue_limits={"*": Limits(rate=Rate(30, "minute"))}),
                PolicyChange(weight=4.0),
                PolicyChange(weight=5000.0),
                PolicyChange(rate=Rate(2, "second")),
                PolicyChange(rate=None),
                PolicyChange(limit=1),
                PolicyChange(limit=0),
                PolicyChange(max_waiting=5),
            )
        ),
        until=maybe_until,
    )
    def override(self, subject: Subject, change: PolicyChange, until: int | None) -> None:
        """Set an override; many do not fit and must be refused by both."""
        end = None if until is None else self.clock.now() + until
        request = OverrideRequest(
            scope=ALL, subject=subject, change=change, who="ops", until=end, operation=self.operation
        )
        self.both(lambda s: s.policies.override(request))

    @rule(subject=st.sampled_from((*SUBJECTS, GATE)), scope=mostly_all)
    def reset(self, subject: Subject, scope: Scope) -> None:
        """Remove an override, perhaps under a scope that may not."""
        request = SubjectRequest(scope=scope, subject=subject, who="ops", operation=self.operation)
        self.both(lambda s: s.policies.reset(request))
        self.both(lambda s: s.policies.read(ReadRequest(scope=scope, subjects=(subject,))))
        self.both(lambda s: s.policies.list(ListRequest(scope=scope, kind=subject.kind)))

    # ── rules: reading ────────────────────────────────────────────────────────

    @rule(
        scope=mostly_all,
        filters=st.fixed_dictionaries(
            {"limit": st.sampled_from((1, 3, 50))},
            optional={
                "states": st.sampled_from(
                    (frozenset({State.READY}), frozenset({State.DEAD, State.CANCELLED}))
                ),
                "queue": st.sampled_from(QUEUES),
                "task": st.sampled_from(TASKS),
                "correlation_id": st.just("c1"),
                "created_by": st.just("ann"),
                "tag": st.just("x"),
                "where": st.just((("n", 1),)),
                "metadata": st.just((("n", 1),)),
            },
        ),
    )
    def find(self, scope: Scope, filters: dict[str, Any]) -> None:
        """Page through what matches some filters."""
        self.both(lambda s: _find_whole(s, FindRequest(scope=scope, **filters)))
        plain = {key: value for key, value in filters.items() if key not in {"limit", "where", "metadata"}}
        self.both(lambda s: _tallies(s, TallyRequest(scope=scope, **plain)))

    @rule(scope=mostly_all, queue=st.sampled_from(QUEUES))
    def peek(self, scope: Scope, queue: str) -> None:
        """Look at the next jobs; the oracle's own claims follow in other rules."""
        self.both(lambda s: s.jobs.peek(PeekRequest(scope=scope, queue=queue, limit=5)))
        self.both(lambda s: s.jobs.first_in_line(FirstRequest(scope=scope, lines=LINES)))
        self.both(lambda s: s.jobs.count(CountRequest(scope=scope, queue=queue)))
        self.both(lambda s: _count_whole(s, CountRequest(scope=scope, limit=2)))
        self.both(lambda s: s.dead.count(DeadCountRequest(scope=scope, limit=2)))
        self.both(lambda s: s.upkeep.census(CensusRequest(scope=scope, limit=3)))

    @precondition(lambda self: self.ids)
    @rule(picked=picks, scope=mostly_all)
    def explain(self, picked: list[int], scope: Scope) -> None:
        """Ask why a job waits, and read dead letters."""
        for id in self._ids(picked):
            self.both(lambda s, i=id: s.jobs.explain(ExplainRequest(scope=scope, id=i)))  # type: ignore[misc]
        self.both(lambda s: s.dead.find(DeadRequest(scope=scope, limit=2)))

    # ── rules: upkeep and registry ────────────────────────────────────────────

    @rule(
        scope=mostly_all,
        limit=st.sampled_from((1, 1000)),
        passes=st.sampled_from((1, 2, 100)),
        verb=st.sampled_from(("prune", "prune", "prune", "purge", "forget")),
    )
    def tidy(self, scope: Scope, limit: int, passes: int, verb: str) -> None:
        """Prune what is old, or rarely purge or forget."""
        if verb == "prune":
            self.both_prune(scope, RETENTIONS[passes], limit)
        elif verb == "purge":
            request = PurgeRequest(scope=scope, queue="bulk", reason="spring", who="ops", limit=limit)
            self.moving(lambda s: _pass_to(s.upkeep.purge, request, passes), lambda *_: Event.CANCEL)
        else:
            forget = ForgetRequest(scope=scope, reason="asked to", who="ops", limit=limit)
            self.moving(lambda s: _pass_to(s.upkeep.forget, forget, passes), lambda *_: Event.CANCEL)

    @rule(worker=st.sampled_from(WORKERS), verb=st.sampled_from(("register", "heartbeat", "lead", "clean")))
    def registry(self, worker: str, verb: str) -> None:
        """Register workers, send heartbeats, ask for the lead, remove workers."""
        record = WorkerRecord(id=worker, host="h", pid=1, version="1", queues=("mail",), slots=4)
        verbs: dict[str, Callable[[Store], Awaitable[Any]]] = {
            "register": lambda s: s.registry.register(
                RegisterRequest(scope=ALL, record=record, renew_every=4 * SECOND)
            ),
            "heartbeat": lambda s: s.registry.heartbeat(
                HeartbeatRequest(scope=ALL, worker=worker, state="idle", renew_every=4 * SECOND)
            ),
            "lead": lambda s: s.registry.lead(
                LeadRequest(
                    scope=ALL,
                    name="duties",
                    worker=worker,
                    lease=10 * SECOND,
                    reports=DutyReports(len(self.ids)) if len(self.ids) % 2 else None,
                )
            ),
            "clean": lambda s: s.registry.clean(ForgetWorkersRequest(scope=ALL, silent_for=60 * SECOND)),
        }
        self.both(verbs[verb])
        self.both(lambda s: s.registry.workers(WorkersRequest(scope=ALL)))
        self.both(lambda s: s.registry.status(Request(scope=ALL)))
        self.both(lambda s: s.registry.duties(DutiesRequest(scope=ALL, name="duties")))

    @rule(
        worker=st.sampled_from(WORKERS),
        number=st.integers(1, 12),
        verb=st.sampled_from(("ask", "ask", "ask", "answer", "clean")),
    )
    def mailbox(self, worker: str, number: int, verb: str) -> None:
        """Ask workers something, answer, clean."""
        id = UUID(int=number)
        verbs: dict[str, Callable[[Store], Awaitable[Any]]] = {
            "ask": lambda s: s.mailbox.ask(
                AskRequest(
                    scope=ALL,
                    id=id,
                    worker=worker,
                    kind="status",
                    valid_for=60 * SECOND,
                    operation=self.operation,
                )
            ),
            "answer": lambda s: s.mailbox.answer(AnswerRequest(scope=ALL, id=id, worker=worker, text=b"x")),
            "clean": lambda s: s.mailbox.clean(Request(scope=ALL)),
        }
        self.both(verbs[verb])
        self.both(lambda s: s.mailbox.unanswered(UnansweredRequest(scope=ALL, worker=worker)))
        self.both(lambda s: s.mailbox.read(ReadAnswerRequest(scope=ALL, id=id)))

    # ── after every step ──────────────────────────────────────────────────────

    @invariant()
    def counts_agree(self) -> None:
        """The counts are the same after every step."""
        self.both(lambda s: s.jobs.count(CountRequest(scope=ALL)))


async def _find_whole(store: Store, request: FindRequest) -> tuple[JobRecord, ...]:
    """Page to the end. Stores may cut pages differently: an index may know that nothing follows."""
    reply = await store.jobs.find(request)
    jobs = reply.jobs
    while reply.cursor is not None:
        reply = await store.jobs.find(msgspec.structs.replace(request, cursor=reply.cursor))
        jobs += reply.jobs
    return jobs


async def _tallies(store: Store, request: TallyRequest) -> tuple[JobTally, ...]:
    """Count what matches. Stores may read different numbers of jobs; one page holds all of these."""
    return (await store.jobs.tally(request)).tallies


async def _pass_to(verb: Callable[[Any], Awaitable[Any]], request: Any, passes: int) -> list[Any]:
    """Make up to this many passes, each from the last cursor; leave out those that did nothing.

    Stores may have different cursors, and a last pass that finds nothing.
    """
    replies = []
    for _ in range(passes):
        reply = await verb(request)
        replies.append(msgspec.structs.replace(reply, cursor=None))
        request = msgspec.structs.replace(request, cursor=reply.cursor)
        if reply.cursor is None:
            break
    return [one for one in replies if getattr(one, "cancelled", 0) or getattr(one, "erased", 0)]


async def _count_whole(store: Store, request: CountRequest) -> tuple[Count, ...]:
    """Count to the end, in pages."""
    page = await store.jobs.count(request)
    counts = page.counts
    while page.cursor is not None:
        page = await store.jobs.count(msgspec.structs.replace(request, cursor=page.cursor))
        counts += page.counts
    return counts


async def _claim_whole(store: Store, request: ClaimRequest) -> ClaimReply:
    """Claim until the reply is not partial."""
    reply = await store.claims.claim(request)
    claims = reply.claims
    while reply.is_partial and len(claims) < request.total:
        rest = msgspec.structs.replace(request, total=request.total - len(claims))
        reply = await store.claims.claim(rest)
        claims += reply.claims
    return msgspec.structs.replace(reply, claims=claims, is_partial=False)
