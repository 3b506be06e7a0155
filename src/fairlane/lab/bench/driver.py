"""Drive one queue of a store through its contract, without a client or worker."""

from __future__ import annotations

import random
import time
from typing import Any, Final

from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim, NewJob
from fairlane.model.payload.encoding import checksum
from fairlane.model.policy.overrides import Rules, Subject, SubjectKind
from fairlane.model.retry.decision import AttemptResult, Succeeded, decide_settlement
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import ClaimRequest, QueueRequest, SettleRequest
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.policies import HoldRequest, PutRequest
from fairlane.store.opening import open_store

ALL: Final = Scope.all()
BATCH: Final = 1_000
SUCCEEDED: Final = Succeeded()
PAYLOAD: Final = b'{"v":1,"arguments":{"text":"%s"}}' % (b"x" * 164)
CHECKSUM: Final = checksum(PAYLOAD)


class Driver:
    """One queue of the measured store."""

    def __init__(self, url: str, queue: str = "default") -> None:
        self.store: Store = open_store(url)
        self.queue = queue
        self._ids = IdMaker(random.getrandbits)

    def new(self, tenant: str, **values: Any) -> NewJob:
        """Return a job with a payload of 200 bytes, as a client would send it."""
        values = {"queue": self.queue, "task": "noop", **values}
        id = self._ids.next(time.time_ns() // 1000)
        return NewJob(id=id, tenant=tenant, payload=PAYLOAD, checksum=CHECKSUM, **values)

    async def fill(self, jobs: int, tenants: int, prefix: str = "t", **values: Any) -> float:
        """Enqueue jobs for this many tenants in turn; return the seconds it took."""
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

    async def claim(self, limit: int, queue: str | None = None) -> tuple[Claim, ...]:
        """Claim up to `limit` jobs for one worker."""
        queue_requests = (QueueRequest(queue or self.queue, limit),)
        request = ClaimRequest(
            scope=ALL, worker="bench", lease=600 * SECOND, queue_requests=queue_requests, total=limit
        )
        return (await self.store.claims.claim(request)).claims

    async def settle(self, claims: tuple[Claim, ...], ending: AttemptResult = SUCCEEDED) -> None:
        """Settle these claims."""
        settlements = tuple(decide_settlement(claim, ending, draw=0.5) for claim in claims)
        await self.store.claims.settle(SettleRequest(scope=ALL, worker="bench", settlements=settlements))

    async def pause(self, kind: SubjectKind, name: str) -> None:
        """Pause a tenant or a task."""
        subject = Subject(kind, name)
        await self.store.policies.pause(HoldRequest(scope=ALL, subject=subject, who="bench", reason="bench"))

    async def declare(self, kind: SubjectKind, name: str, rules: Rules) -> None:
        """Declare the rules of a subject."""
        await self.store.policies.put(PutRequest(scope=ALL, rules={Subject(kind, name): rules}))
