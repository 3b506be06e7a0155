"""What these measurements add to `fairlane bench`: a store for each, many producers, quantiles."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from redis.asyncio import Redis

from fairlane.lab.bench.driver import BATCH, Driver
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.location import Location
from fairlane.store.postgres.statements import quoted

_OURS: Final = f"fairlane_bench_{os.getpid()}_"
"""What the schemas or keys of this process begin with."""


class MeasuredStore(Driver):
    """One empty store to measure."""

    def __init__(self, place: str, name: object) -> None:
        """Use a new file in a folder, or a new schema or key prefix on the server of a URL."""
        is_server = "://" in place
        self.url = own_url(place, f"{name}") if is_server else f"sqlite:///{place}/bench{name}.db"
        super().__init__(self.url)

    async def fill_at_once(self, jobs: int, tenants: int, producers: int) -> float:
        """Enqueue with this many producers at the same time; return the seconds it took."""
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


def own_url(url: str, name: str) -> str:
    """Return the URL with a schema, or on Redis a key prefix, that nobody else uses; another one is replaced.

    >>> own_url("postgresql://host/db?pool=4", "a-b").partition("&")[2].startswith("schema=fairlane_bench_")
    True
    >>> own_url("redis://host?prefix=x", "a-b").partition("?")[2].startswith("prefix=fairlane_bench_")
    True
    """
    option = _option(url)
    server, _, options = _without(url, option).partition("?")
    own = f"{option}={_OURS}{name.replace('-', '_')}"
    return f"{server}?{options}&{own}" if options else f"{server}?{own}"


def _option(url: str) -> str:
    return "schema" if url.startswith("postgres") else "prefix"


def _without(url: str, option: str) -> str:
    server, _, options = url.partition("?")
    others = "&".join(one for one in options.split("&") if one and not one.startswith(f"{option}="))
    return f"{server}?{others}" if others else server


async def clean(url: str) -> None:
    """Remove the schemas or keys that this process created."""
    if url.startswith("postgres"):
        await _drop_schemas(url)
    else:
        await _drop_keys(url)


async def _drop_schemas(url: str) -> None:
    async with Server(Location(url)).apart() as connection:
        for (schema,) in await connection.fetch(
            "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)", _OURS
        ):
            await connection.execute(f"DROP SCHEMA {quoted(schema)} CASCADE")


async def _drop_keys(url: str) -> None:
    async with Redis.from_url(_without(url, _option(url))) as client:
        keys = [key async for key in client.scan_iter(match=f"{{{_OURS}*", count=10_000)]
        for start in range(0, len(keys), BATCH):
            await client.unlink(*keys[start : start + BATCH])


async def seconds(work: Callable[[], Awaitable[Any]]) -> float:
    """Time one piece of work."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def quantiles(times: Iterable[float]) -> dict[str, float]:
    """Return p50, p95 and p99 in milliseconds."""
    cuts = statistics.quantiles(times, n=100)
    return {f"p{n}_ms": 1e3 * cuts[n - 1] for n in (50, 95, 99)}
