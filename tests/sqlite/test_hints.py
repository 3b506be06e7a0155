"""Whom the end of a job wakes: mostly nobody, because it makes nothing claimable."""

from __future__ import annotations

import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import AttemptResult
from tests.contract.registry.test_wake import falls_quiet, wait
from tests.contract.world import SUCCEEDED, World, failed, ruined


@pytest.mark.parametrize(
    ("ending", "state", "is_told"),
    [
        (SUCCEEDED, State.SUCCEEDED, False),
        (ruined(), State.DEAD, False),
        (failed(), State.DELAYED, True),
    ],
    ids=["success", "death", "retry"],
)
async def test_an_end_that_makes_nothing_claimable_tells_nobody(
    world: World, ending: AttemptResult, state: State, is_told: bool
) -> None:
    """S56: a job that comes back wakes workers, because it may be the next due job."""
    await world.enqueue()
    claim = await world.claim_one()
    assert await falls_quiet(world)
    assert await world.settle(claim, ending) is state
    assert await wait(world, at_most=0) is is_told
