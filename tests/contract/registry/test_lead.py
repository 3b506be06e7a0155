"""The lead of the duties: one at a time, and nothing depends on it (S61)."""

from __future__ import annotations

import asyncio
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.claims import PromoteReply
from fairlane.store.contract.registry import LeadReply, LeadRequest, LeaveRequest
from tests.contract.world import ALL, World

INSTANT: Final = 0.000_001


async def lead(
    world: World, worker: str = "w1", name: str = "duties", lease: Micros = 10 * SECOND
) -> LeadReply:
    """Ask for the lead."""
    return await world.store.registry.lead(LeadRequest(scope=ALL, name=name, worker=worker, lease=lease))


async def test_one_leads_at_a_time(world: World) -> None:
    """S61: whoever asks first; others are told who leads, and until when."""
    until = world.now + 10 * SECOND
    assert await lead(world, "w1") == LeadReply("w1", until)
    world.advance(5)
    assert await lead(world, "w2") == LeadReply("w1", until)


async def test_the_lead_is_kept_by_asking_again(world: World) -> None:
    """S61: from now on, for as long as asked."""
    await lead(world, "w1")
    world.advance(9)
    kept = await lead(world, "w1", lease=3 * SECOND)
    assert kept == LeadReply("w1", world.now + 3 * SECOND)
    world.advance(3 - INSTANT)
    assert await lead(world, "w2") == kept


async def test_the_lead_is_free_at_the_instant_it_ends(world: World) -> None:
    """S61: another takes it then, and the first gets it back only after that one."""
    await lead(world, "w1")
    world.advance(10)
    taken = await lead(world, "w2")
    assert taken == LeadReply("w2", world.now + 10 * SECOND)
    assert await lead(world, "w1") == taken


async def test_a_leader_that_leaves_gives_up_the_lead(world: World) -> None:
    """S61: all of its leads, and nobody else's."""
    await world.register("w1")
    for name in ("duties", "alerts"):
        await lead(world, "w1", name)
    await lead(world, "w2", "relay")
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker="w1"))
    assert [(await lead(world, "w3", name)).worker for name in ("duties", "alerts", "relay")] == [
        "w3",
        "w3",
        "w2",
    ]


async def test_leads_of_different_names_are_different(world: World) -> None:
    """S61: one worker may hold several, and several workers one each."""
    assert (await lead(world, "w1", "a")).worker == "w1"
    assert (await lead(world, "w2", "b")).worker == "w2"
    assert (await lead(world, "w1", "c")).worker == "w1"


async def test_of_many_that_ask_at_once_one_leads(world: World) -> None:
    """S61: all are told the same."""
    replies = await asyncio.gather(*(lead(world, f"w{number}") for number in range(12)))
    assert len(set(replies)) == 1


async def test_two_that_both_believe_to_lead_do_no_harm(world: World) -> None:
    """S61: the same pass by several at once moves each job once."""
    await world.enqueue_many(6, delay=SECOND)
    await world.enqueue_many(3, expires_in=SECOND)
    world.advance(1)
    passes = await asyncio.gather(*(world.promote() for _ in range(4)), *(world.expire() for _ in range(4)))
    assert sum(one.promoted for one in passes if isinstance(one, PromoteReply)) == 6
    assert sum(one for one in passes if isinstance(one, int)) == 3
    assert await world.counts() == {
        ("acme", "default", State.READY): 6,
        ("acme", "default", State.CANCELLED): 3,
    }
