"""One call of every verb of the contract, to be made under any scope (S9). Asserts nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.errors import Unsupported
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
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
from fairlane.store.contract import claims, dead, jobs, policies, registry, upkeep
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.request import Request
from tests.contract.world import CANCELLED, LEASE, World, ruined


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
    await world.enqueue_many(2, task="gated")
    running = await world.claim(2)
    await world.cancel(running[0].job.id)
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


async def joining(world: World, scope: Scope, subject: Subject) -> None:
    """Enqueue in something that is no connection; every store checks the scope first."""
    request = jobs.EnqueueRequest(scope=scope, jobs=(world.new(subject.name),))
    with suppress(Unsupported):
        await world.store.jobs.enqueue_in(object(), request)


Ask: TypeAlias = Callable[[World, Scope, Target], Awaitable[Any]]


async def each(target: Target, ask: Callable[[UUID], Awaitable[Any]]) -> list[Any]:
    """Call once per id."""
    return [await ask(id) for id in target.ids]


def held(target: Target) -> tuple[UUID, ...]:
    """Return the ids of the claimed jobs."""
    return tuple(claim.job.id for claim in target.claims)


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
    "policies.list": (
        lambda w, s, _: w.store.policies.list(policies.ListRequest(scope=s, kind=SubjectKind.TENANT)),
        lambda _: (),
    ),
    "upkeep.prune": (
        lambda w, s, _: w.store.upkeep.prune(upkeep.PruneRequest(scope=s, retention=AT_ONCE)),
        lambda _: upkeep.PruneReply(),
    ),
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
}
"""Each verb that reads or moves jobs: how it is asked, and what it answers where there is nothing."""

SERVING_ALL: Final[dict[str, Ask]] = {
    "claims.claim": lambda w, s, _: w.store.claims.claim(all_of(s)),
    "claims.settle": lambda w, s, t: settling(w, s, t, claim=all_of(s)),
    "claims.reclaim": lambda w, s, _: w.store.claims.reclaim(claims.ReclaimRequest(scope=s)),
    "claims.promote": lambda w, s, _: w.store.claims.promote(claims.PassRequest(scope=s)),
    "claims.expire": lambda w, s, _: w.store.claims.expire(claims.PassRequest(scope=s)),
}
"""Each verb that serves all tenants alike, and a settlement that asks for more."""

NAMING: Final[dict[str, Callable[[World, Scope, Subject], Awaitable[Any]]]] = {
    "jobs.enqueue": lambda w, s, subject: w.send(w.new(subject.name), scope=s),
    "jobs.enqueue_in": joining,
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
    "policies.read": lambda w, s, subject: w.store.policies.read(
        policies.ReadRequest(scope=s, subjects=(subject,))
    ),
}
"""Each verb in which a caller names a tenant outright."""

CARD: Final = registry.WorkerRecord(id="w9", host="here", pid=9, version="1", queues=("default",), slots=1)


async def _dedicate(world: World, scope: Scope) -> str:
    """Try to dedicate a store that is in use."""
    try:
        await world.store.upkeep.dedicate(upkeep.DedicateRequest(scope=scope, purpose="tests"))
    except ValueError as error:
        return str(error)
    return "dedicated"


HARMLESS: Final[dict[str, Callable[[World, Scope], Awaitable[Any]]]] = {
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
    "registry.status": lambda w, s: w.store.registry.status(Request(scope=s)),
    "upkeep.gates": lambda w, s: w.store.upkeep.gates(Request(scope=s)),
    "upkeep.purpose": lambda w, s: w.store.upkeep.purpose(Request(scope=s)),
    "upkeep.dedicate": _dedicate,
    "registry.wake": lambda w, s: w.store.registry.wake(registry.WakeRequest(scope=s, queues=("default",))),
    "registry.wait": lambda w, s: w.store.registry.wait(
        registry.WaitRequest(scope=s, worker="w9", queues=("default",), at_most=1_000)
    ),
    "upkeep.migrate": lambda w, _: w.store.upkeep.migrate(),
    "upkeep.plan": lambda w, _: w.store.upkeep.plan(),
}
"""Each verb about workers or about the store itself: nothing of what it deals with is a tenant's."""
