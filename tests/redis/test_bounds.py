"""No script does more work if there are more tenants, jobs or parked tenant queues. Counts work, not time."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from redis import Redis

from fairlane.model.instants import SECOND
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import (
    ClaimRequest,
    PassRequest,
    QueueRequest,
    ReclaimRequest,
    SettleRequest,
)
from fairlane.store.contract.dead import DeadTallyRequest
from fairlane.store.contract.jobs import CountRequest, EnqueueRequest, FindRequest, PeekRequest, TallyRequest
from fairlane.store.contract.journal import MAX_ENTRIES
from fairlane.store.contract.line import FirstRequest, JobLine
from fairlane.store.contract.upkeep import PruneRequest, PurgeRequest
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT
from tests.contract.world import ALL, World
from tests.redis.test_scripts import calls
from tests.servers.one_by_one import OneByOne

TENANTS = 2_000
BATCH = 1_000
PER_JOB = 12
"""What a script may do for each job of its part, all of different tenants."""

SETTLED_OR_CLAIMED = 9
"""The same, for a job that is settled, or claimed in the same script as others are settled."""


class Meter(OneByOne):
    """The most that one run of each script has done: commands, and values that they changed."""

    def __init__(self, store_client: RedisClient, client: Redis) -> None:
        """Count from now on."""
        super().__init__(store_client)
        self.limit: dict[str, int] = defaultdict(int)
        self._server = client

    async def run(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Run a script; what it does, the server has counted."""
        before = self._work()
        answer = await super().run(name, *arguments, **options)
        self.limit[name] = max(self.limit[name], self._work() - before)
        return answer

    def _work(self) -> int:
        return calls(self._server) + int(self._server.info("persistence")["rdb_changes_since_last_save"])


@pytest.fixture
async def meter(world: World, client: Redis) -> Meter:
    """Fill a queue with jobs of many tenants, then count."""
    await fill(world)
    return Meter(world.store.jobs._client, client)  # type: ignore[attr-defined]


async def fill(world: World) -> None:
    """Bring in one job for each tenant."""
    for start in range(0, TENANTS, BATCH):
        jobs = tuple(world.new(f"t{number}") for number in range(start, start + BATCH))
        await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs))


def claim_of(limit: int) -> ClaimRequest:
    """Ask for so many jobs."""
    queue_requests = (QueueRequest("default", limit),)
    return ClaimRequest(scope=ALL, worker="w1", lease=12 * SECOND, queue_requests=queue_requests, total=limit)


async def test_the_scripts_of_a_jobs_life_do_little_for_each_job(world: World, meter: Meter) -> None:
    """A batch comes in, is claimed, settled with the next claim, lost, promoted, pruned: a part at a time."""
    await fill(world)
    claims = (await world.store.claims.claim(claim_of(100))).claims
    assert len(claims) == 100
    settlements = tuple(world.verdict(claim) for claim in claims)
    request = SettleRequest(scope=ALL, worker="w1", settlements=settlements, claim=claim_of(100))
    reply = await world.store.claims.settle(request)
    assert (len(reply.settled), len(reply.claimed.claims if reply.claimed else ())) == (100, 100)
    world.clock.advance(30)
    lost = await world.store.claims.reclaim(ReclaimRequest(scope=ALL, limit=500))
    assert len(lost.lost) == 100
    purge = PurgeRequest(scope=ALL, limit=200, who="ops", reason="test")
    assert (await world.store.upkeep.purge(purge)).cancelled == 200
    world.clock.advance(400 * 86_400)
    pruned = await world.store.upkeep.prune(PruneRequest(scope=ALL, retention=Retention(), limit=500))
    assert pruned.jobs == 300
    assert (
        meter.limit["claims/settle"] <= 2 * SETTLED_OR_CLAIMED * MAX_JOBS_PER_SCRIPT
    )  # both, as many as one script does
    meter.limit["claims/settle"] = 0
    assert {name: limit for name, limit in meter.limit.items() if limit > PER_JOB * MAX_JOBS_PER_SCRIPT} == {}
    assert {"jobs/batch_step", "claims/claim", "claims/settle", "jobs/update"} <= set(meter.limit)


