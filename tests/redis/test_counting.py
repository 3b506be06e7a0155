"""Books are kept in the order of queue and tenant, and read in both orders, a page of each queue at once."""

from __future__ import annotations

import pytest

from fairlane.model.lifecycle import State
from fairlane.store.redis import counting
from tests.contract.world import World


async def test_counts_of_many_tenants_in_several_queues_come_in_their_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S51: a queue that ends early, one that begins late, one with all; none is left out or told twice."""
    monkeypatch.setattr(counting, "_PAGE", 1)  # the least that a script gives is 8 of each queue
    tenants = {"early": range(5), "late": range(20, 40), "whole": range(40)}
    pairs = [(f"t{number:02}", queue) for queue, numbers in tenants.items() for number in numbers]
    await world.send(*(world.new(tenant, queue=queue) for tenant, queue in pairs))
    assert list(await world.counts()) == [(*pair, State.READY) for pair in sorted(pairs)]
    books = (await world.census()).tenants
    assert [(one.queue, one.tenant) for one in books] == sorted((queue, tenant) for tenant, queue in pairs)
