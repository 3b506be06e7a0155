"""Every verb about a few jobs touches few rows, however many there are and whatever the planner believes.

Plans are made on an emptied schema and cached; nothing is vacuumed or analysed after, as in `test_plans`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from fairlane.model.instants import SECOND
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, Subject, SubjectKind, TaskRules, TenantRules
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import WorkerRequest
from fairlane.store.contract.dead import DeadRequest, DeadTallyRequest
from fairlane.store.contract.jobs import PeekRequest
from fairlane.store.contract.journal import EntriesRequest, TrimRequest
from fairlane.store.contract.upkeep import ForgetRequest, PurgeRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World, failed, ruined
from tests.oracle.clock import DrivenClock
from tests.postgres.beliefs import BELIEFS, mislead
from tests.servers.postgres import HASTY, MEMORY, PostgresServer

THOUSANDS = 3
"""Of jobs that wait, two in three of them for a time, and one more that is finished, half of it dead."""
RUNNING = 100
FEW = 300
"""Rows that one verb may touch, with all its look-ups of tenant queues, keys and rules."""

_TOUCHED = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM pg_stat_user_tables
WHERE schemaname = 'moves'
"""

_keys = count()


@pytest.fixture(scope="module")
def idle() -> Iterator[PostgresServer]:
    """A server on which nobody vacuums or analyses by himself."""
    server = PostgresServer(*HASTY, "autovacuum=off", folder=MEMORY)
    server.start()
    yield server
    server.close()


@pytest.fixture(params=BELIEFS)
async def full(request: pytest.FixtureRequest, idle: PostgresServer) -> AsyncIterator[World]:
    """A store whose plans were made while it was empty and the planner misled, and which is full now."""
    clock = DrivenClock()
    store = PostgresStore(f"{idle.url}&schema=moves&pool=1", clock.now)
    async with store._server.apart() as connection:
        await connection.execute("DROP SCHEMA IF EXISTS moves CASCADE")
        await store.upkeep.migrate()
        await mislead(connection, "moves", request.param)
    world = World(store, clock)
    for _ in range(7):  # more often than the planner thinks twice
        for verb in VERBS.values():
            await verb(world)
    for number in range(THOUSANDS + 1):
        delays = (0 if number == THOUSANDS else n % 3 * 3_600 * SECOND for n in range(999))
        waits = [world.new(f"t{n % 50}", delay=delay) for n, delay in enumerate(delays)]
        await world.send(world.new(idempotency_key=f"kept {number}"), *waits)
    claims = await world.claim(1_000)
    await world.settle_reply(*map(world.verdict, claims[:500]))
    await world.settle_reply(*(world.verdict(claim, ruined()) for claim in claims[500:]))
    await world.claim(RUNNING, worker="busy", lease=10_000 * SECOND)
    yield world
    await store.upkeep.aclose()


async def touched(world: World) -> int:
    """Count the rows that were read so far by the store's one connection."""
    server = world.store._server  # type: ignore[attr-defined]
    await server.fetch("SELECT pg_stat_force_next_flush()")
    await server.fetch("SELECT pg_stat_clear_snapshot()")
    return int(await server.value(_TOUCHED))


async def enqueue(world: World) -> None:
    """One job with both keys, and the same again."""
    keys = {"idempotency_key": f"k{next(_keys)}", "dedup_key": f"d{next(_keys)}"}
    await world.send(world.new(**keys))
    await world.send(world.new(**keys))


async def renew(world: World) -> None:
    """Keep a claim, and ask for one that nobody holds."""
    await world.enqueue("renewing", priority=100)
    claim = await world.claim_one()
    strange = msgspec.structs.replace(claim, job=msgspec.structs.replace(claim.job, id=uuid4()))
    assert (await world.renew(claim, strange)).stale == (strange.job.id,)
    await world.settle(claim)


async def cancel(world: World) -> None:
    """Cancel what waits and what runs."""
    job = await world.enqueue("cancelling", delay=3_600 * SECOND)
    await world.cancel(job.id)
    await world.enqueue("cancelling", priority=100)
    claim = await world.claim_one()
    await world.cancel(claim.job.id)
    await world.store.claims.cancel_asked(WorkerRequest(scope=ALL, worker="w1"))
    await world.settle(claim)


async def change(world: World) -> None:
    """Edit one job, run one now and condemn one."""
    job = await world.enqueue("changing", delay=3_600 * SECOND)
    await world.edit(job.id, priority=5)
    await world.run_now(job.id)
    await world.condemn(job.id)


async def reclaim(world: World) -> None:
    """Take back a claim."""
    await world.enqueue("losing", priority=100)
    await world.claim_one(lease=SECOND)
    world.advance(2)
    assert len((await world.reclaim()).lost) == 1
    (claim,) = await world.claim(1)
    await world.settle(claim)


async def expire(world: World) -> None:
    """Let a job expire."""
    await world.enqueue("expiring", delay=3_600 * SECOND, expires_in=SECOND)
    world.advance(2)
    assert await world.expire() == 1


async def look(world: World) -> None:
    """Get one job by its id and say why it waits."""
    job = await world.enqueue("looking", delay=3_600 * SECOND)
    assert (await world.get(job.id)).tenant == "looking"
    assert not await world.is_known(uuid4())
    await world.explain(job.id)
    await world.cancel(job.id)


