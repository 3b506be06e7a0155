"""What operators set, see and leave in the audit (S58, S60, S111)."""

from __future__ import annotations

import pytest

from fairlane.model.errors import InsideTenant
from fairlane.model.instants import LAST_INSTANT, MINUTE
from fairlane.model.journal.operations import Operation
from fairlane.model.policy.overrides import BreakerRules, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.breakers import BreakerKey, BreakersRequest, ChangeBreakerRequest
from fairlane.store.contract.policies import HoldRequest
from tests.contract.breakers.scene import OPEN_FOR, guard, operate, phase_of, report, state_of, trip
from tests.contract.world import ALL, World

ANN = Operation(action="breakers.open", actor="ann", origin="cli", note="they asked us to")


async def test_forced_open_holds_everybody_until_its_end(world: World) -> None:
    """S111: then one passes, as after any opening."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    await operate(world, "open", who="ann", reason="maintenance", until=world.now + 10 * MINUTE)
    world.advance(599.999999)
    assert await world.claim(9) == []
    world.advance(0.000001)
    assert len(await world.claim(9)) == 1


async def test_forced_open_without_an_end_stays_so_until_it_is_reset(world: World) -> None:
    """S111: whatever is reported meanwhile."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    await operate(world, "open", who="ann", reason="maintenance")
    world.advance(10 * 86_400)
    await report(world, succeeded=50)
    assert await world.claim(9) == []
    state = await state_of(world)
    assert state.open_until == LAST_INSTANT
    assert state.forced is not None
    assert (state.forced.who, state.forced.reason, state.forced.until) == ("ann", "maintenance", None)
    await operate(world, "reset")
    assert len(await world.claim(9)) == 3


async def test_forced_closed_is_opened_by_no_failure(world: World) -> None:
    """S111: until its end; failures of before then count for nothing."""
    await guard(world)
    await trip(world)
    await operate(world, "close", who="ann", reason="it is us", until=world.now + MINUTE)
    world.advance(1)
    await report(world, failed=50)
    assert await phase_of(world) == "closed"
    world.advance(OPEN_FOR)
    await report(world, failed=1)
    assert await phase_of(world) == "closed"
    await report(world, failed=4)
    assert await phase_of(world) == "open"


async def test_a_reset_closes_it_with_nothing_counted(world: World) -> None:
    """S111: how often it has opened is kept."""
    await guard(world)
    await trip(world)
    after = (await operate(world, "reset")).state
    assert (after.slots, after.failed, after.succeeded, after.trips) == (None, 0, 0, 1)
    await report(world, failed=4)
    assert await phase_of(world) == "closed"


async def test_that_of_one_tenant_is_set_alone(world: World) -> None:
    """S112: the others pass."""
    await guard(world)
    await world.send(*(world.new(tenant, task="send") for tenant in ("acme", "globex")))
    await operate(world, "open", "acme", who="ann", reason="their server")
    assert [claim.job.tenant for claim in await world.claim(9)] == ["globex"]


async def test_what_is_set_is_in_the_audit_and_told(world: World) -> None:
    """S60, S76: by the same step, once."""
    await operate(world, "open", who="ann", reason="they asked us to", operation=ANN)
    (entry,) = await world.appended("audit")
    assert (entry.kind, entry.subject, entry.tenant) == ("breakers.open", "breaker mail", None)
    assert b'"after":{"reason":"they asked us to","state":"open","until":null}' in entry.body
    assert b'"before":{"state":"closed"}' in entry.body
    (event,) = await world.appended("events")
    assert event.kind == "breaker_opened"


async def test_they_are_listed_in_order_and_in_pages(world: World) -> None:
    """S58: with the strands that wait; one of a name, and each tenant's."""
    await guard(world, rules=BreakerRules(per="tenant"))
    for tenant in ("globex", "acme"):
        await report(world, tenant, failed=5)
    await report(world, failed=1, name="fax")
    await world.send(*(world.new("acme", queue=queue, task="send") for queue in "ab"))
    assert await world.claim(9, queue_requests=[("a", 9), ("b", 9)]) == []
    whole = await world.store.breakers.list(BreakersRequest(scope=ALL))
    keys = [one.key for one in whole.breakers]
    assert keys == [BreakerKey("fax"), BreakerKey("mail", "acme"), BreakerKey("mail", "globex")]
    assert [one.waiting for one in whole.breakers] == [0, 2, 0]
    first = await world.store.breakers.list(BreakersRequest(scope=ALL, limit=1))
    rest = await world.store.breakers.list(BreakersRequest(scope=ALL, after=first.breakers[-1].key))
    assert [one.key for one in (*first.breakers, *rest.breakers)] == keys
    named = await world.store.breakers.list(BreakersRequest(scope=ALL, name="fax"))
    assert [one.key for one in named.breakers] == keys[:1]
    assert whole.now == world.now


async def test_one_tenant_neither_sets_nor_lists_them(world: World) -> None:
    """S9, S58: they belong to all tenants."""
    request = ChangeBreakerRequest(scope=Scope("acme"), key=BreakerKey("mail", "acme"), verb="open")
    with pytest.raises(InsideTenant):
        await world.store.breakers.change(request)
    with pytest.raises(InsideTenant):
        await world.store.breakers.list(BreakersRequest(scope=Scope("acme")))


async def test_an_end_after_the_last_instant_is_refused(world: World) -> None:
    """S2: nothing is set."""
    with pytest.raises(ValueError, match="until is"):
        await operate(world, "open", who="ann", reason="for long", until=LAST_INSTANT + 1)
    assert await phase_of(world) == "closed"


async def test_a_breaker_is_neither_paused_nor_closed_for_new_jobs(world: World) -> None:
    """S46: it is forced open instead."""
    for verb in (world.store.policies.pause, world.store.policies.close):
        with pytest.raises(ValueError, match="force it open"):
            await verb(
                HoldRequest(scope=ALL, subject=Subject(SubjectKind.BREAKER, "mail"), who="ann", reason="x")
            )
