"""A store is migrated by anyone at any time and closed as often; no job is touched by it (S63)."""

from __future__ import annotations

import asyncio

import pytest

from fairlane.model.lifecycle.states import State
from fairlane.store.contract.upkeep import MigrateReply
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.stores import STORES


async def test_migrating_again_changes_nothing(world: World) -> None:
    """S63: the schema is there already, so no step is taken, and every job stays as it is."""
    for state in State:
        await world.bring_to(state, queue=state.value)
    before = await world.sight()
    first = await world.store.upkeep.migrate()
    assert await world.store.upkeep.plan() == MigrateReply(first.after, first.after)
    assert first.before <= first.after
    assert await world.store.upkeep.migrate() == MigrateReply(first.after, first.after)
    assert await world.sight() == before


async def test_several_may_migrate_at_once(world: World) -> None:
    """S63: all find the same version afterwards, and no job that is enqueued meanwhile is lost."""
    replies, job = await asyncio.gather(
        asyncio.gather(*(world.store.upkeep.migrate() for _ in range(6))), world.enqueue()
    )
    assert len({reply.after for reply in replies}) == 1
    assert await world.find_all() == [job]
    assert (await world.claim_one()).job.id == job.id


@pytest.mark.parametrize("name", sorted(STORES))
async def test_closing_twice_is_fine(name: str) -> None:
    """S63: a store that was used can be let go of, again and again, and at the same time."""
    clock = DrivenClock()
    async with STORES[name](clock) as store:
        await World(store, clock).enqueue()
        await asyncio.gather(store.upkeep.aclose(), store.upkeep.aclose())
        await store.upkeep.aclose()
