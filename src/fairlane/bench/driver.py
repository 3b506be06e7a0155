"""Drive one queue of a store through its contract, as clients and workers would, without either."""

from __future__ import annotations

import random
import time
from typing import Any, Final

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

ALL: Final = Scope.all()
BATCH: Final = 1_000
SUCCEEDED: Final = Succeeded()
PAYLOAD: Final = b'{"v":1,"arguments":{"text":"%s"}}' % (b"x" * 164)


class Driver:
    """One queue of the store that is measured."""

    def __init__(self, url: str, queue: str = "default") -> None:
        self.store: Store = open_store(url)
        self.queue = queue
        self._ids = IdMaker(random.getrandbits)

    def new(self, tenant: str, **values: Any) -> NewJob:
        """Give a job as a client would send it, with a payload of 200 bytes."""
        values = {"queue": self.queue, "task": "noop", **values}
        id = self._ids.next(time.time_ns() // 1000)
        return NewJob(id=id, tenant=tenant, payload=PAYLOAD, checksum=0, **values)

    async def fill(self, jobs: int, tenants: int, prefix: str = "t", **values: Any) -> float:
        """Enqueue jobs in turn for so many tenants; give the seconds it took."""
        spent = 0.0
        for start in range(0, jobs, BATCH):
            numbers = range(start, min(jobs, start + BATCH))
            batch = tuple(self.new(f"{prefix}{number % tenants}", **values) for number in numbers)
            before = time.perf_counter()
            await self.enqueue(*batch)
            spent += time.perf_counter() - before
        return spent

    async def enqueue(self, *jobs: NewJob) -> None:
        """Enqueue one batch."""
        await self.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs))

    async def claim(self, most: int, queue: str | None = None) -> tuple[Claim, ...]:
        """Claim for one worker."""
        wishes = (Wish(queue or self.queue, most),)
        request = ClaimRequest(scope=ALL, worker="bench", lease=600 * SECOND, wishes=wishes, total=most)
        return (await self.store.claims.claim(request)).claims

    async def settle(self, claims: tuple[Claim, ...], ending: Ending = SUCCEEDED) -> None:
        """End attempts."""
        settlements = tuple(judge(claim, ending, draw=0.5) for claim in claims)
        await self.store.claims.settle(SettleRequest(scope=ALL, worker="bench", settlements=settlements))

    async def pause(self, kind: Kind, name: str) -> None:
        """Hold a tenant or a task."""
        subject = Subject(kind, name)
        await self.store.policies.pause(HoldRequest(scope=ALL, subject=subject, who="bench", reason="bench"))

    async def declare(self, kind: Kind, name: str, rules: Rules) -> None:
        """Set the rules of a subject."""
        await self.store.policies.put(PutRequest(scope=ALL, rules={Subject(kind, name): rules}))
