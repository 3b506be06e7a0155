"""One call of every verb of the contract, to be made under any scope (S9). Asserts nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.access import Role
from fairlane.model.access_records import UserRecord
from fairlane.model.errors import InsideTenant, TenantMismatch, Unsupported
from fairlane.model.finished_job import FinishedJob
from fairlane.model.guards.breaker import Outcomes
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.journal.entries import Entry, NewEntry, PendingEntry
from fairlane.model.lifecycle.record_changes import new_record, stopped
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import (
    GateRules,
    PolicyChange,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract import (
    access,
    breakers,
    claims,
    dead,
    history,
    jobs,
    journal,
    mailbox,
    policies,
    registry,
    upkeep,
)
from fairlane.store.contract.budgets import BudgetRepairReply, BudgetRepairRequest
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.repair import RepairReply, RepairRequest
from fairlane.store.contract.request import Request
from tests.contract.world import CANCELLED, LEASE, SUCCEEDED, World, ruined


class Target(NamedTuple):
    """What the calls are about: ids and claims of this tenant."""

    ids: tuple[UUID, ...]
    claims: tuple[Claim, ...]


async def settle_down(world: World) -> Target:
    """Bring jobs of acme into every state, ready for every pass: due, expired, lease over, past retention."""
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(weight=2.0))
    await world.declare(SubjectKind.TASK, "gated", TaskRules(gate="door"))
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=5))
    ids = []
    for ending in (Succeeded(b"1"), ruined(), CANCELLED):
        await world.enqueue(idempotency_key=type(ending).__name__)
        ids.append((await world.run(ending)).id)
    await world.enqueue(queue="own")
    await world.rerun(await world.run(ruined(), "own"), queue="own")
    await world.run(SUCCEEDED, "own")
    await world.put_budget("purse", "spending", per_tenant=True)
    await world.enqueue(queue="own", task="spending")
    await world.settle(await world.claim_one("own"), spent=5)
    await world.number("events", 1)
    await world.enqueue_many(2, task="gated")
    running = await world.claim(2)
    await world.cancel(running[0].job.id)
    await world.enqueue(task="spending", stuck_after=SECOND)
    await world.claim_one(lease=600 * SECOND)  # stuck from then on
    waiting: tuple[dict[str, Any], ...] = (
        {},
        {"delay": SECOND, "dedup_key": "d"},
        {"delay": 99 * SECOND},
        {"expires_in": SECOND},
    )
    ids += [(await world.enqueue(**values)).id for values in waiting]
    world.advance(60)
    return Target((*ids, *(claim.job.id for claim in running)), tuple(running))


def unused(world: World, target: Target) -> Target:
    """Return the same target with ids that were never used."""
    ids = {id: world.new().id for id in target.ids}
    replace = msgspec.structs.replace
    strange = (replace(one, job=replace(one.job, id=ids[one.job.id])) for one in target.claims)
    return Target(tuple(ids.values()), tuple(strange))


async def needs(world: World, scope: Scope) -> tuple[tuple[str, ...], int | None]:
    """Return what an inspection says about jobs; the rest belongs to no tenant."""
    found = await world.store.upkeep.inspect(InspectRequest(scope=scope))
    return found.tasks, found.first_lease_until


def all_of(scope: Scope) -> claims.ClaimRequest:
    """Request everything claimable."""
    queue_requests = (claims.QueueRequest("default", 50),)
    return claims.ClaimRequest(scope=scope, worker="w2", lease=LEASE, queue_requests=queue_requests, total=50)


async def renewed(world: World, scope: Scope, target: Target) -> tuple[object, ...]:
    """Renew, and leave out the instant that every reply has."""
    renewals = tuple(claims.Renewal(one.job.id, one.fence) for one in target.claims)
    request = claims.RenewRequest(scope=scope, worker="w1", lease=LEASE, renewals=renewals)
    reply = await world.store.claims.renew(request)
    return reply.stale, reply.cancel_asked


def settling(
    world: World, scope: Scope, target: Target, claim: claims.ClaimRequest | None = None
) -> Awaitable[claims.SettleReply]:
    """Settle, optionally with a claim."""
    verdicts = tuple(world.verdict(claim) for claim in target.claims)
    request = claims.SettleRequest(scope=scope, worker="w1", settlements=verdicts, claim=claim)
    return world.store.claims.settle(request)


def rerunning(world: World, scope: Scope, target: Target) -> Awaitable[tuple[dead.ReprocessReply, ...]]:
    """Ask for a new job in place of each."""
    items = (dead.Reprocessing(id, 0, world.new(parent_id=id)) for id in target.ids)
    return world.reprocess(*items, scope=scope)


async def spenders(world: World, scope: Scope) -> tuple[object, ...]:
    """Return who has spent what; which periods there are belongs to no tenant."""
    return (await world.spend("purse", scope)).spent


async def pending(world: World, scope: Scope) -> tuple[PendingEntry, ...]:
    """Return what waits for a number; the end of a journal belongs to no tenant."""
    request = journal.PendingRequest(scope=scope, journal="events")
    return (await world.store.journal.pending(request)).entries


async def numbered(world: World, scope: Scope) -> tuple[Entry, ...]:
    """Return numbered entries, without the place where to continue."""
    request = journal.EntriesRequest(scope=scope, journal="events")
    return (await world.store.journal.entries(request)).entries


def telling(world: World, scope: Scope, subject: Subject) -> Awaitable[None]:
    """Append an entry of a tenant."""
    entries = (NewEntry(kind="told", tenant=subject.name),)
    return world.store.journal.append(journal.AppendRequest(scope=scope, journal="events", entries=entries))


def numbering(world: World, scope: Scope) -> Awaitable[bool]:
    """Change what the duty of a journal remembers."""
    request = journal.NumberRequest(
        scope=scope, journal="events", revision=1, taken=(), entries=(), memory=b"m"
    )
    return world.store.journal.number(request)


def trimming(world: World, scope: Scope) -> Awaitable[bool]:
    """Delete the one entry that has a number."""
    request = journal.TrimRequest(scope=scope, journal="events", revision=1, up_to=1, memory=b"")
    return world.store.journal.trim(request)


async def joining(world: World, scope: Scope, subject: Subject) -> None:
    """Enqueue in something that is no connection; every store checks the scope first."""
    request = jobs.EnqueueRequest(scope=scope, jobs=(world.new(subject.name),))
    with suppress(Unsupported):
        await world.store.jobs.enqueue_in(object(), request)


async def archiving(world: World, scope: Scope) -> int:
    """Let a pass move what has ended into a batch, and count it."""
    request = upkeep.PruneRequest(scope=scope, retention=AT_ONCE, is_archived=True)
    await world.store.upkeep.prune(request)
    return await world.store.history.waiting(Request(scope=scope))


async def taking_over(world: World, scope: Scope) -> object:
    """Ask for the next batch, of which there is one as soon as somebody may ask."""
    answer = await world.store.history.next_batch(history.BatchRequest(scope=scope))
    await archiving(world, Scope.all())
    return answer


async def finishing(world: World, scope: Scope) -> object:
    """Say that a batch is archived, of which there is one as soon as somebody may say so."""
    answer = await world.store.history.batch_done(history.BatchDoneRequest(scope=scope, number=1))
    await archiving(world, Scope.all())
    return answer


def restoring(world: World, scope: Scope, subject: Subject) -> Awaitable[tuple[UUID, ...]]:
    """Bring a finished job of a tenant back."""
    job = stopped(new_record(world.new(subject.name), world.now), State.CANCELLED, "asked", world.now)
    return world.store.history.restore(history.RestoreRequest(scope=scope, jobs=(FinishedJob(job),)))


Ask: TypeAlias = Callable[[World, Scope, Target], Awaitable[Any]]


async def each(target: Target, ask: Callable[[UUID], Awaitable[Any]]) -> list[Any]:
    """Call once per id."""
    return [await ask(id) for id in target.ids]


def held(target: Target) -> tuple[UUID, ...]:
    """Return the ids of the claimed jobs."""
    return tuple(claim.job.id for claim in target.claims)


ANN: Final = UserRecord(name="ann", role=Role.VIEWER, password_hash="1", created_by="root")
NEW_USER: Final = access.AccessChange(key=ANN.key, record=ANN)
NO_BOOKS: Final = upkeep.Census(homes={}, tenants=(), gates=(), idempotency_keys=0, dedup_keys=0)
AT_ONCE: Final = Retention(succeeded=0, cancelled=0, dead=0, results=0, keys=0)

PROBES: Final[dict[str, tuple[Ask, Callable[[Target], Any]]]] = {
    "jobs.get": (lambda w, s, t: w.store.jobs.get(jobs.GetRequest(scope=s, ids=t.ids)), lambda _: {}),
    "jobs.find": (
        lambda w, s, _: w.store.jobs.find(jobs.FindRequest(scope=s)),
        lambda _: jobs.FindReply((), None),
    ),
    "jobs.count": (
        lambda w, s, _: w.store.jobs.count(jobs.CountRequest(scope=s)),
        lambda _: jobs.CountPage((), None),
    ),
    "jobs.tally": (
        lambda w, s, _: w.store.jobs.tally(jobs.TallyRequest(scope=s)),
        lambda _: jobs.TallyPage((), 0, None),
    ),
    "budgets.accounts": (
        lambda w, s, _: w.accounts("purse", s),
        lambda _: {},
    ),
    "budgets.spend": (
        lambda w, s, _: spenders(w, s),
        lambda _: (),
    ),
    "budgets.repair": (
        lambda w, s, _: w.store.budgets.repair(BudgetRepairRequest(scope=s, budget="purse")),
        lambda _: BudgetRepairReply(0),
    ),
    "jobs.first_in_line": (
        lambda w, s, _: w.first_in_line(("acme", "default"), scope=s),
        lambda _: (),
    ),
    "jobs.peek": (lambda w, s, _: w.peek(50, scope=s), lambda _: ()),
    "jobs.explain": (
        lambda w, s, t: each(t, lambda id: w.store.jobs.explain(jobs.ExplainRequest(scope=s, id=id))),
        lambda t: [None for _ in t.ids],
    ),
    "jobs.edit": (
        lambda w, s, t: each(t, lambda id: w.edit(id, s, priority=9)),
        lambda t: [jobs.EditReply("not_found") for _ in t.ids],
    ),
    "jobs.cancel": (lambda w, s, t: w.cancel(*t.ids, scope=s), lambda _: {}),
    "jobs.condemn": (lambda w, s, t: w.condemn(*t.ids, scope=s), lambda _: ()),
    "jobs.run_now": (lambda w, s, t: w.run_now(*t.ids, scope=s), lambda _: ()),
    "claims.renew": (renewed, lambda t: (held(t), ())),
    "claims.settle": (settling, lambda t: claims.SettleReply(stale=held(t))),
    "claims.cancel_asked": (
        lambda w, s, _: w.store.claims.cancel_asked(claims.WorkerRequest(scope=s, worker="w1")),
        lambda _: (),
    ),
    "claims.revoke": (lambda w, s, t: w.revoke(*t.ids, how="dead", scope=s), lambda _: ()),
    "dead.get": (
        lambda w, s, t: each(t, lambda id: w.store.dead.get(dead.DeadGetRequest(scope=s, id=id))),
        lambda t: [None for _ in t.ids],
    ),
    "dead.find": (
        lambda w, s, _: w.store.dead.find(dead.DeadRequest(scope=s)),
        lambda _: dead.DeadPage((), None),
    ),
    "dead.count": (
        lambda w, s, _: w.store.dead.count(dead.DeadCountRequest(scope=s)),
        lambda _: dead.DeadCountPage((), None),
    ),
    "dead.tally": (
        lambda w, s, _: w.store.dead.tally(dead.DeadTallyRequest(scope=s)),
        lambda _: dead.DeadTallyPage((), 0, None),
    ),
    "dead.review": (
        lambda w, s, t: w.review("resolve", *t.ids, scope=s),
        lambda t: tuple(dead.ReviewReply(id, "not_found") for id in t.ids),
    ),
    "dead.reprocess": (
        rerunning,
        lambda t: tuple(dead.ReprocessReply(id, "not_found") for id in t.ids),
    ),
    "dead.delete": (lambda w, s, t: w.delete(*t.ids, scope=s), lambda _: ()),
    "journal.pending": (lambda w, s, _: pending(w, s), lambda _: ()),
    "journal.entries": (lambda w, s, _: numbered(w, s), lambda _: ()),
    "policies.list": (
        lambda w, s, _: w.store.policies.list(policies.ListRequest(scope=s, kind=SubjectKind.TENANT)),
        lambda _: (),
    ),
    "upkeep.prune": (lambda w, s, _: _prune(w, s), lambda _: upkeep.PruneReply()),
    "history.waiting": (lambda w, s, _: archiving(w, s), lambda _: 0),
    "upkeep.forget": (
        lambda w, s, _: w.store.upkeep.forget(upkeep.ForgetRequest(scope=s, reason="", who="ops")),
        lambda _: upkeep.ForgetReply(),
    ),
    "upkeep.purge": (lambda w, s, _: w.purge(s), lambda _: upkeep.PurgeReply()),
    "upkeep.inspect": (lambda w, s, _: needs(w, s), lambda _: ((), None)),
    "upkeep.census": (
        lambda w, s, _: w.store.upkeep.census(upkeep.CensusRequest(scope=s)),
        lambda _: NO_BOOKS,
    ),
    "upkeep.repair": (
        lambda w, s, _: w.store.upkeep.repair(RepairRequest(scope=s, queue="default", tenant="acme")),
        lambda _: RepairReply(0),
    ),
}
"""Each verb that reads or moves jobs: how it is asked, and what it answers where there is nothing."""

SERVING_ALL: Final[dict[str, Ask]] = {
    "claims.claim": lambda w, s, _: w.store.claims.claim(all_of(s)),
    "claims.settle": lambda w, s, t: settling(w, s, t, claim=all_of(s)),
    "claims.take_stuck": lambda w, s, _: w.store.claims.take_stuck(claims.StuckRequest(scope=s)),
    "claims.reclaim": lambda w, s, _: w.store.claims.reclaim(claims.ReclaimRequest(scope=s)),
    "claims.promote": lambda w, s, _: w.store.claims.promote(claims.PassRequest(scope=s)),
    "claims.expire": lambda w, s, _: w.store.claims.expire(claims.PassRequest(scope=s)),
    "dead.follow": lambda w, s, _: w.store.dead.follow(dead.FollowRequest(scope=s)),
    "history.next_batch": lambda w, s, _: taking_over(w, s),
    "history.batch_done": lambda w, s, _: finishing(w, s),
    "journal.number": lambda w, s, _: numbering(w, s),
    "journal.trim": lambda w, s, _: trimming(w, s),
}
"""Each verb that serves all tenants alike, and a settlement that asks for more."""

NAMING: Final[dict[str, Callable[[World, Scope, Subject], Awaitable[Any]]]] = {
    "jobs.enqueue": lambda w, s, subject: w.send(w.new(subject.name), scope=s),
    "jobs.enqueue_in": joining,
    "history.restore": restoring,
    "journal.append": telling,
    "policies.put": lambda w, s, subject: w.store.policies.put(
        policies.PutRequest(scope=s, rules={subject: TenantRules(weight=9.0)})
    ),
    "policies.override": lambda w, s, subject: w.store.policies.override(
        policies.OverrideRequest(scope=s, subject=subject, change=PolicyChange(weight=9.0), who="ops")
    ),
    "policies.reset": lambda w, s, subject: w.store.policies.reset(
        policies.SubjectRequest(scope=s, subject=subject)
    ),
    "policies.pause": lambda w, s, subject: w.store.policies.pause(
        policies.HoldRequest(scope=s, subject=subject, who="ops", reason="")
    ),
    "policies.resume": lambda w, s, subject: w.store.policies.resume(
        policies.SubjectRequest(scope=s, subject=subject)
    ),
    "policies.close": lambda w, s, subject: w.store.policies.close(
        policies.HoldRequest(scope=s, subject=subject, who="ops", reason="")
    ),
    "policies.reopen": lambda w, s, subject: w.store.policies.reopen(
        policies.SubjectRequest(scope=s, subject=subject)
    ),
    "policies.rates": lambda w, s, subject: w.store.policies.rates(
        policies.RatesRequest(scope=s, subjects=(subject,), queue="default")
    ),
    "policies.read": lambda w, s, subject: w.store.policies.read(
        policies.ReadRequest(scope=s, subjects=(subject,))
    ),
}
"""Each verb in which a caller names a tenant outright."""

ACCESS: Final[dict[str, Callable[[World, Scope], Awaitable[Any]]]] = {
    "access.write": lambda w, s: w.store.access.write(
        access.AccessWriteRequest(scope=s, changes=(NEW_USER,))
    ),
    "access.find": lambda w, s: w.store.access.find(access.AccessFindRequest(scope=s, keys=(NEW_USER.key,))),
    "access.list": lambda w, s: w.store.access.list(access.AccessListRequest(scope=s, kind="user")),
    "access.note_seen": lambda w, s: w.store.access.note_seen(
        access.SeenRequest(scope=s, keys=(NEW_USER.key,))
    ),
    "access.attempt": lambda w, s: w.store.access.attempt(
        access.AttemptRequest(scope=s, most={"ann": 1}, within=SECOND)
    ),
    "access.forgive": lambda w, s: w.store.access.forgive(access.ForgiveRequest(scope=s, labels=("ann",))),
    "access.clean": lambda w, s: w.store.access.clean(Request(scope=s)),
}
"""Each verb about who may sign in: it serves all tenants, and moves no job."""

CARD: Final = registry.WorkerRecord(id="w9", host="here", pid=9, version="1", queues=("default",), slots=1)


async def _prune(world: World, scope: Scope) -> upkeep.PruneReply:
    """Prune, and leave out how far the pass has come: that is an instant, and about no job."""
    reply = await world.store.upkeep.prune(upkeep.PruneRequest(scope=scope, retention=AT_ONCE))
    return msgspec.structs.replace(reply, mark=upkeep.PruneReply().mark)


async def _dedicate(world: World, scope: Scope) -> str:
    """Try to dedicate a store that is in use."""
    try:
        await world.store.upkeep.dedicate(upkeep.DedicateRequest(scope=scope, purpose="tests"))
    except ValueError as error:
        return str(error)
    return "dedicated"


async def _operate(world: World, scope: Scope) -> str:
    """Try to open a breaker, which belongs to all tenants."""
    key = breakers.BreakerKey("mail")
    try:
        await world.store.breakers.change(breakers.ChangeBreakerRequest(scope=scope, key=key, verb="reset"))
    except InsideTenant:
        return "refused"
    return "done"


async def _list_breakers(world: World, scope: Scope) -> str:
    """Try to list breakers, which belong to all tenants."""
    try:
        await world.store.breakers.list(breakers.BreakersRequest(scope=scope))
    except InsideTenant:
        return "refused"
    return "done"


async def _remove(world: World, scope: Scope) -> str:
    """Try to remove a queue, which belongs to all tenants."""
    request = policies.SubjectRequest(scope=scope, subject=Subject(SubjectKind.QUEUE, "own"))
    try:
        return str(await world.store.policies.remove(request))
    except TenantMismatch as error:
        return str(error)


HARMLESS: Final[dict[str, Callable[[World, Scope], Awaitable[Any]]]] = {
    "breakers.report": lambda w, s: w.store.breakers.report(
        breakers.ReportRequest(scope=s, reports=(breakers.BreakerOutcomes("mail", Outcomes("globex")),))
    ),
    "breakers.enter": lambda w, s: w.store.breakers.enter(
        breakers.EnterRequest(scope=s, name="mail", tenant="globex", job=w.new().id)
    ),
    "breakers.change": _operate,
    "breakers.list": _list_breakers,
    "registry.register": lambda w, s: w.store.registry.register(
        registry.RegisterRequest(scope=s, record=CARD, renew_every=SECOND)
    ),
    "registry.heartbeat": lambda w, s: w.store.registry.heartbeat(
        registry.HeartbeatRequest(scope=s, worker="w1", state="busy", renew_every=SECOND)
    ),
    "registry.leave": lambda w, s: w.store.registry.leave(registry.LeaveRequest(scope=s, worker="w1")),
    "registry.workers": lambda w, s: w.store.registry.workers(registry.WorkersRequest(scope=s)),
    "registry.tasks": lambda w, s: w.store.registry.tasks(registry.TasksRequest(scope=s)),
    "registry.clean": lambda w, s: w.store.registry.clean(
        registry.ForgetWorkersRequest(scope=s, silent_for=0)
    ),
    "registry.lead": lambda w, s: w.store.registry.lead(
        registry.LeadRequest(scope=s, name="duties", worker="w9", lease=SECOND)
    ),
    "registry.duties": lambda w, s: w.store.registry.duties(registry.DutiesRequest(scope=s, name="duties")),
    "registry.status": lambda w, s: w.store.registry.status(Request(scope=s)),
    "mailbox.ask": lambda w, s: w.store.mailbox.ask(
        mailbox.AskRequest(scope=s, id=UUID(int=9), worker="w1", kind="status", valid_for=SECOND)
    ),
    "mailbox.unanswered": lambda w, s: w.store.mailbox.unanswered(
        mailbox.UnansweredRequest(scope=s, worker="w1")
    ),
    "mailbox.answer": lambda w, s: w.store.mailbox.answer(
        mailbox.AnswerRequest(scope=s, id=UUID(int=9), worker="w1", text=b"fine")
    ),
    "mailbox.read": lambda w, s: w.store.mailbox.read(mailbox.ReadAnswerRequest(scope=s, id=UUID(int=9))),
    "mailbox.clean": lambda w, s: w.store.mailbox.clean(Request(scope=s)),
    "upkeep.gates": lambda w, s: w.store.upkeep.gates(Request(scope=s)),
    "upkeep.purpose": lambda w, s: w.store.upkeep.purpose(Request(scope=s)),
    "upkeep.dedicate": _dedicate,
    "policies.remove": _remove,
    "registry.wake": lambda w, s: w.store.registry.wake(registry.WakeRequest(scope=s, queues=("default",))),
    "registry.wait": lambda w, s: w.store.registry.wait(
        registry.WaitRequest(scope=s, worker="w9", queues=("default",), at_most=1_000)
    ),
    "upkeep.migrate": lambda w, _: w.store.upkeep.migrate(),
    "upkeep.plan": lambda w, _: w.store.upkeep.plan(),
}
"""Each verb about workers or about the store itself: nothing of what it deals with is a tenant's."""
