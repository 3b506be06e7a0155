"""What all measurements stand on: a store of its own, jobs as a client sends them, times and quantiles."""

from __future__ import annotations

import asyncio
import os
import platform
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from typing import Any

import apsw

from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim, NewJob
from fairlane.model.judge import Ending, Succeeded, judge
from fairlane.model.layers import Kind, Rules, Subject
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import ClaimRequest, SettleRequest, Wish
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.policies import HoldRequest, PutRequest
from fairlane.store.opening import open_store

ALL = Scope.all()
BATCH = 1_000
SUCCEEDED = Succeeded()
PAYLOAD = b'{"v":1,"arguments":{"text":"%s"}}' % (b"x" * 164)


class Bench:
    """One empty store of the kind that is measured."""

    def __init__(self, folder: str, name: object) -> None:
        """Give it a file of its own."""
        self.store: Store = open_store(f"sqlite:///{folder}/bench{name}.db")
        self._ids = IdMaker(random.getrandbits)

    def new(self, tenant: str, **values: Any) -> NewJob:
        """Give a job as a client would send it, with a payload of 200 bytes."""
        values = {"queue": "default", "task": "noop", **values}
        id = self._ids.next(time.time_ns() // 1000)
        return NewJob(id=id, tenant=tenant, payload=PAYLOAD, checksum=0, **values)

    async def fill(self, jobs: int, tenants: int, prefix: str = "t") -> float:
        """Enqueue jobs in turn for so many tenants; give the seconds it took."""
        spent = 0.0
        for start in range(0, jobs, BATCH):
            numbers = range(start, min(jobs, start + BATCH))
            batch = tuple(self.new(f"{prefix}{number % tenants}") for number in numbers)
            spent += await seconds(lambda batch=batch: self.enqueue(*batch))  # type: ignore[misc]
        return spent

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

    async def enqueue(self, *jobs: NewJob) -> None:
        """Enqueue one batch."""
        await self.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs))

    async def claim(self, most: int, queue: str = "default") -> tuple[Claim, ...]:
        """Claim for one worker."""
        wishes = (Wish(queue, most),)
        request = ClaimRequest(scope=ALL, worker="bench", lease=600 * SECOND, wishes=wishes, total=most)
        return (await self.store.claims.claim(request)).claims

    async def settle(self, claims: tuple[Claim, ...], ending: Ending = SUCCEEDED) -> None:
        """End attempts."""
        settlements = tuple(judge(claim, ending, draw=0.5) for claim in claims)
        await self.store.claims.settle(SettleRequest(scope=ALL, worker="bench", settlements=settlements))

    async def pause(self, tenant: str) -> None:
        """Hold a tenant."""
        subject = Subject(Kind.TENANT, tenant)
        await self.store.policies.pause(HoldRequest(scope=ALL, subject=subject, who="bench", reason="bench"))

    async def declare(self, kind: Kind, name: str, rules: Rules) -> None:
        """Set the rules of a subject."""
        await self.store.policies.put(PutRequest(scope=ALL, rules={Subject(kind, name): rules}))


async def seconds(work: Callable[[], Awaitable[Any]]) -> float:
    """Time one piece of work."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def quantiles(times: Iterable[float]) -> dict[str, float]:
    """Give the usual ones in milliseconds."""
    cuts = statistics.quantiles(times, n=100)
    return {f"p{n}_ms": 1e3 * cuts[n - 1] for n in (50, 95, 99)}


def host() -> dict[str, Any]:
    """Say on what this was measured."""
    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "fairlane": version("fairlane"),
        "sqlite": apsw.sqlite_lib_version(),
        "machine": platform.machine(),
    }
