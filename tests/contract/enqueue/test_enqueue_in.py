"""Verbs in the application's own transaction: what none can join, every store refuses alike (S12, S63)."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec
import pytest

from fairlane.model.errors import Unsupported
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.claims import SettledJob, SettleRequest
from fairlane.store.contract.jobs import EnqueueRequest
from tests.contract.world import ALL, World


@pytest.mark.parametrize("kind", ["object", "sqlite3"])
async def test_a_connection_that_cannot_be_joined_is_refused_with_the_way_out(
    world: World, kind: str
) -> None:
    """S12: nothing is stored, and the message names the outbox."""
    request = EnqueueRequest(scope=ALL, jobs=(world.new(),))
    with closing(sqlite3.connect(":memory:")) as other:
        connection = other if kind == "sqlite3" else object()
        with pytest.raises(Unsupported, match="outbox"):
            await world.store.jobs.enqueue_in(connection, request)
    assert await world.find_all() == []


async def test_a_connection_that_cannot_be_joined_settles_nothing(world: World) -> None:
    """S63: the claim stays as it was."""
    await world.enqueue()
    claim = await world.claim_one()
    request = SettleRequest(scope=ALL, worker="w1", settlements=(world.verdict(claim),))
    with pytest.raises(Unsupported, match="outbox"):
        await world.store.claims.settle_in(object(), request)
    assert await world.get(claim.job.id) == claim.job


async def test_settling_without_waiting_is_settling(world: World) -> None:
    """S63: where no transaction is open, what matches is settled, what does not is stale."""
    await world.enqueue_many(2)
    one, two = await world.claim(2)
    late = msgspec.structs.replace(world.verdict(two), fence=two.fence - 1)
    request = SettleRequest(scope=ALL, worker="w1", settlements=(late, world.verdict(one)), waits=False)
    reply = await world.store.claims.settle(request)
    assert reply.settled == (SettledJob(one.job.id, State.SUCCEEDED),)
    assert reply.stale == (two.job.id,)
