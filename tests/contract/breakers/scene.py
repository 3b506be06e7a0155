"""Breakers of tests, and short helpers for long requests. Hides no reply."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fairlane.model.guards.breaker import CLOSED, BreakerState, Outcomes, Phase, phase
from fairlane.model.instants import MINUTE
from fairlane.model.job import Claim
from fairlane.model.policy.overrides import BreakerRules, Subject, SubjectKind, TaskRules
from fairlane.model.scope import Scope
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakerOutcomes,
    BreakersReply,
    BreakersRequest,
    BreakerVerb,
    ChangeBreakerRequest,
    EnterReply,
    EnterRequest,
    ReportRequest,
    StoredBreaker,
)
from tests.contract.world import ALL, World

OPEN_FOR = 60.0
"""Seconds; as long as the window."""


async def guard(
    world: World, *tasks: str, rules: BreakerRules | None = None, gate: str | None = None
) -> None:
    """Declare the breaker `mail`, of five failures within a minute, and tasks behind it."""
    of_tasks = {
        Subject(SubjectKind.TASK, task): TaskRules(breaker="mail", gate=gate) for task in tasks or ("send",)
    }
    await world.put({**of_tasks, Subject(SubjectKind.BREAKER, "mail"): rules or BreakerRules()})


async def report(
    world: World,
    tenant: str = "acme",
    *,
    failed: int = 0,
    succeeded: int = 0,
    permit: UUID | None = None,
    scope: Scope = ALL,
    name: str = "mail",
) -> BreakersReply:
    """Report outcomes of one tenant."""
    outcomes = Outcomes(tenant, succeeded, failed, permit)
    return await world.store.breakers.report(
        ReportRequest(scope=scope, reports=(BreakerOutcomes(name, outcomes),))
    )


async def trip(world: World, tenant: str = "acme") -> None:
    """Let the breaker open by failures of a tenant."""
    await report(world, tenant, failed=5)
    assert await phase_of(world, tenant) == "open"


async def state_of(world: World, tenant: str = "") -> BreakerState:
    """Return the state of the breaker `mail` for all tenants, or for one."""
    reply = await world.store.breakers.list(BreakersRequest(scope=ALL, name="mail"))
    return {one.key: one.state for one in reply.breakers}.get(BreakerKey("mail", tenant), CLOSED)


async def phase_of(world: World, tenant: str = "acme") -> Phase:
    """Return what the breaker is now: for all tenants, or if that is closed for this one."""
    everybody = phase(await state_of(world), world.now)
    return everybody if everybody != "closed" else phase(await state_of(world, tenant), world.now)


async def enter(world: World, job: UUID | None, tenant: str = "acme", scope: Scope = ALL) -> EnterReply:
    """Ask whether a job may pass."""
    return await world.store.breakers.enter(EnterRequest(scope=scope, name="mail", tenant=tenant, job=job))


async def operate(world: World, verb: BreakerVerb, tenant: str = "", **options: Any) -> StoredBreaker:
    """Set the breaker as an operator does."""
    request = ChangeBreakerRequest(scope=ALL, key=BreakerKey("mail", tenant), verb=verb, **options)
    return await world.store.breakers.change(request)


async def claim_with_permits(world: World, total: int = 1, **options: Any) -> tuple[list[Claim], list[UUID]]:
    """Claim, and return also which jobs have a permit."""
    reply = await world.claim_reply(total, **options)
    return list(reply.claims), list(reply.permits)


async def end(world: World, claim: Claim, *, passed: bool = True) -> None:
    """Report the outcome of a job with a permit, and settle it."""
    job = claim.job
    await report(world, job.tenant, succeeded=int(passed), failed=int(not passed), permit=job.id)
    await world.settle(claim)


def until(world: World) -> int:
    """Return when a breaker that opens now lets the first one pass."""
    return world.now + MINUTE