async def take(world: World, tenant: str, **values: str) -> None:
    """Claim what comes in before all others, as far as limits allow; retry half of it, then all succeeds."""
    await world.send(*(world.new(tenant, priority=100, **values) for _ in range(4)))
    claims = await world.claim(2)
    await world.settle_reply(*(world.verdict(claim, failed(after=SECOND)) for claim in claims))
    world.advance(2)
    await world.promote()
    for _ in range(2):
        await world.settle_reply(*map(world.verdict, await world.claim(2)))


async def serve(world: World) -> None:
    """Let nothing hold them back."""
    await take(world, "serving")


async def limit(world: World) -> None:
    """Let the tenant run two at a time."""
    await world.put({Subject(SubjectKind.TENANT, "limited"): TenantRules(limits={"*": Limits(running=2)})})
    await take(world, "limited")


async def gate(world: World) -> None:
    """Let the task pass a gate, two at a time."""
    await world.put({Subject(SubjectKind.TASK, "slow"): TaskRules(gate="door")})
    await world.put({Subject(SubjectKind.GATE, "door"): GateRules(limit=2)})
    await take(world, "gated", task="slow")


async def peek(world: World) -> None:
    """Say what a tenant would be served next."""
    await world.store.jobs.peek(PeekRequest(scope=Scope("t3"), queue="default"))


async def finish(world: World, tenant: str) -> None:
    """Leave a tenant one job that waits, one in history and one that is dead."""
    await world.send(*(world.new(tenant, priority=100) for _ in range(2)))
    done, lost = await world.claim(2)
    await world.settle_reply(world.verdict(done), world.verdict(lost, ruined()))
    await world.enqueue(tenant, delay=3_600 * SECOND)


async def forget(world: World) -> None:
    """Forget a tenant."""
    await finish(world, "leaving")
    reply = await world.store.upkeep.forget(ForgetRequest(scope=Scope("leaving"), reason="left", who="ann"))
    assert reply.erased == 3


async def purge(world: World) -> None:
    """Purge a tenant."""
    await world.enqueue("purged", delay=3_600 * SECOND)
    reply = await world.store.upkeep.purge(PurgeRequest(scope=Scope("purged"), reason="wrong", who="ann"))
    assert reply.cancelled == 1


async def bury(world: World, tenant: str, jobs: int) -> list[JobRecord]:
    """Let jobs of a tenant die."""
    await world.send(*(world.new(tenant, priority=100) for _ in range(jobs)))
    claims = await world.claim(jobs)
    await world.settle_reply(*(world.verdict(claim, ruined()) for claim in claims))
    return [await world.get(claim.job.id) for claim in claims]


async def decide(world: World) -> None:
    """Resolve a dead letter, run it again, see it end, and delete it."""
    (dead,) = await bury(world, "deciding", 1)
    await world.review("resolve", dead.id)
    await world.cancel((await world.rerun(dead, idempotency_key=None)).id)
    assert [run.id for run in (await world.follow()).followed] == [dead.id]
    assert await world.delete(dead.id) == (dead.id,)


async def browse(world: World) -> None:
    """Look for dead letters by what has an index."""
    one, other = await bury(world, "browsing", 2)
    await world.review("ignore", one.id)
    await world.review("discard", other.id)
    asked: list[dict[str, Any]] = [{"review": "ignored"}, {"review": "discarded"}]
    for filters in (*asked, {"scope": Scope("browsing")}):
        await world.store.dead.find(DeadRequest(**{"scope": ALL, "limit": 2, **filters}))
        await world.store.dead.tally(DeadTallyRequest(**{"scope": ALL, "limit": 2, **filters}))
    await world.store.dead.find(DeadRequest(scope=ALL, fingerprint="none", limit=2))
    await world.delete(one.id, other.id)


async def write(world: World) -> None:
    """Append to a journal, number what is there, read the newest and trim the rest."""
    await world.append("audit", *(NewEntry(kind="k", tenant="t1") for _ in range(3)))
    (*_, last) = await world.number("audit")
    end = (await world.pending("audit", limit=0)).end
    for scope in (ALL, Scope("t1")):
        newest = EntriesRequest(scope=scope, journal="audit", backwards=True, limit=2)
        assert len((await world.store.journal.entries(newest)).entries) == 2
    trim = TrimRequest(scope=ALL, journal="audit", revision=end.revision, up_to=last.number, memory=b"")
    assert await world.store.journal.trim(trim)


VERBS: dict[str, Callable[[World], Awaitable[None]]] = {
    "enqueue": enqueue,
    "renew": renew,
    "cancel": cancel,
    "change": change,
    "reclaim": reclaim,
    "expire": expire,
    "look": look,
    "serve": serve,
    "limit": limit,
    "gate": gate,
    "peek": peek,
    "forget": forget,
    "purge": purge,
    "decide": decide,
    "browse": browse,
    "write": write,
}


async def test_a_verb_about_a_few_jobs_touches_few_rows(full: World) -> None:
    """Among thousands that wait or are finished, and a hundred that run."""
    read = {}
    for name, verb in VERBS.items():
        before = await touched(full)
        await verb(full)
        read[name] = await touched(full) - before
    assert {name: rows for name, rows in read.items() if rows >= FEW} == {}
