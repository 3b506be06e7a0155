"""Who waits for whom, and who gets how much: every scenario of fairness, in the order of the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlane.bench.claimers import CLAIMED_BY_MANY
from fairlane.bench.neighbours import NEIGHBOURS
from fairlane.bench.order import ORDER
from fairlane.bench.scenario import Outcome, Setting, measure
from fairlane.bench.turns import TURNS

SCENARIOS: Final = (*NEIGHBOURS, *TURNS, *ORDER, *CLAIMED_BY_MANY)


async def fairness(setting: Setting, only: Sequence[str] = ()) -> Outcome:
    """Play the scenarios that are asked for, or all."""
    return await measure(setting, [one for one in SCENARIOS if not only or one.name in only])
