"""What takes long rather than force: seeds of the simulation, their replay, clocks that jump."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Final

from tests.campaigns.clock import SharedClock
from tests.campaigns.errand import Errand
from tests.campaigns.field import staged
from tests.faults.campaign import moment
from tests.simulation.crowd import run_seeds
from tests.simulation.replay import record, replay
from tests.simulation.seeds import quiet, seams
from tests.stores import STORES

JUMPS: Final = (-5.0, -0.5, 0.5, 6.0, 30.0, 3_600.0)
"""Seconds; back only as far as a test can wait."""


async def simulate(errand: Errand) -> None:
    """Run seeds of the simulation that no piece has run before."""
    seed = errand.first_seed
    with closing(run_seeds(range(seed, seed + errand.wanted))) as outcomes:
        for outcome in outcomes:
            if outcome.wrong:
                errand.fail(f"seed {outcome.seed}: {outcome.wrong[0]}")
            seed = outcome.seed + 1
            errand.figures["steps"] += outcome.steps
            errand.done()
            if not errand.goes_on:
                break
    errand.figures["next_seed"] = seed


async def replay_seeds(errand: Errand) -> None:
    """Do to a real store what seeds did to the oracle; every answer is the same."""
    seed = errand.first_seed
    with seams(), quiet():
        while errand.goes_on:
            calls = await asyncio.to_thread(record, seed)
            seed += 1
            if not calls:
                continue
            found = await replay(calls, STORES[errand.store])
            errand.figures["calls"] += found.calls
            if found.difference:
                errand.fail(f"seed {seed - 1}: {found.difference[:1_000]}")
            errand.done()
    errand.figures["next_seed"] = seed


async def set_clocks(errand: Errand) -> None:
    """Let the store's clock jump while jobs are enqueued and run."""
    async with staged(errand, is_clock_shared=True) as field:
        assert field.clock is not None
        clock = SharedClock(field.clock)
        await field.hire_ready(2)
        async with field.fed((0.05, 0.2, 0.5)):
            while errand.goes_on:
                await field.until_more_start(10)
                clock.jump(errand.draw.choice(JUMPS))
                jumped_at = moment()
                errand.done(*[await field.until_it_starts(one, jumped_at) for one in field.workers])
