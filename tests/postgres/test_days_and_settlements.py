"""A day of history that is made just now gets in no settlement's way (S52, S63)."""

from __future__ import annotations

import asyncio

import psycopg

from tests.contract.world import World

ROUNDS = 30


async def test_settlements_go_on_while_their_day_is_made(
    world: World, admin: psycopg.Connection, schema: str
) -> None:
    """None fails because its place in history has moved under it."""
    for _ in range(ROUNDS):
        await world.enqueue_many(10)
        claims = await world.claim(10)
        day = world.now
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(admin.execute, f"SELECT {schema}.make_days({day})"))
            for claim in claims:
                tasks.create_task(world.settle(claim))
        world.advance(4 * 86_400)
