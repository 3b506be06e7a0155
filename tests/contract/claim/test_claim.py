"""What a claim hands out and what its reply says (S35). `test_fairness` has the order of tenants."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import QueueRules, SubjectKind, TenantRules
from fairlane.store.contract.claims import ClaimReply
from tests.contract.world import MICRO, World


async def test_a_claim_carries_the_whole_job_as_it_runs_now(world: World) -> None:
    """S35, S36: in the record only the facts of the claim have changed, and so they are stored."""
    job = await world.enqueue(priority=3, tags=("blue",), timeout=MINUTE)
    now = world.advance(5)
    claim = await world.claim_one(lease=7 * SECOND, worker="w9")
    running = msgspec.structs.replace(
        job,
        state=State.RUNNING,
        attempt=1,
        fence=now,
        worker="w9",
        started_at=now,
        lease_until=now + 7 * SECOND,
    )
    assert claim == Claim(running, now, now + 7 * SECOND)
    assert await world.get(job.id) == running


@pytest.mark.parametrize(
    ("jobs", "queue_requests", "total", "served"),
    [
        ("aabb", [("b", 2), ("a", 2)], 4, "bbaa"),
        ("bbaa", [("a", 2), ("b", 2)], 4, "aabb"),
        ("aaabbb", [("a", 2), ("b", 2)], 9, "aabb"),
        ("aaabbb", [("a", 9), ("b", 9)], 4, "aaab"),
        ("abbbb", [("a", 3), ("b", 3)], 4, "abbb"),
        ("aaaab", [("a", 1), ("b", 1), ("a", 5)], 4, "abaa"),
        ("aaaabbb", [("a", 1), ("b", 1), ("a", 1), ("b", 1)], 9, "abab"),
        ("aa", [("nowhere", 5), ("a", 2)], 5, "aa"),
        ("aabb", [("a", 0), ("b", 2)], 2, "bb"),
        ("aab", [("a", 9), ("b", 9)], 9, "aab"),
        ("aa", [("b", 9)], 9, ""),
        ("aa", [("a", 2)], 0, ""),
        ("aa", [], 9, ""),
    ],
    ids=[
        "in the order of the queue_requests",
        "not in the order of enqueue",
        "each request has its own limit",
        "total bounds all queue_requests",
        "unused room passes on",
        "a queue twice is asked twice",
        "two requests for one queue each have their own limit",
        "an unknown queue gives nothing and stops nothing",
        "a request for no job gets none",
        "fewer than asked",
        "only queues that were asked for",
        "no room, no claim",
        "no request, no claim",
    ],
)
async def test_wishes_are_served_in_order_within_their_bounds(
    world: World, jobs: str, queue_requests: list[tuple[str, int]], total: int, served: str
) -> None:
    """S35: each queue request up to its limit, all up to the total; slots left over go to the next."""
    await world.send(*(world.new(queue=queue) for queue in jobs))
    claims = await world.claim(total, queue_requests=queue_requests)
    assert [claim.job.queue for claim in claims] == list(served)
    assert (await world.states())[State.RUNNING] == len(served)


async def test_a_claim_on_an_empty_store_answers_with_nothing(world: World) -> None:
    """S35: an empty queue is no error, and there is nothing to come back for."""
    assert await world.claim_reply(5) == ClaimReply()


async def test_a_job_that_runs_is_not_handed_out_again(world: World) -> None:
    """S35, S63: at most one live claim per job, also for the same worker and after its lease ran out."""
    await world.enqueue()
    claim = await world.claim_one()
    world.advance(3600)
    assert await world.claim(5) == []
    assert await world.claim(5, worker="w2") == []
    assert await world.get(claim.job.id) == claim.job


async def test_a_job_past_its_expiry_is_passed_over_within_the_same_claim(world: World) -> None:
    """S21, S35: the first in line may no longer start, the next one may."""
    late = await world.enqueue(expires_in=SECOND)
    fine = await world.enqueue()
    world.advance(1)
    assert [claim.job.id for claim in await world.claim(5)] == [fine.id]
    assert (await world.get(late.id)).attempt == 0


# ── due jobs ─────────────────────────────────────────────────────────────────


async def test_a_delayed_job_is_handed_out_from_its_time_on_without_any_promote(world: World) -> None:
    """S20, S35: not a microsecond before, and nobody has to have made it ready."""
    job = await world.enqueue(delay=MINUTE)
    world.advance(60 - MICRO)
    assert await world.claim(5) == []
    world.advance(MICRO)
    (claim,) = await world.claim(5)
    assert (claim.job.id, claim.job.because, claim.job.started_at) == (job.id, None, job.run_at)


async def test_due_jobs_and_ready_jobs_stand_in_one_line(world: World) -> None:
    """S20, S35: a due job has the place of its time, whether it was promoted or not."""
    early = await world.enqueue(task="other", delay=2 * SECOND)
    world.advance(1)
    before = await world.enqueue()
    world.advance(2)
    after = await world.enqueue()
    claims = await world.claim(5)
    assert [claim.job.id for claim in claims] == [before.id, early.id, after.id]


# ── when to look again ───────────────────────────────────────────────────────


async def test_the_reply_says_when_the_next_delayed_job_of_these_queues_is_due(world: World) -> None:
    """S35: the earliest of the queues asked for, to the microsecond; other queues do not count."""
    await world.send(
        world.new(queue="a", delay=50 * SECOND),
        world.new(queue="a", delay=40 * SECOND),
        world.new(queue="b", delay=30 * SECOND + 1),
        world.new(queue="c", delay=20 * SECOND),
    )
    start = world.now
    reply = await world.claim_whole(5, queue_requests=[("a", 5), ("b", 5)])
    assert reply == ClaimReply((), start + 30 * SECOND + 1)
    assert (await world.claim_whole(5, "a")).next_due_at == start + 40 * SECOND


async def test_the_reply_looks_past_the_jobs_it_brings(world: World) -> None:
    """S35: with claims in it, it still names the next delayed job."""
    await world.send(world.new(), world.new(delay=SECOND), world.new(delay=9 * SECOND))
    world.advance(1)
    reply = await world.claim_whole(5)
    assert len(reply.claims) == 2
    assert reply.next_due_at == world.now + 8 * SECOND


async def test_jobs_that_wait_for_their_turn_are_no_reason_to_come_back_later(world: World) -> None:
    """S35: only time is told; what is ready now has no instant."""
    await world.enqueue_many(3)
    reply = await world.claim_whole(5, queue_requests=[("default", 1)])
    assert (len(reply.claims), reply.next_due_at) == (1, None)


async def test_a_full_reply_does_not_look_for_when_to_come_back(world: World) -> None:
    """S35: whoever has all it asked for comes back with the next free slot."""
    await world.send(world.new(), world.new(delay=SECOND))
    assert (await world.claim_reply(1)).next_due_at is None
    assert (await world.claim_reply(1)).next_due_at == world.now + SECOND


@pytest.mark.parametrize("scope", ["queue", "tenant"])
async def test_the_end_of_a_rates_wait_is_when_to_look_again(world: World, scope: str) -> None:
    """S35, S44: the next start that the rate allows."""
    rate = Rate(4, "minute")
    if scope == "queue":
        await world.declare(SubjectKind.QUEUE, "default", QueueRules(rate=rate))
    else:
        await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits={"default": Limits(rate=rate)}))
    await world.enqueue_many(3)
    reply = await world.claim_whole(5)
    assert len(reply.claims) == 1
    assert reply.next_due_at == world.now + 15 * SECOND


@pytest.mark.parametrize(
    ("kind", "name"),
    [(SubjectKind.QUEUE, "default"), (SubjectKind.TENANT, "acme"), (SubjectKind.TASK, "noop")],
    ids=str,
)
async def test_the_end_of_a_pause_is_when_to_look_again(world: World, kind: SubjectKind, name: str) -> None:
    """S35, S46: if the pause has an end; one without is ended by a person."""
    await world.enqueue()
    await world.pause(kind, name)
    assert await world.claim_whole(5) == ClaimReply()
    await world.pause(kind, name, until=world.now + MINUTE)
    assert await world.claim_whole(5) == ClaimReply((), world.now + MINUTE)


async def test_the_earliest_of_several_waits_is_told(world: World) -> None:
    """S35: a delayed job at 30 s, a pause until 20 s, a rate's wait of 60 s."""
    await world.declare(SubjectKind.TENANT, "globex", TenantRules(limits={"*": Limits(rate=Rate(1))}))
    await world.send(
        world.new(delay=30 * SECOND), world.new("globex"), world.new("globex"), world.new("umbra")
    )
    await world.pause(SubjectKind.TENANT, "umbra", until=world.now + 20 * SECOND)
    start = world.now
    reply = await world.claim_whole(9)
    assert [claim.job.tenant for claim in reply.claims] == ["globex"]
    assert reply.next_due_at == start + 20 * SECOND
    world.advance(20)
    assert (await world.claim_whole(9)).next_due_at == start + 30 * SECOND
    world.advance(10)
    assert (await world.claim_whole(9)).next_due_at == start + 60 * SECOND


