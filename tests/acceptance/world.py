"""A real store with a clock that tests drive, applications on it, and a hand that acts as a worker.

The hand claims, decodes, judges and settles through the store's contract; it runs no handler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from fairlane import Fairlane, Job, Lane, Queue, Task
from fairlane.app.task.declaration import Declaration
from fairlane.model.failure import BUILT_IN
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import Claim, JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.payload.encoding import decode_arguments, encode_result, verify
from fairlane.model.payload.enums import NO_ENUMS
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import AttemptResult, Succeeded, decide_settlement, interpret
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import (
    ClaimReply,
    ClaimRequest,
    PassRequest,
    PromoteReply,
    QueueRequest,
    ReclaimReply,
    ReclaimRequest,
    SettleRequest,
)
from fairlane.store.contract.jobs import MAX_BATCH_SIZE, GetRequest
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from fairlane.store.opening import StoreClock, open_store, register_scheme
from fairlane.worker.startup.declare import declare_policies
from tests.acceptance.presets import Preset
from tests.oracle.clock import DrivenClock

ALL: Final = Scope.all()
LEASE: Final[Micros] = 12 * SECOND
WORKER: Final = "worker-1"

_SCHEME: Final = "driven"

ON_A_FILE: Final = pytest.mark.parametrize("world", ["sqlite"], indirect=True)
"""For a test that lays its hand on the store's file."""


