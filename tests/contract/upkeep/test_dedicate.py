"""What a store is dedicated to: set once, for good, and only for an empty store."""

from __future__ import annotations

import pytest

from fairlane.model.scope import Scope
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import DedicateRequest
from tests.contract.world import World

ALL = Scope.all()


async def dedicate(world: World, purpose: str) -> None:
    """Dedicate the store of the test."""
    await world.store.upkeep.dedicate(DedicateRequest(scope=ALL, purpose=purpose))


async def test_a_new_store_is_for_nothing_in_particular(world: World) -> None:
    """S63: nobody can take a store for one of tests by accident."""
    assert await world.store.upkeep.purpose(Request(scope=ALL)) is None


async def test_an_empty_store_can_be_dedicated_and_dedicated_again(world: World) -> None:
    """S63: the same word twice changes nothing."""
    await dedicate(world, "tests")
    await dedicate(world, "tests")
    await world.enqueue()
    await dedicate(world, "tests")
    assert await world.store.upkeep.purpose(Request(scope=ALL)) == "tests"


async def test_a_store_that_holds_jobs_cannot_be_dedicated(world: World) -> None:
    """S63: it has jobs, whether waiting or finished."""
    await world.enqueue()
    with pytest.raises(ValueError, match="holds jobs"):
        await dedicate(world, "tests")
    assert await world.store.upkeep.purpose(Request(scope=ALL)) is None


async def test_a_store_for_one_thing_cannot_be_made_one_for_another(world: World) -> None:
    """S63: for good means for good."""
    await dedicate(world, "demonstrations")
    with pytest.raises(ValueError, match="is for demonstrations"):
        await dedicate(world, "tests")
    assert await world.store.upkeep.purpose(Request(scope=ALL)) == "demonstrations"
