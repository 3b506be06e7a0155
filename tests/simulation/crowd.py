"""Run many seeds on all cores: each is a world of its own, so that they need nothing of each other."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final

from tests.simulation.seeds import OPERATIONS, Outcome, quiet, run_seed, seams

CORES: Final = os.cpu_count() or 1
_AT_ONCE: Final = 10


def run_seeds(
    seeds: Iterable[int], operations: int = OPERATIONS, processes: int = CORES
) -> Generator[Outcome]:
    """Run seeds in so many processes; give the outcomes in the order of the seeds, until nobody asks."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _settle_in)
    try:
        yield from pool.map(partial(_run, operations), seeds, chunksize=_AT_ONCE)
    finally:
        pool.shutdown(cancel_futures=True)


def _settle_in() -> None:
    """Look for garbage seldom, and never among what was imported: a sixth of the time goes into it else."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)


def _run(operations: int, seed: int) -> Outcome:
    with seams(), quiet():
        return run_seed(seed, operations)
