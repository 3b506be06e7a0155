"""Looking into the store itself: leads, tasks of unfinished jobs, the lease that ends first."""

from __future__ import annotations

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.inspection import MAX_PARTS, Inspection, InspectRequest, LeadRecord
from fairlane.store.contract.registry import LeadRequest, LeaveRequest
from tests.contract.world import ALL, LEASE, SUCCEEDED, World


async def inspect(world: World) -> Inspection:
    """Look into the store."""
    return await world.store.upkeep.inspect(InspectRequest(scope=ALL))


async def lead(world: World, worker: str, name: str = "duties") -> None:
    """Take a lead."""
    request = LeadRequest(scope=ALL, name=name, worker=worker, lease=10 * SECOND)
    await world.store.registry.lead(request)


async def test_an_empty_store_has_nothing_to_tell_and_is_whole(world: World) -> None:
    """S61: nobody leads before anybody asked."""
    found = await inspect(world)
    assert (found.leads, found.tasks, found.first_lease_until) == ((), (), None)
    assert (found.damage, found.is_checked) == ((), True)


async def test_leads_are_named_also_when_they_are_over(world: World) -> None:
    """S61: by name; one that nobody keeps stays to be seen, one that was given up does not."""
    until = world.now + 10 * SECOND
    await lead(world, "w1")
    await lead(world, "w2", "alerts")
    world.advance(60)
    assert (await inspect(world)).leads == (
        LeadRecord("alerts", "w2", until),
        LeadRecord("duties", "w1", until),
    )
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker="w1"))
    assert (await inspect(world)).leads == (LeadRecord("alerts", "w2", until),)


async def test_tasks_are_those_of_unfinished_jobs(world: World) -> None:
    """S50: delayed, ready and running ones; each once, by name."""
    await world.enqueue(task="ended")
    await world.run(SUCCEEDED)
    await world.enqueue(task="running")
    await world.claim_one()
    await world.enqueue("globex", task="ready")
    await world.enqueue(task="ready")
    await world.enqueue(task="delayed", delay=MINUTE)
    assert (await inspect(world)).tasks == ("delayed", "ready", "running")


async def test_the_lease_that_ends_first_is_told(world: World) -> None:
    """S37: over all claims, also when it is over."""
    await world.enqueue_many(2)
    first = await world.claim_one()
    world.advance(5)
    second = await world.claim_one()
    assert (await inspect(world)).first_lease_until == first.lease_until
    await world.settle(first, SUCCEEDED)
    world.advance(60)
    assert (await inspect(world)).first_lease_until == second.lease_until == world.now - 60 * SECOND + LEASE


async def test_looking_changes_nothing(world: World) -> None:
    """S50: it is safe on a store that is in use."""
    await world.enqueue_many(3)
    await world.claim_one()
    before = await world.sight()
    assert await inspect(world) == await inspect(world)
    assert await world.sight() == before


async def parts_of(world: World, parts: int, tenant: str | None = None) -> Inspection:
    """Ask for the largest tables or keys."""
    scope = ALL if tenant is None else Scope(tenant)
    return await world.store.upkeep.inspect(InspectRequest(scope=scope, at_most=0, parts=parts))


async def test_the_largest_parts_of_the_store_are_listed_on_request(world: World) -> None:
    """S95: with how much is in them; only as many as were asked for, largest first."""
    await world.enqueue_many(2)
    assert (await inspect(world)).parts == ()
    found = await parts_of(world, MAX_PARTS)
    assert found.are_all_parts
    names = [part.name for part in found.parts]
    assert len(set(names)) == len(names)
    # PostgreSQL does not count what nobody has analysed yet.
    assert {part.entries for part in found.parts} & {2, None}
    sizes = [part.size for part in found.parts if part.size is not None]
    assert sizes == sorted(sizes, reverse=True)
    (largest,) = (await parts_of(world, 1)).parts
    assert largest.name == found.parts[0].name
    assert (await parts_of(world, 1)).are_all_parts == (len(found.parts) == 1)


async def test_a_tenant_sees_no_part_of_the_store(world: World) -> None:
    """S95, S9: they hold what belongs to all."""
    await world.enqueue()
    assert (await parts_of(world, 10, tenant="acme")).parts == ()


async def test_the_number_of_parts_is_bounded(world: World) -> None:
    """S95: whoever asks for more is told so."""
    with pytest.raises(ValueError, match="at most"):
        await parts_of(world, MAX_PARTS + 1)