# ── settle and claim at once ─────────────────────────────────────────────────


async def test_one_request_settles_and_claims_what_that_makes_possible(world: World) -> None:
    """S35, S45: the settlement comes first, so that its place can be taken by the new claim."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(running=1)))
    first, second = await world.enqueue_many(2)
    claim = await world.claim_one()
    reply = await world.settle_reply(world.verdict(claim), claim=world.claim_request(5))
    assert [(one.id, one.state) for one in reply.settled] == [(first.id, State.SUCCEEDED)]
    assert reply.claimed is not None
    assert [one.job.id for one in reply.claimed.claims] == [second.id]
    assert await world.get(second.id) == reply.claimed.claims[0].job


async def test_a_settle_without_a_claim_request_answers_without_claims(world: World) -> None:
    """S35: it takes nothing that was not asked for."""
    await world.enqueue_many(2)
    claim = await world.claim_one()
    assert (await world.settle_reply(world.verdict(claim))).claimed is None
    assert (await world.states()) == Counter({State.SUCCEEDED: 1, State.READY: 1})


async def test_a_stale_settlement_does_not_stop_the_claim_beside_it(world: World) -> None:
    """S35, S36: the worker's slot is free either way."""
    await world.enqueue_many(2)
    claim = await world.claim_one()
    await world.settle(claim)
    reply = await world.settle_reply(world.verdict(claim), claim=world.claim_request())
    assert reply.stale == (claim.job.id,)
    assert reply.claimed is not None
    assert len(reply.claimed.claims) == 1


