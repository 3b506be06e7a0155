"""A gate whose limit or whose tasks change while jobs run and wait (S43, S54)."""

from __future__ import annotations

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import GateRules, PolicyChange, SubjectKind
from fairlane.store.contract.upkeep import GateCounter
from tests.contract.world import World


async def _gate(world: World, limit: int) -> None:
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=limit))


async def test_a_raised_limit_lets_exactly_so_many_more_in(world: World) -> None:
    """S43, S54: at the next claim, by override and by declaration."""
    await _gate(world, 1)
    await world.enqueue_many(9, task="gated")
    assert len(await world.claim(9)) == 1
    await world.override(SubjectKind.GATE, "door", PolicyChange(limit=3))
    assert len(await world.claim(9)) == 2
    await world.reset(SubjectKind.GATE, "door")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=4))
    assert len(await world.claim(9)) == 1
    assert (await world.census()).gates == (GateCounter("door", 4),)


async def test_a_lowered_limit_interrupts_nothing_and_lets_nobody_in_until_it_is_met(world: World) -> None:
    """S43: three run on under a limit of one; the next enters when none of them is left."""
    await _gate(world, 3)
    await world.enqueue_many(9, task="gated")
    claims = await world.claim(9)
    await world.override(SubjectKind.GATE, "door", PolicyChange(limit=1))
    assert (await world.renew(*claims)).stale == ()
    for claim in claims:
        assert await world.claim(9) == []
        assert await world.settle(claim) is State.SUCCEEDED
    assert len(await world.claim(9)) == 1


async def test_a_limit_for_a_while_ends_by_itself(world: World) -> None:
    """S43, S54: at its `until`, and the claim before says when that is."""
    await _gate(world, 2)
    await world.enqueue_many(3, task="gated")
    await world.override(SubjectKind.GATE, "door", PolicyChange(limit=0), until=world.now + MINUTE)
    reply = await world.claim_whole(9)
    assert (reply.claims, reply.next_due_at) == ((), world.now + MINUTE)
    world.advance(MINUTE / SECOND)
    assert len(await world.claim(9)) == 2


async def test_a_task_that_loses_its_gate_waits_no_longer(world: World) -> None:
    """S43, S54: the newest declaration holds at the next claim."""
    await _gate(world, 0)
    await world.enqueue(task="gated")
    assert await world.claim(9) == []
    await world.put_gate("another", "gated")
    assert len(await world.claim(9)) == 1


async def test_the_place_that_was_taken_is_given_back_whatever_the_task_says_by_then(world: World) -> None:
    """S43, S54: a task that changed its gate meanwhile leaves no place behind."""
    await _gate(world, 1)
    await world.declare(SubjectKind.GATE, "new", GateRules(limit=1))
    await world.enqueue_many(2, task="gated")
    old = await world.claim_one()
    await world.put_gate("new", "gated")
    await world.claim_one()
    assert (await world.census()).gates == (GateCounter("door", 1), GateCounter("new", 1))
    await world.settle(old)
    assert (await world.census()).gates == (GateCounter("new", 1),)
