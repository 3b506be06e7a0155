"""Forgetting a tenant erases its names from what budgets keep; what was spent stays counted (S52, S114)."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import DAY, SECOND
from fairlane.model.policy.budget import OTHERS
from fairlane.model.scope import Scope
from fairlane.store.contract.budgets import Spender
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest
from tests.contract.world import World

NOBODY: Final = Spender(OTHERS, OTHERS, OTHERS)


async def _spend(world: World, tenant: str, by: str, spent: int, task: str = "tag") -> None:
    await world.enqueue(tenant, task=task, created_by=by)
    await world.settle(await world.claim_one(), spent=spent)


async def _forget(world: World, tenant: str = "acme") -> ForgetReply:
    return await world.store.upkeep.forget(ForgetRequest(scope=Scope(tenant), reason="asked", who="ops"))


async def test_what_a_forgotten_tenant_has_spent_is_nobodys(world: World) -> None:
    """S52, S114: counted with what is beyond the bound; the budget knows no other sum than before."""
    await world.put_budget("ai", "tag", "sum", ceiling=10_000)
    await _spend(world, "acme", "ann", 25)
    await _spend(world, "acme", "joe", 30, "sum")
    await _spend(world, "globex", "bob", 20)
    await _forget(world)
    for _ in range(2):
        assert (await world.spend("ai")).spent == ((NOBODY, 55), (Spender("tag", "globex", "bob"), 20))
        assert (await world.spend("ai", Scope("acme"))).spent == ()
        assert await world.account("ai") == (75, 0)
        await _forget(world)
    await _forget(world, "globex")
    assert (await world.spend("ai")).spent == ((NOBODY, 75),)
    assert await world.account("ai") == (75, 0)


async def test_all_budgets_and_periods_forget(world: World) -> None:
    """S52, S114: also those that have ended."""
    for name in ("ai", "mail"):
        await world.put_budget(name, name)
        await _spend(world, "acme", "ann", 7, name)
    world.advance(DAY // SECOND)
    await _spend(world, "acme", "ann", 9, "ai")
    await _forget(world)
    last, first = (await world.spend("ai")).periods
    assert (await world.spend("ai", starts_at=first)).spent == ((NOBODY, 7),)
    assert (await world.spend("ai", starts_at=last)).spent == ((NOBODY, 9),)
    assert (await world.spend("mail")).spent == ((NOBODY, 7),)


async def test_what_was_reported_a_moment_ago_is_forgotten_too(world: World) -> None:
    """S52, S113: however much nobody has counted yet."""
    await world.put_budget("ai", "tag", ceiling=10_000)
    await world.send(*(world.new(task="tag", created_by="ann") for _ in range(1_001)))
    claims = [claim for _ in range(11) for claim in await world.claim(100)]
    await world.settle_reply(*(world.verdict(claim, spent=1) for claim in claims))
    first = await _forget(world)
    assert first.cursor is not None
    request = ForgetRequest(scope=Scope("acme"), reason="asked", who="ops", cursor=first.cursor)
    assert (await world.store.upkeep.forget(request)).cursor is None
    assert (await world.spend("ai")).spent == ((NOBODY, 1_001),)


async def test_a_forgotten_tenants_own_account_is_removed(world: World) -> None:
    """S52, S59: that of another stays, and who goes on begins a new one."""
    await world.put_budget("ai", "tag", per_tenant=True)
    await _spend(world, "acme", "ann", 100)
    await _spend(world, "globex", "bob", 20)
    await world.enqueue(task="tag")
    assert await world.claim() == []
    await _forget(world)
    assert list(await world.accounts("ai")) == ["globex"]
    assert await world.account("ai", "globex") == (20, 0)
    await _spend(world, "acme", "ann", 3)
    assert await world.account("ai", "acme") == (3, 0)


async def test_the_account_of_what_still_runs_is_removed_by_a_later_pass(world: World) -> None:
    """S52, S113: what a running job has reserved and spends is counted, with or without an estimate."""
    for estimate in (40, 0):
        await world.put_budget("ai", "tag", per_tenant=True, estimate=estimate)
        await world.enqueue(task="tag", created_by="ann")
        claim = await world.claim_one()
        await world.renew(claim, spent=10)
        assert (await _forget(world)).running == 1
        assert await world.account("ai", "acme") == (10, max(estimate - 10, 0))
        await world.settle(claim, spent=30)
        assert await world.account("ai", "acme") == (30, 0)
        await _forget(world)
        assert await world.accounts("ai") == {}
    assert (await world.spend("ai")).spent == ((NOBODY, 60),)


async def test_a_lost_claim_of_a_forgotten_tenant_is_not_reported_any_more(world: World) -> None:
    """S52, S113: its estimate stays counted as spent; that of another tenant may still report."""
    await world.put_budget("ai", "tag", estimate=40)
    await world.enqueue(task="tag", created_by="ann")
    await world.enqueue("globex", task="tag", created_by="bob")
    claims = await world.claim(2)
    await world.lose()
    await _forget(world)
    assert (await world.spend("ai")).spent == ((NOBODY, 40), (Spender("tag", "globex", "bob"), 40))
    for claim in claims:
        assert (await world.settle_reply(world.verdict(claim, spent=15))).stale
    assert (await world.spend("ai")).spent == ((NOBODY, 40), (Spender("tag", "globex", "bob"), 15))
    assert await world.account("ai") == (55, 0)
