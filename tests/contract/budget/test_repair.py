"""The accounts of a budget are compared with the claims that run under them (S125).

What is wrong is told and mended in tests/repair; here nothing is wrong, and so nothing may change.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.job import Claim
from fairlane.model.journal.operations import Operation
from fairlane.model.scope import Scope
from fairlane.store.contract.budgets import BudgetRepairReply, BudgetRepairRequest
from tests.contract.world import ALL, World, failed

ANN = Operation(action="doctor.repair", actor="ann", origin="cli")


async def repair(
    world: World, budget: str = "ai", *, scope: Scope = ALL, restores: bool = True
) -> BudgetRepairReply:
    """Repair the accounts of a budget, as an operator does."""
    request = BudgetRepairRequest(scope=scope, budget=budget, restores=restores, operation=ANN)
    return await world.store.budgets.repair(request)


async def crowd(world: World, **rules: Any) -> list[Claim]:
    """Let jobs of two tenants end, be lost, run and wait under a budget; return the claims that run."""
    await world.put_budget("ai", "tag", estimate=20, **rules)
    await world.send(*(world.new(tenant, task="tag") for tenant in ("acme", "globex") * 6))
    first, second = await world.claim(2)
    await world.settle(first, spent=10)
    await world.settle(second, failed(), spent=0)
    await world.claim_one()
    await world.lose()
    return [*await world.claim(9), *await world.claim(9)]


@pytest.mark.parametrize("per_tenant", [False, True])
@pytest.mark.parametrize("restores", [False, True])
async def test_where_nothing_is_wrong_nothing_changes(
    world: World, *, per_tenant: bool, restores: bool
) -> None:
    """S125: not even an entry in the audit; those who wait go on waiting."""
    running = len(await crowd(world, per_tenant=per_tenant))
    assert running >= 3
    before = await world.sight(), await world.accounts("ai")
    assert await repair(world, restores=restores) == BudgetRepairReply(running)
    assert (await world.sight(), await world.accounts("ai")) == before
    assert await world.appended("audit") == []


async def test_room_that_has_come_back_is_no_flaw(world: World) -> None:
    """S125: those who wait are woken, and unparked by the next claim."""
    for claim in await crowd(world):
        await world.settle(claim)
    assert await repair(world) == BudgetRepairReply(0)


async def test_under_the_scope_of_a_tenant_only_its_own_account_is_compared(world: World) -> None:
    """S125, S9: one that all share is not a tenant's."""
    running = await crowd(world, per_tenant=True)
    assert {claim.job.tenant for claim in running} == {"acme", "globex"}
    parts = [(await repair(world, scope=Scope(tenant))).claims for tenant in ("acme", "globex", "initech")]
    assert parts[2] == 0
    assert sum(one or 0 for one in parts) == len(running)
    assert await repair(world, "unknown") == BudgetRepairReply(0)
