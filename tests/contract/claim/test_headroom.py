"""The last slots of a lane are for tenants with nothing running (S48)."""

from __future__ import annotations

import pytest

from tests.contract.world import World


async def _backlog(world: World, *tenants: str, number: int = 9, queue: str = "default") -> None:
    await world.send(*(world.new(tenant, queue=queue) for tenant in tenants for _ in range(number)))


@pytest.mark.parametrize(
    ("tenants", "total", "headroom", "served"),
    [
        ("a", 6, 0, "aaaaaa"),
        ("a", 6, 1, "aaaaa"),
        ("a", 6, 2, "aaaa"),
        ("a", 6, 5, "a"),
        ("a", 6, 6, "a"),
        ("a", 6, 99, "a"),
        ("ab", 6, 2, "abab"),
        ("abcd", 6, 4, "abcd"),
        ("abcdefgh", 6, 6, "abcdef"),
        ("a", 1, 1, "a"),
        ("a", 1, 0, "a"),
    ],
)
async def test_the_last_slots_go_only_to_tenants_with_nothing_running(
    world: World, tenants: str, total: int, headroom: int, served: str
) -> None:
    """S48: when `headroom` or fewer slots are free; before that all tenants take turns."""
    await _backlog(world, *tenants)
    assert "".join(await world.tenants_served(total, headroom=headroom)) == served


async def test_a_newcomer_finds_the_slot_that_was_kept(world: World) -> None:
    """S48: the whale has had four of five; the fifth is for whoever comes."""
    await _backlog(world, "whale")
    assert await world.tenants_served(5, headroom=1) == ["whale"] * 4
    assert await world.claim(1, headroom=1) == []
    await _backlog(world, "quiet", number=2)
    assert await world.tenants_served(1, headroom=1) == ["quiet"]
    assert await world.claim(1, headroom=1) == []


async def test_without_headroom_no_slot_idles(world: World) -> None:
    """S48: the default keeps nothing back, also for who runs already."""
    await _backlog(world, "whale")
    assert len(await world.claim(4)) == 4
    assert len(await world.claim(1)) == 1


async def test_above_the_headroom_every_slot_is_used(world: World) -> None:
    """S48: a tenant that runs already may have all but the last two."""
    await _backlog(world, "whale", number=20)
    await world.claim_one()
    assert len(await world.claim(10, headroom=2)) == 8


async def test_a_newcomer_behind_a_busy_tenant_is_found(world: World) -> None:
    """S41, S48: the busy tenant is next, but may not take the slot."""
    await _backlog(world, "busy", number=3)
    await world.claim(1)
    await _backlog(world, "late", number=1)
    assert await world.tenants_served(1, headroom=1) == ["late"]
    assert await world.tenants_served(2, headroom=1) == ["busy"]


async def test_what_runs_on_any_worker_counts(world: World) -> None:
    """S48: the tenant has something running, wherever."""
    await _backlog(world, "a")
    await world.claim(1, worker="w1")
    assert await world.claim(1, worker="w2", headroom=1) == []


async def test_a_tenant_whose_attempts_have_ended_is_a_newcomer_again(world: World) -> None:
    """S48: it counts what runs, not what ran."""
    await _backlog(world, "a", number=3)
    claim = await world.claim_one()
    assert await world.claim(1, headroom=1) == []
    await world.settle(claim)
    assert await world.tenants_served(1, headroom=1) == ["a"]


async def test_headroom_looks_at_each_queue_for_itself(world: World) -> None:
    """S48: with something running in one queue a tenant may still be new in another."""
    for queue in ("x", "y"):
        await _backlog(world, "a", queue=queue)
    await world.claim(1, "x")
    assert await world.claim(1, "x", headroom=1) == []
    assert await world.tenants_served(1, "y", headroom=1) == ["a"]


async def test_headroom_is_of_the_total_over_all_queues(world: World) -> None:
    """S35, S48: x fills what is above the headroom, the rest is for tenants new in x and then in y."""
    await _backlog(world, "a", "b", queue="x", number=5)
    await _backlog(world, "a", "c", queue="y", number=5)
    claims = await world.claim(6, queue_requests=[("x", 6), ("y", 6)], headroom=3)
    assert [(claim.job.queue, claim.job.tenant) for claim in claims] == [
        ("x", "a"),
        ("x", "b"),
        ("x", "a"),
        ("y", "a"),
        ("y", "c"),
    ]


async def test_a_slot_kept_in_one_queue_is_not_lost_to_the_next(world: World) -> None:
    """S35, S48: the first queue has no new tenant; the request for the second gets the slot."""
    await _backlog(world, "a", queue="x")
    await _backlog(world, "b", queue="y", number=1)
    claims = await world.claim(3, queue_requests=[("x", 3), ("y", 3)], headroom=1)
    assert [claim.job.tenant for claim in claims] == ["a", "a", "b"]
