"""What these measurements add to those of `fairlane bench`: a file for each, many producers, quantiles."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fairlane.bench.driver import BATCH, Driver


class Bench(Driver):
    """One empty store of the kind that is measured."""

    def __init__(self, folder: str, name: object) -> None:
        """Give it a file of its own."""
        super().__init__(f"sqlite:///{folder}/bench{name}.db")

    async def fill_at_once(self, jobs: int, tenants: int, producers: int) -> float:
        """Enqueue as so many producers do at the same time; give the seconds it took."""
        batches = iter(
            [
                tuple(self.new(f"t{number % tenants}") for number in range(start, min(jobs, start + BATCH)))
                for start in range(0, jobs, BATCH)
            ]
        )

        async def produce() -> None:
            for batch in batches:
                await self.enqueue(*batch)

        return await seconds(lambda: asyncio.gather(*(produce() for _ in range(producers))))


async def seconds(work: Callable[[], Awaitable[Any]]) -> float:
    """Time one piece of work."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def quantiles(times: Iterable[float]) -> dict[str, float]:
    """Give the usual ones in milliseconds."""
    cuts = statistics.quantiles(times, n=100)
    return {f"p{n}_ms": 1e3 * cuts[n - 1] for n in (50, 95, 99)}
