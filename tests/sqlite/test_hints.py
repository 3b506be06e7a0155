"""Whom the end of a job tells: mostly nobody, since it makes nothing claimable that was not."""

from __future__ import annotations

import pytest

from fairlane.model.judge import Ending
from fairlane.model.lifecycle import State
from tests.contract.test_wake import falls_quiet, wait
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
    world: World, ending: Ending, state: State, is_told: bool
) -> None:
    """S56: a job that comes back is told, as it may be the next thing that is due."""
    await world.enqueue()
    claim = await world.claim_one()
    assert await falls_quiet(world)
    assert await world.settle(claim, ending) is state
    assert await wait(world, at_most=0) is is_told
