"""Enqueue in the application's own transaction: what no store can join, every store refuses alike (S12)."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from fairlane.model.errors import Unsupported
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
