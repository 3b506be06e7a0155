"""Attempts to sign in are counted where all processes see them (S81)."""

from __future__ import annotations

import asyncio

from fairlane.model.instants import SECOND, Micros
from fairlane.store.contract.access import AttemptRequest, ForgiveRequest
from fairlane.store.contract.request import Request
from tests.contract.world import ALL, World

WITHIN: Micros = 300 * SECOND


async def attempt(world: World, **most: int) -> Micros:
    """Try once under some labels; return how long to wait."""
    request = AttemptRequest(scope=ALL, most=most, within=WITHIN)
    return await world.store.access.attempt(request)


async def test_so_many_attempts_are_allowed_within_a_time(world: World) -> None:
    """S81: from the first on; then the count begins anew."""
    assert [await attempt(world, ann=3) for _ in range(3)] == [0, 0, 0]
    assert await attempt(world, ann=3) == WITHIN
    world.advance(WITHIN / SECOND - 1)
    assert await attempt(world, ann=3) == SECOND
    assert await attempt(world, bob=3) == 0
    world.advance(1)
    assert [await attempt(world, ann=3) for _ in range(4)] == [0, 0, 0, WITHIN]


async def test_an_attempt_that_one_label_refuses_counts_under_none(world: World) -> None:
    """S81: and of several that refuse, the one that lasts longest says how long to wait."""
    assert await attempt(world, here=1) == 0
    world.advance(10)
    assert [await attempt(world, here=1, ann=2) for _ in range(5)] == [WITHIN - 10 * SECOND] * 5
    assert [await attempt(world, ann=2) for _ in range(2)] == [0, 0]
    assert await attempt(world, here=1, ann=2) == WITHIN


async def test_of_many_at_once_no_more_than_allowed_are_made(world: World) -> None:
    """S81: whoever guesses in parallel, and whichever order names the labels."""
    orders = ({"ann": 5, "here": 9}, {"here": 9, "ann": 5})
    waits = await asyncio.gather(*(attempt(world, **orders[number % 2]) for number in range(12)))
    assert waits.count(0) == 5


async def test_an_attempt_that_succeeded_is_given_back(world: World) -> None:
    """S81: one each, and never more than were made; another label is not known."""
    await attempt(world, ann=2)
    await attempt(world, ann=2)
    assert await attempt(world, ann=2) > 0
    await world.store.access.forgive(ForgiveRequest(scope=ALL, labels=("ann", "nobody")))
    assert await attempt(world, ann=2) == 0
    for _ in range(5):
        await world.store.access.forgive(ForgiveRequest(scope=ALL, labels=("ann",)))
    assert [await attempt(world, ann=2) for _ in range(3)] == [0, 0, WITHIN]


async def test_counts_whose_time_is_over_are_deleted_and_others_stay(world: World) -> None:
    """S81: they are no records, and are not counted as such."""
    await attempt(world, ann=1)
    world.advance(WITHIN / SECOND - 1)
    await attempt(world, bob=1)
    world.advance(1)
    assert await world.store.access.clean(Request(scope=ALL)) == 0
    assert await attempt(world, ann=1) == 0
    assert await attempt(world, bob=1) > 0
