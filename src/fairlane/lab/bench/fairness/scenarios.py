"""All fairness scenarios, in the order of the command: who waits for whom, and who gets which share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlane.lab.bench.fairness.claimers import CLAIMED_BY_MANY
from fairlane.lab.bench.fairness.noisy_neighbour import NEIGHBOURS
from fairlane.lab.bench.fairness.priority import ORDER
from fairlane.lab.bench.fairness.weights import TURNS
from fairlane.lab.bench.scenario import BenchResult, BenchSettings, measure

SCENARIOS: Final = (*NEIGHBOURS, *TURNS, *ORDER, *CLAIMED_BY_MANY)


async def fairness(settings: BenchSettings, only: Sequence[str] = ()) -> BenchResult:
    """Play the scenarios that are asked for, or all."""
    return await measure(settings, [one for one in SCENARIOS if not only or one.name in only])
