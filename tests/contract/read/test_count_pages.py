"""Counts and books come in pages that add up (S51)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.lifecycle.states import Home, State
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadCountRequest
from fairlane.store.contract.jobs import Count, CountRequest
from fairlane.store.contract.request import MAX_COUNTS, MAX_PAGE_SIZE
from fairlane.store.contract.upkeep import CensusRequest, GateCounter, TenantCounters
from tests.contract.world import ALL, World

TENANTS = ("acme", "globex", "initech")
QUEUES = ("bulk", "mail")


async def _mixed(world: World) -> list[Count]:
    """Have jobs of three tenants in two queues and several states; return the counts that are true."""
    for queue in QUEUES:
        for tenant in TENANTS:
            for state in (State.SUCCEEDED, State.DEAD, State.RUNNING):
                await world.bring_to(state, tenant, queue=queue)
        for number, tenant in enumerate(TENANTS, 1):
            await world.enqueue_many(number, tenant, queue=queue)
    return [
        Count(tenant, queue, state, number if state is State.READY else 1)
        for number, tenant in enumerate(TENANTS, 1)
        for queue in QUEUES
        for state in (State.DEAD, State.READY, State.RUNNING, State.SUCCEEDED)
    ]


async def _pages(world: World, limit: int, **filters: Any) -> list[Count]:
    found: list[Count] = []
    cursor: str | None = None
    for _ in range(50):
        page = await world.store.jobs.count(CountRequest(limit=limit, cursor=cursor, **filters))
        assert len(page.counts) <= limit
        found += page.counts
        cursor = page.cursor
        if cursor is None:
            return found
    message = "paging must end"
    raise AssertionError(message)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 24, 1_000])
async def test_pages_of_counts_of_any_size_give_the_same_whole(world: World, limit: int) -> None:
    """S51: none twice, none left out, in order; by tenant and by queue, too."""
    whole = await _mixed(world)
    assert await _pages(world, limit, scope=ALL) == whole
    mine = [one for one in whole if one.tenant == "globex"]
    assert await _pages(world, limit, scope=Scope("globex")) == mine
    assert await _pages(world, limit, scope=ALL, queue="mail") == [
        one for one in whole if one.queue == "mail"
    ]
    assert await _pages(world, limit, scope=Scope("nobody")) == []


async def test_a_cursor_of_counts_carries_no_scope(world: World) -> None:
    """S9, S51: got under one scope it shows nothing more under another."""
    await _mixed(world)
    page = await world.store.jobs.count(CountRequest(scope=Scope("acme"), limit=1))
    other = await world.store.jobs.count(CountRequest(scope=Scope("initech"), cursor=page.cursor))
    assert {one.tenant for one in other.counts} == {"initech"}
    late = await world.store.jobs.count(CountRequest(scope=Scope("initech"), limit=1))
    mine = await world.store.jobs.count(CountRequest(scope=Scope("acme"), cursor=late.cursor))
    assert mine.counts == ()


@pytest.mark.parametrize("limit", [1, 4, 5, 6, 1_000])
async def test_pages_of_the_books_give_the_same_whole(world: World, limit: int) -> None:
    """S51: by queue and tenant; what is not a tenant's stands on the first page alone."""
    await world.put_gate("door", "noop")
    await _mixed(world)
    page = await world.store.upkeep.census(CensusRequest(scope=ALL, limit=limit))
    assert page.homes == {Home.HOT: 18, Home.HISTORY: 6, Home.DEAD: 6}
    assert page.gates == (GateCounter("door", 6),)
    books = list(page.tenants)
    while page.cursor is not None:
        assert len(page.tenants) <= limit
        assert len(books) <= 6, "paging must end"
        page = await world.store.upkeep.census(CensusRequest(scope=ALL, limit=limit, cursor=page.cursor))
        assert (page.homes, page.gates, page.idempotency_keys, page.dedup_keys) == ({}, (), 0, 0)
        books += page.tenants
    assert books == [
        TenantCounters(queue, tenant, number, 1)
        for queue in QUEUES
        for number, tenant in enumerate(TENANTS, 1)
    ]


@pytest.mark.parametrize("cursor", ["", "nonsense", "WzEsMl0", "W10", "WyJhIl0"])
async def test_a_foreign_cursor_of_counts_is_refused(world: World, cursor: str) -> None:
    """S51: of counts, of dead letters' counts and of the books."""
    for ask in (
        lambda: world.store.jobs.count(CountRequest(scope=ALL, cursor=cursor)),
        lambda: world.store.dead.count(DeadCountRequest(scope=ALL, cursor=cursor)),
        lambda: world.store.upkeep.census(CensusRequest(scope=ALL, cursor=cursor)),
    ):
        with pytest.raises(ValueError, match="cursor"):
            await ask()


async def test_a_page_that_is_too_large_is_refused(world: World) -> None:
    """S51: not cut short in silence. Counts are small, so a page of them holds more."""
    for ask, most in (
        (lambda: world.store.jobs.count(CountRequest(scope=ALL, limit=MAX_COUNTS + 1)), MAX_COUNTS),
        (lambda: world.store.dead.count(DeadCountRequest(scope=ALL, limit=MAX_COUNTS + 1)), MAX_COUNTS),
        (lambda: world.store.upkeep.census(CensusRequest(scope=ALL, limit=MAX_PAGE_SIZE + 1)), MAX_PAGE_SIZE),
    ):
        with pytest.raises(ValueError, match=f"at most {most}, not {most + 1}"):
            await ask()
