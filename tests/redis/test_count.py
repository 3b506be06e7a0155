"""Counts are stored in the order of queue and tenant, and read in both orders, one page of each queue."""

from __future__ import annotations

import pytest

import fairlane.store.redis.jobs.count as counts
from fairlane.model.lifecycle.states import State
from tests.contract.world import World


async def test_counts_of_many_tenants_in_several_queues_come_in_their_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S51: a queue that ends early, one that begins late, one with all; none is left out or told twice."""
    monkeypatch.setattr(counts, "_PAGE", 1)  # the least that a script gives is 8 of each queue
    tenants = {"early": range(5), "late": range(20, 40), "whole": range(40)}
    pairs = [(f"t{number:02}", queue) for queue, numbers in tenants.items() for number in numbers]
    await world.send(*(world.new(tenant, queue=queue) for tenant, queue in pairs))
    assert list(await world.counts()) == [(*pair, State.READY) for pair in sorted(pairs)]
    counters = (await world.census()).tenants
    assert [(one.queue, one.tenant) for one in counters] == sorted((queue, tenant) for tenant, queue in pairs)
