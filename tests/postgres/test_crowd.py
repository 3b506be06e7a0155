"""Many claimers at once, on one tenant and on a thousand, and beside them everybody else who touches jobs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from fairlane.model.job import Claim
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, QueueRules, Subject, SubjectKind, TaskRules
from fairlane.store.contract.jobs import EnqueueRequest, StopRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, HANDED_BACK, SUCCEEDED, World
from tests.oracle.clock import DrivenClock
from tests.servers.postgres import HASTY, MEMORY, PostgresServer

CLAIMERS = 32
JOBS = 3_000
TURNS = 25
LIMIT = 3
PLACES = 4


@pytest.fixture(scope="module")
def crowded() -> Iterator[PostgresServer]:
    """A server of the module's own, whose log nobody else writes to."""
    server = PostgresServer(*HASTY, "deadlock_timeout=50ms", folder=MEMORY)
    server.start()
    yield server
    server.close()


@pytest.fixture
async def store(crowded: PostgresServer) -> AsyncIterator[PostgresStore]:
    """An empty store on it, with a connection for each of the crowd."""
    store = PostgresStore(f"{crowded.url}&schema=crowd&pool={CLAIMERS + 2}")
    async with store._server.apart() as connection:
        await connection.execute("DROP SCHEMA IF EXISTS crowd CASCADE")
    await store.upkeep.migrate()
    yield store
    await store.upkeep.aclose()
    assert "deadlock detected" not in crowded.log.read_text()


@pytest.mark.parametrize("tenants", [1, 1_000])
async def test_a_crowd_of_claimers_takes_each_job_once_and_never_leaves_empty_handed(
    store: PostgresStore, tenants: int
) -> None:
    """S35: no job twice, none left; after an answer of nothing nobody who asks then gets anything."""
    world = World(store, DrivenClock())
    for _ in range(JOBS // 1_000):
        await world.send(*(world.new(f"t{number % tenants}") for number in range(1_000)))
    taken: list[Claim] = []
    is_empty = False

    async def claim_all() -> None:
        nonlocal is_empty
        while True:
            was_empty = is_empty
            reply = await world.claim_reply(20)
            taken.extend(reply.claims)
            assert not (was_empty and reply.claims), "somebody was told that there was nothing"
            if not reply.claims and not reply.is_partial:
                is_empty = True
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(CLAIMERS):
            group.create_task(claim_all())
    assert len(taken) == len({claim.job.id for claim in taken}) == JOBS


class Crowd:
    """Everybody who touches jobs at once."""

    def __init__(self, store: PostgresStore, server: PostgresServer) -> None:
        """Begin with nothing claimed."""
        self.store = store
        self.server = server
        self.world = World(store, DrivenClock())
        self.sent = 0

    async def declare(self) -> None:
        """Limit each tenant, and let one task through a gate."""
        await self.world.put({
            Subject(SubjectKind.QUEUE, "default"): QueueRules(limits=Limits(running=LIMIT)),
            Subject(SubjectKind.QUEUE, "other"): QueueRules(),
            Subject(SubjectKind.TASK, "shoot"): TaskRules(gate="door"),
            Subject(SubjectKind.GATE, "door"): GateRules(limit=PLACES),
        })  # fmt: skip

    def batch(self, rng: random.Random) -> EnqueueRequest:
        """Return some jobs to enqueue."""
        jobs = tuple(
            self.world.new(
                f"t{rng.randrange(8)}",
                queue=rng.choice(("default", "other")),
                task=rng.choice(("noop", "shoot")),
            )
            for _ in range(rng.randint(1, 6))
        )
        self.sent += len(jobs)
        return EnqueueRequest(scope=ALL, jobs=jobs)

    async def work(self, name: str, seed: int) -> None:
        """Claim, renew, settle, hand back; now and then cancel what others hold or wait for."""
        rng = random.Random(seed)
        held: list[Claim] = []
        for _ in range(TURNS):
            await self.store.jobs.enqueue(self.batch(rng))
            queue_requests = [(queue, 5) for queue in rng.sample(("default", "other"), 2)]
            held += (await self.world.claim_reply(8, queue_requests=queue_requests, worker=name)).claims
            await self.check()
            await self.world.renew(*held, worker=name)
            some = [held.pop(rng.randrange(len(held))) for _ in range(rng.randint(0, len(held)))]
            verdicts = (self.world.verdict(claim, rng.choice((SUCCEEDED, HANDED_BACK))) for claim in some)
            await self.world.settle_reply(*verdicts, worker=name)
            waiting = await self.world.peek(2, rng.choice(("default", "other")))
            await self.store.jobs.cancel(
                StopRequest(scope=ALL, ids=tuple(job.id for job in waiting), reason="gone", who="ops")
            )
        await self.world.settle_reply(*map(self.world.verdict, held), worker=name)

    async def enqueue_slowly(self, seed: int) -> None:
        """Enqueue in transactions that stay open while others come and go."""
        rng = random.Random(seed)
        connection = await asyncpg.connect(self.server.url)
        try:
            for _ in range(TURNS):
                async with connection.transaction():
                    await self.store.jobs.enqueue_in(connection, self.batch(rng))
                    await self.store.jobs.enqueue(self.batch(rng))
                    await self.store.jobs.enqueue_in(connection, self.batch(rng))
        finally:
            await connection.close()

    async def check(self) -> None:
        """Demand that no limit and no gate is passed, as one snapshot sees it."""
        over = await self.store._server.fetch(
            """SELECT 'limit' FROM crowd.job WHERE state = 'running' AND queue = 'default'
               GROUP BY tenant HAVING count(*) > $1
               UNION ALL SELECT 'gate' FROM crowd.job WHERE gate IS NOT NULL HAVING count(*) > $2""",
            LIMIT,
            PLACES,
        )
        assert not over


async def test_limits_and_gates_hold_in_a_crowd_and_nobody_waits_in_a_circle(
    store: PostgresStore, crowded: PostgresServer
) -> None:
    """S43, S45: claims, renewals, settlements, cancels, open transactions at once; then all is done."""
    crowd = Crowd(store, crowded)
    await crowd.declare()
    async with asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task(crowd.work(f"w{number}", number))
        for number in range(4):
            group.create_task(crowd.enqueue_slowly(100 + number))
    while True:
        reply = await crowd.world.claim_reply(50, queue_requests=[("default", 50), ("other", 50)])
        if not reply.claims and not reply.is_partial:
            break
        await crowd.world.settle_reply(*map(crowd.world.verdict, reply.claims))
    await crowd.world.check_invariants()
    counts = await crowd.world.counts()
    assert sum(counts.values()) == crowd.sent
