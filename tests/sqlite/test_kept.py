"""What a writer remembers of tenants is never older than the file, whoever writes and whatever fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlane.model.layers import Kind, QueueRules
from fairlane.model.limits import Limits
from fairlane.store.opening import open_store
from tests.contract.world import World
from tests.oracle.clock import DrivenClock


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[World, World]]:
    """Give two stores on one file, as two processes have them; the books must balance at the end."""
    clock = DrivenClock()
    worlds = [World(open_store(f"sqlite:///{tmp_path}/fairlane.db", clock=clock), clock) for _ in range(2)]
    worlds[1]._ids = worlds[0]._ids
    yield worlds[0], worlds[1]
    await worlds[0].check_invariants()
    for world in worlds:
        await world.store.upkeep.aclose()


async def test_what_another_writer_did_is_seen(two: tuple[World, World]) -> None:
    """S16: each counts what the other stored and took, so that a limit is exact over both."""
    one, other = two
    await one.declare(Kind.QUEUE, "default", QueueRules(limits=Limits(waiting=6, on_full="reject")))
    for _ in range(3):
        await one.enqueue()
        await other.enqueue()
    for world in two:
        assert (await world.send(world.new())).refused
    claim = await other.claim_one()
    await one.enqueue()
    await other.settle(claim)
    for world in two:
        assert (await world.send(world.new())).refused


async def test_a_tenant_that_was_dropped_begins_anew(two: tuple[World, World]) -> None:
    """S41: its row goes when it owes nothing; an enqueue afterwards makes one that claims find."""
    one, other = two
    for first, second in ((one, one), (one, other), (other, one)):
        job = await first.enqueue("comes-and-goes")
        assert (await second.run()).id == job.id
        again = await first.enqueue("comes-and-goes")
        assert (await first.run()).id == again.id


async def test_what_was_undone_is_not_remembered(two: tuple[World, World]) -> None:
    """A peek claims and takes it back; what it saw in between is gone from memory, too."""
    one, _ = two
    jobs = await one.enqueue_many(3)
    assert [job.id for job in await one.peek(3)] == [job.id for job in jobs]
    more = await one.enqueue()
    assert [claim.job.id for claim in await one.claim(9)] == [*(job.id for job in jobs), more.id]