class World:
    """One place. What an application declares is in force once `declare` was called, as after a start.

    `is_recounted`: at the end of a test the store's books are compared with a recount of every job.
    """

    def __init__(self, place: str, folder: Path, clock: DrivenClock | None = None) -> None:
        """Open nothing yet. `place` is the store's URL, `folder` is there to be written into."""
        self.clock = clock or DrivenClock()
        self.place = place
        self.folder = folder
        self._scheme = place.partition(":")[0]
        self.url = place.replace(self._scheme, _SCHEME, 1)
        self.apps: list[Fairlane] = []
        self.is_recounted = True
        register_scheme(_SCHEME, self._open)
        self.store = open_store(self.url)

    def _open(self, url: str, clock: StoreClock | None) -> Store:
        return open_store(url.replace(_SCHEME, self._scheme, 1), clock=clock or self.clock)

    def beside(self) -> World:
        """Return a second world on the same place and clock, like another machine."""
        return World(self.place, self.folder, self.clock)

    async def aclose(self) -> None:
        """Close every application and the hand's own store."""
        for app in self.apps:
            await app.aclose()
        await self.store.upkeep.aclose()

    # ── applications ──────────────────────────────────────────────────────────

    def app(self, **settings: Any) -> Fairlane:
        """Make an application on this file; the hand works for the newest one."""
        made = Fairlane(self.url, **settings)
        self.apps.append(made)
        return made

    def one_lane(self, slots: int, *queues: str) -> Fairlane:
        """Make an application with one lane over some queues; one tenant may have all of its slots."""
        named = queues or ("default",)
        lane = Lane("main", slots, named, headroom=0)
        return self.app(queues=[Queue(name) for name in named], lanes=[lane])

    async def open(self, preset: Preset) -> Preset:
        """Put a preset into force."""
        self.apps.append(preset.app)
        await self.declare()
        return preset

    async def declare(self) -> None:
        """Write what the newest application declares, as the start of its worker does (S54)."""
        await declare_policies(self.apps[-1], self.store)

    async def fill(self, task: Task[..., Any], number: int, tenant: str = "acme") -> list[Job[Any]]:
        """Enqueue so many jobs of a task for a tenant, in batches."""
        call = task.using(tenant=tenant).bind()
        jobs: list[Job[Any]] = []
        while len(jobs) < number:
            jobs += await self.apps[-1].aenqueue_many([call] * min(MAX_BATCH_SIZE, number - len(jobs)))
        return jobs

    # ── time ──────────────────────────────────────────────────────────────────

    @property
    def now(self) -> Instant:
        """What time it is in the store."""
        return self.clock.now()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)

    # ── the hand ──────────────────────────────────────────────────────────────

    async def ask(self, total: int, *queue_requests: tuple[str, int], worker: str = WORKER) -> ClaimReply:
        """Claim once and return the whole reply."""
        request = ClaimRequest(
            scope=ALL,
            worker=worker,
            lease=LEASE,
            queue_requests=tuple(QueueRequest(*queue_request) for queue_request in queue_requests),
            total=total,
        )
        return await self.store.claims.claim(request)

    async def claim(self, total: int, queue: str = "default", *, worker: str = WORKER) -> list[Claim]:
        """Claim up to so many jobs of a queue, asking again while the store says that it stopped early."""
        claims: list[Claim] = []
        while len(claims) < total:
            reply = await self.ask(total - len(claims), (queue, total - len(claims)), worker=worker)
            claims += reply.claims
            if not reply.is_partial:
                break
        return claims

    async def take(self, queue: str = "default", *, worker: str = WORKER) -> Claim:
        """Claim exactly one job, which must be there."""
        (claim,) = await self.claim(1, queue, worker=worker)
        return claim

    async def settle(
        self, claim: Claim, ending: AttemptResult, *, draw: float = 0.5, worker: str = WORKER
    ) -> State | None:
        """End an attempt by the policies of its task and queue; None if the claim is stale."""
        task, queue = self._task(claim), self.apps[-1].settings.queue(claim.job.queue)
        verdict = decide_settlement(
            claim, ending, None if task is None else task.retry, queue.retry, draw=draw
        )
        request = SettleRequest(scope=ALL, worker=worker, settlements=(verdict,))
        reply = await self.store.claims.settle(request)
        return None if reply.stale else reply.settled[0].state

    async def succeed(self, result: object = None, queue: str = "default") -> Claim:
        """Run the next job of a queue to a good end."""
        claim = await self.take(queue)
        assert await self.settle(claim, Succeeded(encode_result(result))) is State.SUCCEEDED
        return claim

    async def fail(self, error: BaseException, queue: str = "default", *, draw: float = 0.5) -> State | None:
        """Run the next job of a queue into an error, classified as its task says."""
        return await self.fail_claim(await self.take(queue), error, draw=draw)

    async def fail_claim(
        self, claim: Claim, error: BaseException, *, draw: float = 0.5, worker: str = WORKER
    ) -> State | None:
        """End a claimed attempt by an error, classified as its task says."""
        task = self._task(claim)
        classify = None if task is None else task.classify
        return await self.settle(claim, interpret(error, classify, [BUILT_IN]), draw=draw, worker=worker)

    async def fail_until_dead(self, error: BaseException, queue: str = "default") -> list[float]:
        """Fail every attempt of the one job of a queue; return the waits between attempts, in seconds."""
        waits: list[float] = []
        while await self.fail(error, queue) is not State.DEAD:
            reply = await self.ask(1, (queue, 1))
            assert not reply.claims
            assert reply.next_due_at is not None
            waits.append((reply.next_due_at - self.now) / SECOND)
            self.advance(waits[-1])
        return waits

    def arguments(self, claim: Claim) -> dict[str, Any]:
        """Read the arguments of a claimed job as a worker does: checked, then decoded."""
        verify(claim.job.payload, claim.job.checksum)
        task = self._task(claim)
        enums = NO_ENUMS if task is None else task.handler.argument_enums
        return decode_arguments(claim.job.payload, enums=enums)

    def _task(self, claim: Claim) -> Declaration | None:
        return self.apps[-1].client.registry.find(claim.job.task)

    # ── upkeep ────────────────────────────────────────────────────────────────

    async def promote(self, limit: int = 1_000) -> PromoteReply:
        """Make due jobs ready."""
        return await self.store.claims.promote(PassRequest(scope=ALL, limit=limit))

    async def reclaim(self) -> ReclaimReply:
        """Take back claims whose lease ran out."""
        return await self.store.claims.reclaim(ReclaimRequest(scope=ALL))

    async def prune(self, retention: Retention | None = None) -> PruneReply:
        """Prune, by the application's own retention unless another is given."""
        kept = retention or self.apps[-1].settings.retention
        return await self.store.upkeep.prune(PruneRequest(scope=ALL, retention=kept))

    async def record(self, job: Job[Any]) -> JobRecord:
        """Return a job as the store keeps it."""
        return (await self.store.jobs.get(GetRequest(scope=ALL, ids=(job.id,))))[job.id]
