"""When a breaker opens: the window, tenants, what handlers ask (S58, S110, S112)."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from fairlane.model.errors import TenantMismatch
from fairlane.model.guards.breaker import Outcomes
from fairlane.model.instants import SECOND
from fairlane.model.policy.overrides import BreakerRules
from fairlane.model.scope import Scope
from fairlane.store.contract.breakers import (
    MAX_BREAKER_OUTCOMES,
    BreakerOutcomes,
    ReportRequest,
)
from tests.contract.breakers.scene import (
    OPEN_FOR,
    claim_with_permits,
    end,
    enter,
    guard,
    phase_of,
    report,
    state_of,
    trip,
    until,
)
from tests.contract.world import ALL, World

UNKNOWN = UUID(int=5)


# ── when it opens ────────────────────────────────────────────────────────────


async def test_the_fifth_failure_opens_it(world: World) -> None:
    """S58: whoever saw them, one at a time or together; successes between them do not matter."""
    await guard(world)
    for _ in range(2):
        await report(world, failed=2, succeeded=3)
    assert await phase_of(world) == "closed"
    await report(world, failed=1)
    assert await phase_of(world) == "open"
    state = await state_of(world)
    assert (state.open_until, state.opened_at, state.last_failure_at) == (
        until(world),
        world.now,
        world.now,
    )
    assert (state.failed, state.succeeded, state.trips) == (5, 6, 1)


async def test_concurrent_reports_are_all_counted(world: World) -> None:
    """S58: ten workers at once, each with a failure and a success."""
    await guard(world, rules=BreakerRules(failures=10))
    await asyncio.gather(*(report(world, f"t{n}", failed=1, succeeded=1) for n in range(10)))
    state = await state_of(world)
    assert (state.failed, state.succeeded, state.trips) == (10, 10, 1)
    assert await phase_of(world) == "open"


async def test_the_window_slides(world: World) -> None:
    """S58: a failure counts for the whole window and not a moment longer."""
    await guard(world)
    await report(world, failed=4)
    world.advance(OPEN_FOR)
    await report(world, failed=1)
    assert await phase_of(world) == "closed"
    await report(world, failed=3)
    world.advance(OPEN_FOR - 0.000001)
    await report(world, failed=1)
    assert await phase_of(world) == "open"


@pytest.mark.parametrize("rules", [BreakerRules(failures=3, window=30 * SECOND, open_for=30 * SECOND)])
async def test_its_rules_say_how_many_and_for_how_long(world: World, rules: BreakerRules) -> None:
    """S58: three in thirty seconds, for thirty seconds."""
    await guard(world, rules=rules)
    await world.enqueue_many(1, task="send")
    await report(world, failed=3)
    assert await phase_of(world) == "open"
    world.advance(29.999999)
    assert await world.claim(1) == []
    world.advance(0.000001)
    assert len(await world.claim(1)) == 1


async def test_a_breaker_without_rules_has_the_defaults(world: World) -> None:
    """S58: five in a minute, for a minute."""
    await report(world, failed=4)
    assert await phase_of(world) == "closed"
    await report(world, failed=1)
    assert (await state_of(world)).open_until == until(world)


# ── of whom ──────────────────────────────────────────────────────────────────


async def test_one_tenant_among_several_does_not_open_it_for_all(world: World) -> None:
    """S112: its credentials are bad, and others use it: nobody else is stopped."""
    await guard(world)
    await report(world, "globex", succeeded=1)
    await report(world, "acme", failed=50)
    assert await phase_of(world) == "closed"
    await report(world, "globex", failed=1)
    assert await phase_of(world) == "open"


async def test_one_tenant_alone_opens_it(world: World) -> None:
    """S112: where nobody else has used it within the window, there is nobody to say otherwise."""
    await guard(world)
    await report(world, "globex", succeeded=1)
    world.advance(OPEN_FOR)
    await report(world, "acme", failed=5)
    assert await phase_of(world) == "open"


async def test_each_tenant_has_its_own(world: World) -> None:
    """S112: with `per="tenant"` failures of one count for it alone."""
    await guard(world, rules=BreakerRules(per="tenant"))
    await report(world, "acme", failed=4)
    await report(world, "globex", failed=4)
    assert {await phase_of(world, tenant) for tenant in ("acme", "globex")} == {"closed"}
    await report(world, "acme", failed=1)
    assert [await phase_of(world, tenant) for tenant in ("acme", "globex")] == ["open", "closed"]


async def test_one_that_is_open_when_the_rules_change_heals_by_its_own_probe(world: World) -> None:
    """S112, S54: from all to each tenant: the old one lets one pass, and closes."""
    await guard(world, rules=BreakerRules(ramp=1))
    await world.enqueue_many(2, task="send")
    await trip(world)
    await guard(world, rules=BreakerRules(ramp=1, per="tenant"))
    world.advance(OPEN_FOR)
    claims, permits = await claim_with_permits(world, 9)
    assert len(claims) == len(permits) == 1
    await end(world, claims[0])
    assert len(await world.claim(9)) == 1


# ── who reports ──────────────────────────────────────────────────────────────


async def test_a_tenant_reports_for_itself_alone(world: World) -> None:
    """S9, S58: and hears of no other; nothing is counted."""
    await guard(world)
    reply = await report(world, "acme", failed=1, scope=Scope("acme"))
    assert {one.key.tenant for one in reply.breakers} == {"", "acme"}
    with pytest.raises(TenantMismatch):
        await report(world, "globex", failed=5, scope=Scope("acme"))
    with pytest.raises(TenantMismatch):
        await enter(world, None, "globex", scope=Scope("acme"))
    assert (await state_of(world)).failed == 1


async def test_a_report_says_what_the_breaker_is_now(world: World) -> None:
    """S58: so whoever has seen the fifth failure knows at once."""
    await guard(world)
    (everybody, own) = (await report(world, failed=5)).breakers
    assert (everybody.key.tenant, own.key.tenant) == ("", "acme")
    assert everybody.state.open_until == until(world)
    assert own.state.slots is None


async def test_too_many_outcomes_are_refused(world: World) -> None:
    """S58: nothing is counted."""
    one = BreakerOutcomes("mail", Outcomes("acme", failed=1))
    with pytest.raises(ValueError, match="at most 1000 outcomes"):
        await world.store.breakers.report(
            ReportRequest(scope=ALL, reports=(one,) * (MAX_BREAKER_OUTCOMES + 1))
        )
    assert (await state_of(world)).failed == 0


async def test_it_tells_when_it_opens_and_when_it_closes(world: World) -> None:
    """S76, S58: once each, however often it opens again before it closes."""
    await guard(world, rules=BreakerRules(ramp=1))
    await world.enqueue_many(3, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    await end(world, await world.claim_one(), passed=False)
    world.advance(OPEN_FOR)
    await end(world, await world.claim_one())
    entries = await world.appended("events")
    assert [(one.kind, one.tenant, one.subject) for one in entries] == [
        ("breaker_opened", None, "breaker mail"),
        ("breaker_closed", None, "breaker mail"),
    ]


# ── what handlers ask ────────────────────────────────────────────────────────


async def test_everybody_enters_a_closed_one(world: World) -> None:
    """S110: whether or not it is a job."""
    await guard(world)
    for job in (None, UNKNOWN):
        reply = await enter(world, job)
        assert (reply.is_allowed, reply.is_closed) == (True, True)


async def test_nobody_enters_an_open_one(world: World) -> None:
    """S110: not even a job that runs; the reply says until when."""
    await guard(world)
    await world.enqueue_many(1, task="plain")
    running = await world.claim_one()
    await trip(world)
    for job in (None, running.job.id):
        reply = await enter(world, job)
        assert (reply.is_allowed, reply.until) == (False, until(world))


async def test_one_running_job_enters_a_half_open_one(world: World) -> None:
    """S110: the others not, nor what is no running job; its success lets two in."""
    await guard(world)
    await world.enqueue_many(4, task="plain")
    first, second, third = await world.claim(3)
    await trip(world)
    world.advance(OPEN_FOR)
    for job in (None, UNKNOWN):
        assert not (await enter(world, job)).is_allowed
    reply = await enter(world, first.job.id)
    assert (reply.is_allowed, reply.is_closed) == (True, False)
    assert (await enter(world, first.job.id)).is_allowed
    assert not (await enter(world, second.job.id)).is_allowed
    await report(world, succeeded=1, permit=first.job.id)
    assert (await enter(world, second.job.id)).is_allowed
    assert (await enter(world, third.job.id)).is_allowed
    assert not (await enter(world, first.job.id)).is_allowed


async def test_many_at_once_enter_one_at_a_time(world: World) -> None:
    """S110: eight running jobs ask in the same moment; one may pass, and no claim beside it."""
    await guard(world)
    await world.enqueue_many(8, task="plain")
    claims = await world.claim(8)
    await world.enqueue_many(3, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    replies = await asyncio.gather(*(enter(world, claim.job.id) for claim in claims))
    assert sum(reply.is_allowed for reply in replies) == 1
    assert await world.claim(9) == []


async def test_a_claim_that_passed_is_inside_already(world: World) -> None:
    """S110: its handler asks for the same breaker and needs no second permit."""
    await guard(world)
    await world.enqueue_many(2, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    probe = await world.claim_one()
    assert (await enter(world, probe.job.id)).is_allowed
    assert (await state_of(world)).permits == (probe.job.id,)