async def test_settling_nothing_and_claiming_is_a_plain_claim(world: World) -> None:
    """S35: the reply of the claim comes whole, with when to look again."""
    await world.send(world.new(), world.new(delay=MINUTE))
    reply = await world.settle_reply(claim=world.claim_request(5))
    assert reply.claimed is not None
    assert (len(reply.claimed.claims), reply.claimed.next_due_at) == (1, world.now + MINUTE)


# ── many at once ─────────────────────────────────────────────────────────────


async def _work_until_empty(world: World, worker: str, total: int, queue: str = "default") -> list[Claim]:
    held: list[Claim] = []
    while claims := await world.claim(total, queue, worker=worker):
        held += claims
    return held


async def test_concurrent_claimers_never_share_a_job_and_leave_none(world: World) -> None:
    """S35, S63: eight workers at once; whoever gets an empty answer has found the queue empty."""
    tenants = ["acme", "globex", "umbra"]
    jobs = [world.new(tenants[n % 3], task=f"task{n % 2}") for n in range(40)]
    await world.send(*jobs)
    taken = await asyncio.gather(*(_work_until_empty(world, f"w{n}", 3) for n in range(8)))
    ids = Counter(claim.job.id for claims in taken for claim in claims)
    assert ids == Counter(job.id for job in jobs)
    for number, claims in enumerate(taken):
        assert {claim.job.worker for claim in claims} <= {f"w{number}"}


async def test_claimers_of_several_queues_at_once_take_each_job_once(world: World) -> None:
    """S35: also when each asks the queues in another order."""
    jobs = [world.new(queue="ab"[n % 2]) for n in range(24)]
    await world.send(*jobs)
    orders = [[("a", 2), ("b", 2)], [("b", 2), ("a", 2)]]
    taken = await asyncio.gather(
        *(world.claim(4, queue_requests=orders[n % 2], worker=f"w{n}") for n in range(6))
    )
    rest = [await _work_until_empty(world, "w9", 9, queue) for queue in "ab"]
    ids = Counter(claim.job.id for claims in [*taken, *rest] for claim in claims)
    assert ids == Counter(job.id for job in jobs)


async def test_claims_and_enqueues_at_once_lose_nothing(world: World) -> None:
    """S35: what comes in while others claim is handed out once, then or at the next look."""
    await world.enqueue_many(10)
    early = await asyncio.gather(
        *(world.claim(3, worker=f"w{n}") for n in range(4)),
        *(world.claim(3, worker=f"v{n}") for n in range(4)),
        *(world.send(*(world.new("globex") for _ in range(3))) for _ in range(4)),
    )
    claims = [claim for answer in early if isinstance(answer, list) for claim in answer]
    claims += await _work_until_empty(world, "w9", 9)
    assert len({claim.job.id for claim in claims}) == len(claims) == 22
