"""Run seeds on all cores: ``python -m tests.simulation --seeds 2000``; one again with ``--seed N --trace``.

Prints how many seeds were run, how many a minute, and of each that failed what was wrong and what happened
last. The same seed always goes the same way.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator

from tests.simulation.crowd import CORES, run_seeds
from tests.simulation.seeds import OPERATIONS, TRACED, Outcome, quiet, run_seed, seams


def main() -> int:
    """Run what was asked for, and fail if any seed did."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--operations", type=int, default=OPERATIONS, help="what clients do in each")
    parser.add_argument("--processes", type=int, default=CORES, help="how many run seeds at the same time")
    parser.add_argument("--trace", action="store_true", help="print all that happened")
    said = parser.parse_args()
    first, number = (said.first, said.seeds) if said.seed is None else (said.seed, 1)
    failed = 0
    sums: Counter[str] = Counter()
    began, began_cpu = time.monotonic(), _cpu()
    seeds = range(first, first + number)
    is_alone = said.trace or said.processes == 1 or number == 1
    for outcome in _here(seeds, said) if is_alone else run_seeds(seeds, said.operations, said.processes):
        sums.update(outcome.figures)
        sums.update(steps=outcome.steps, virtual_seconds=outcome.virtual // 1_000_000)
        if outcome.wrong:
            failed += 1
        if outcome.wrong or said.trace:
            _show(outcome)
    took, cpu = time.monotonic() - began, _cpu() - began_cpu
    print(", ".join(f"{name.replace('_', ' ')} {number}" for name, number in sums.items()))
    pace = f"{number / took * 60:.0f} a minute, {number / cpu * 60:.0f} a minute of one core"
    print(f"{number} seeds from {first}, {failed} failed; {took:.1f} s, {pace}")
    return 1 if failed else 0


def _here(seeds: range, said: argparse.Namespace) -> Iterator[Outcome]:
    """Run seeds in this process."""
    with seams(), quiet():
        for seed in seeds:
            yield run_seed(seed, said.operations, traced=10**9 if said.trace else TRACED)


def _cpu() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _show(outcome: Outcome) -> None:
    print(f"seed {outcome.seed}: {'failed' if outcome.wrong else 'kept every promise'}")
    for line in outcome.trace:
        print(f"  {line}")
    for wrong in outcome.wrong[:10]:
        print(f"  WRONG: {wrong}")


if __name__ == "__main__":
    raise SystemExit(main())
