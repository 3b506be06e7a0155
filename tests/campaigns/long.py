"""What takes long rather than force: seeds of the simulation, their replay, clocks that jump, a soak."""

from __future__ import annotations

import asyncio
import statistics
from contextlib import closing
from pathlib import Path
from typing import Final

from fairlane.model import ledger
from fairlane.model.instants import SECOND
from tests.campaigns.book import read
from tests.campaigns.clock import SharedClock
from tests.campaigns.errand import Errand
from tests.campaigns.field import Field, Worker, staged
from tests.faults.campaign import moment
from tests.simulation.crowd import run_seeds
from tests.simulation.replay import record, replay
from tests.simulation.seeds import quiet, seams
from tests.stores import STORES

JUMPS: Final = (-5.0, -0.5, 0.5, 6.0, 30.0, 3_600.0)
"""Seconds; back only as far as a test can wait."""

GROWTH: Final = 1.05
DRIFT: Final = 1.5
SOAKED: Final = 100_000
"""Jobs after which growth and drift are judged; before that they are only told."""


def _next_seed(campaign: str, store: str) -> int:
    """Go on after the last seed that any piece has run."""
    pieces = [one for one in read() if (one.campaign, one.store) == (campaign, store)]
    return max((int(one.figures.get("next_seed", 0)) for one in pieces), default=0)


async def simulate(errand: Errand) -> None:
    """Run seeds of the simulation that no piece has run before."""
    seed = _next_seed("simulation", errand.store)
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
    seed = _next_seed("replay", errand.store)
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


async def soak(errand: Errand) -> None:
    """Let one worker run jobs for long; its memory and the wait of jobs stay as they are."""
    async with staged(errand) as field:
        await field.hire_ready(1, slots=16)
        (worker,) = field.workers
        sizes: list[float] = []
        async with field.fed((0.0,), backlog=64):
            while errand.goes_on:
                await field.until_more_start(min(1_000, errand.wanted - errand.n))
                sizes.append(_memory(worker))
                errand.n = min(errand.wanted, len(field.starts))
        _judge_soak(errand, field, sizes)


def _judge_soak(errand: Errand, field: Field, sizes: list[float]) -> None:
    """Compare the last fifth with the second one: the first is the worker's own youth."""
    acknowledged = {one.job: one.at for one in field.records if isinstance(one, ledger.Acknowledged)}
    first = [starts[0] for job, starts in field.starts.items() if job in acknowledged]
    waits = [one.at - acknowledged[one.job] for one in sorted(first, key=lambda one: one.at)]
    fifth = max(1, len(waits) // 5)
    drift = statistics.median(waits[-fifth:]) / max(1, statistics.median(waits[fifth : 2 * fifth]))
    fifth = max(1, len(sizes) // 5)
    growth = statistics.median(sizes[-fifth:]) / statistics.median(sizes[fifth : 2 * fifth] or sizes)
    errand.settings["memory"] = f"{sizes[0]:.1f} to {sizes[-1]:.1f} MB, last fifth {growth:.3f} of the second"
    errand.settings["wait"] = (
        f"{statistics.median(waits) / SECOND:.3f} s, last fifth {drift:.2f} of the second"
    )
    if errand.n >= SOAKED:
        if growth > GROWTH:
            errand.fail(f"memory grew to {growth:.3f} of what it was")
        if drift > DRIFT:
            errand.fail(f"jobs waited {drift:.2f} of what they did before")


def _memory(worker: Worker) -> float:
    """Give the memory of a worker that no other process shares, in megabytes."""
    lines = Path(f"/proc/{worker.popen.pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1_024
