"""Each damage to the accounts of a budget is found, told, and mended; who has room then starts (S125)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias

import pytest
import pytest_asyncio

from fairlane.store.contract.budgets import BudgetFlaw, BudgetRepairReply
from tests.contract.budget.test_repair import repair
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.repair import budget_damage
from tests.stores import STORES

pytestmark = pytest.mark.asyncio(loop_scope="session")

Damage: TypeAlias = Callable[[Any], Awaitable[None]]


class Case(NamedTuple):
    """A damage, what is found then, and what is spent and reserved once it is mended."""

    damages: dict[str, Damage]
    flaws: tuple[BudgetFlaw, ...]
    after: tuple[int, int]


RESERVES_TOO_MUCH: Final = Case(
    budget_damage.RESERVES_TOO_MUCH, (BudgetFlaw("", "reserved", 100, 60),), (0, 60)
)
CASES: Final = {
    "reserves too much": RESERVES_TOO_MUCH,
    "reserves too little": Case(
        budget_damage.RESERVES_TOO_LITTLE, (BudgetFlaw("", "reserved", 0, 60),), (0, 60)
    ),
    "the account": Case(
        budget_damage.ACCOUNT,
        (BudgetFlaw("", "reserved", 0, 60), BudgetFlaw("", "waiting", 0, 1)),
        (0, 60),
    ),
    "the claims": Case(budget_damage.CLAIMS, (BudgetFlaw("", "reserved", 60, 0),), (0, 0)),
    "a claim that nobody ends": Case(
        budget_damage.LEFT_CLAIM,
        (BudgetFlaw("", "claims", 1, 0), BudgetFlaw("", "reserved", 80, 60)),
        (20, 60),
    ),
    "nobody is waited for": Case(budget_damage.NOT_WAITED_FOR, (BudgetFlaw("", "waiting", 0, 1),), (0, 60)),
}


@pytest.fixture(params=sorted(budget_damage.ACCOUNT))
def store_name(request: pytest.FixtureRequest) -> str:
    """Name a kind of store."""
    found: str = request.param
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def world(store_name: str, shared_connections: None) -> AsyncIterator[World]:
    """Open the store, empty; the books must balance at the end of every test."""
    clock = DrivenClock()
    async with STORES[store_name](clock) as store:
        world = World(store, clock)
        yield world
        await world.check_invariants()


async def crowd(world: World) -> None:
    """Let three jobs run under a budget that has room for three, while one waits."""
    await world.put_budget("ai", "tag", ceiling=70, estimate=20)
    await world.enqueue_many(4, task="tag")
    assert len(await world.claim(9)) == 3


@pytest.mark.parametrize("which", CASES)
async def test_a_damage_is_found_and_mended(world: World, store_name: str, which: str) -> None:
    """S125: what was found is what is told of the mending; one entry of the audit says who did it."""
    case = CASES[which]
    await crowd(world)
    await case.damages[store_name](world.store)
    found = await repair(world, restores=False)
    assert (found.flaws, found.is_restored) == (case.flaws, False)
    assert await repair(world, restores=False) == found
    assert await repair(world) == BudgetRepairReply(found.claims, case.flaws, is_restored=True)
    assert (await repair(world)).flaws == ()
    assert await world.account("ai") == case.after
    (entry,) = await world.appended("audit")
    assert (entry.kind, entry.subject, entry.tenant) == ("doctor.repair", "budget ai", None)


async def test_who_waits_starts_once_the_room_is_right(world: World, store_name: str) -> None:
    """S125: after two of three have ended, the account says that it is full; a repair wakes who waits."""
    await world.put_budget("ai", "tag", ceiling=70, estimate=20)
    await world.enqueue_many(6, task="tag")
    claims = await world.claim(9)
    await RESERVES_TOO_MUCH.damages[store_name](world.store)
    for claim in claims:
        await world.settle(claim)
    assert len(await world.claim(9)) < 3, "the damage keeps them waiting"
    assert (await repair(world)).is_restored
    started = await world.claim(9)
    assert started
    assert len(await world.claim(9)) == 0
    assert (await world.account("ai"))[1] == 60


async def test_who_nobody_would_wake_is_woken_by_the_repair_and_by_room_from_then_on(
    world: World, store_name: str
) -> None:
    """S125: the room of a job that ends is used again."""
    await world.put_budget("ai", "tag", ceiling=70, estimate=20)
    await world.enqueue_many(5, task="tag")
    first, second, _ = await world.claim(9)
    await budget_damage.NOT_WAITED_FOR[store_name](world.store)
    await world.settle(first)
    assert await world.claim(9) == [], "nobody has woken it"
    assert [one.where for one in (await repair(world)).flaws] == ["waiting"]
    assert len(await world.claim(9)) == 1
    await world.settle(second)
    assert len(await world.claim(9)) == 1


async def test_too_many_claims_are_not_compared(
    world: World, store_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S125: the answer says so; one claim less, and they are."""
    await crowd(world)
    module = {"sqlite": "fairlane.store.sqlite.upkeep.repair_budget"}.get(
        store_name, f"fairlane.store.{store_name}.budgets"
    )
    monkeypatch.setattr(import_module(module), "MAX_COMPARED", 2)
    assert await repair(world) == BudgetRepairReply(None)
    monkeypatch.setattr(import_module(module), "MAX_COMPARED", 3)
    assert await repair(world) == BudgetRepairReply(3)