async def test_what_is_parked_is_woken_a_bounded_number_at_a_time(world: World, meter: Meter) -> None:
    """S42, S54: a limit that held hundreds is lifted; claims and promote bring them back, step by step."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(Limits(running=0)))
    while await parked(world) < 700:
        assert (await world.store.claims.claim(claim_of(1))).is_partial
    await world.declare(SubjectKind.QUEUE, "default", QueueRules())
    promoted = await world.store.claims.promote(PassRequest(scope=ALL, limit=500))
    assert promoted.is_partial
    assert len((await world.store.claims.claim(claim_of(100))).claims) == 100
    assert {name: limit for name, limit in meter.limit.items() if limit > 100 * PER_JOB} == {}


async def parked(world: World) -> int:
    """Count the tenant queues that a policy may free."""
    store_client: RedisClient = world.store.jobs._client  # type: ignore[attr-defined]
    return int(await store_client.ask("ZCARD", store_client.keys("parked_groups", "default", "t", "0")))


async def test_reading_is_done_a_page_at_a_time(world: World, meter: Meter) -> None:
    """S51, S65: find, count, tally and peek do not read what they do not give, save for a bounded page."""
    assert len((await world.store.jobs.find(FindRequest(scope=ALL, limit=50))).jobs) == 50
    await world.store.jobs.count(CountRequest(scope=ALL, limit=50))
    assert len(await world.store.jobs.peek(PeekRequest(scope=ALL, queue="default", limit=10))) == 10
    assert (await world.store.jobs.tally(TallyRequest(scope=ALL, tag="x"))).looked_at == TENANTS
    lines = tuple(JobLine(f"t{number}", "default") for number in range(500))
    await world.store.jobs.first_in_line(FirstRequest(scope=ALL, lines=lines))
    assert meter.limit["jobs/page"] < 20
    assert meter.limit["jobs/first_in_line"] < 20
    assert meter.limit["jobs/tally"] < 20
    assert meter.limit["jobs/count"] < 520
    assert meter.limit["jobs/peek"] < 60


async def test_dead_letters_are_read_and_decided_a_page_at_a_time(world: World, meter: Meter) -> None:
    """S75: a script does little for each letter, whether it looks, decides, runs it again or deletes it."""
    await world.condemn(*(job.id for job in await world.find_all(page=1_000)))
    letters = await world.letters(page=1_000)
    assert len(letters) == TENANTS
    meter.limit.clear()
    assert (await world.store.dead.tally(DeadTallyRequest(scope=ALL))).looked_at == TENANTS
    assert await world.letters(review="resolved") == []
    looks = {name: meter.limit[name] for name in ("dead/find", "dead/tally")}
    assert max(looks.values()) < 10
    first, second = ([letter.job for letter in letters[at : at + 200]] for at in (0, 200))
    await world.review("resolve", *(job.id for job in first))
    await world.reprocess(*map(world.again, second))
    assert len((await world.claim_reply(200)).claims) == 200
    await world.follow()
    assert len(await world.delete(*(job.id for job in first))) == 200
    await world.number("events")
    assert meter.limit.pop("journal/number") <= 3 * MAX_ENTRIES + 20
    assert meter.limit.pop("jobs/update") <= 2 * PER_JOB * MAX_JOBS_PER_SCRIPT  # of a letter there is more
    assert {name: limit for name, limit in meter.limit.items() if limit > PER_JOB * MAX_JOBS_PER_SCRIPT} == {}
    assert {"dead/reprocess", "dead/new_runs", "journal/pending"} <= set(meter.limit)


async def test_a_look_at_one_tenants_next_jobs_does_not_look_at_those_of_all_others(
    world: World, meter: Meter
) -> None:
    """S65: though all wait at the same gate."""
    await world.put_gate("door", "noop")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=0))
    while (await world.store.claims.claim(claim_of(1))).is_partial:
        pass
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    assert len(await world.peek(10, scope=Scope("t1999"))) == 1
    assert meter.limit["jobs/peek"] < 30


async def test_no_script_grows_with_the_tasks_of_a_tenant(world: World, client: Redis) -> None:
    """Each touches the strands of its own jobs, and knows which goes first without a look at the others."""
    for _ in range(2):
        jobs = tuple(world.new(task=f"task{number}") for number in range(BATCH))
        await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs))
    meter = Meter(world.store.jobs._client, client)  # type: ignore[attr-defined]
    await world.enqueue()
    claims = (await world.store.claims.claim(claim_of(1))).claims
    await world.store.claims.settle(
        SettleRequest(scope=ALL, worker="w1", settlements=tuple(map(world.verdict, claims)))
    )
    assert {name: limit for name, limit in meter.limit.items() if limit > 40} == {}
    assert len(await world.peek(90)) == 90
    assert (await world.explain(jobs[-1].id)).ahead == 2 * BATCH - 2
    assert len(await world.first_in_line(("acme", "default"))) == 1
    await world.purge(limit=2 * BATCH)
    await fill(world)
    assert {name: limit for name, limit in meter.limit.items() if limit > PER_JOB * MAX_JOBS_PER_SCRIPT} == {}
    assert {
        "jobs/batch_step",
        "claims/claim",
        "claims/settle",
        "jobs/peek",
        "jobs/explain",
        "jobs/update",
    } <= set(meter.limit)


async def test_a_claim_that_meets_many_expired_jobs_ends_them_a_part_at_a_time(
    world: World, client: Redis
) -> None:
    """S21: nobody else was there to end them; the next script goes on, and finds the one that may start."""
    jobs = tuple(world.new(expires_in=SECOND) for _ in range(300))
    await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(*jobs, world.new())))
    world.clock.advance(2)
    meter = Meter(world.store.jobs._client, client)  # type: ignore[attr-defined]
    assert len((await world.store.claims.claim(claim_of(1))).claims) == 1
    assert meter.limit["claims/claim"] <= PER_JOB * MAX_JOBS_PER_SCRIPT
