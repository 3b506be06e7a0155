"""Which tenant is next in a queue that counts worker-seconds instead of jobs (S41).

A tenant's clock cannot be read; who is served next tells it. Tasks have names of their own where a learnt
duration would blur that.
"""

from __future__ import annotations

from collections import Counter

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.policy.overrides import QueueRules, SubjectKind, TenantRules
from fairlane.model.retry.decision import AttemptResult
from fairlane.model.retry.revoke import RevokeHow
from tests.contract.world import ENDINGS, SUCCEEDED, World, failed, ruined


async def _count_seconds(world: World, queue: str = "default") -> None:
    await world.declare(SubjectKind.QUEUE, queue, QueueRules(cost="seconds"))


async def _distinct(world: World, tenant: str, number: int) -> None:
    """Enqueue jobs that are each of another task, so that each is believed to last one second."""
    await world.send(*(world.new(tenant, task=f"{tenant}-{n}") for n in range(number)))


async def _level(world: World) -> list[Claim]:
    """Let a and b start four jobs each; return a's. Both clocks stand at four seconds, a is first in ties."""
    await _count_seconds(world)
    await _distinct(world, "a", 20)
    await _distinct(world, "b", 30)
    claims = await world.claim(8)
    assert [claim.job.tenant for claim in claims] == ["a", "b"] * 4
    return [claim for claim in claims if claim.job.tenant == "a"]


# ── the estimate ─────────────────────────────────────────────────────────────


async def test_an_unknown_task_is_believed_to_last_a_second(world: World) -> None:
    """S41: so that tenants with new tasks take turns as if jobs were counted."""
    await _level(world)
    assert await world.tenants_served(6) == ["a", "b"] * 3


async def _teach(world: World, task: str, *seconds: float, ending: AttemptResult = SUCCEEDED) -> None:
    """Let attempts of a task last so long."""
    for duration in seconds:
        await world.enqueue("teacher", task=task)
        claim = await world.claim_one()
        world.advance(duration)
        await world.settle(claim, ending)


async def _contest(world: World, slow: str, queue: str = "default", **values: int) -> list[str]:
    """Let two new tenants, one with each task, take nine turns."""
    await world.send(*(world.new("x", task=slow, queue=queue, **values) for _ in range(9)))
    await world.send(*(world.new("y", task="plain", queue=queue) for _ in range(9)))
    return await world.tenants_served(9, queue)


@pytest.mark.parametrize(
    ("lasted", "served"),
    [
        ((11,), "xyyxyyxyy"),  # 1 s and a tenth of the ten seconds more: 2 s
        ((11, 12), "xyyyxyyyx"),  # 2 s and a tenth of the ten seconds more: 3 s
        ((0,) * 7, "xyxxyxxyx"),  # nine tenths to the seventh: 0.48 s
    ],
    ids=["one long run", "two long runs", "seven short runs"],
)
async def test_a_task_is_charged_by_the_moving_average_of_its_runs(
    world: World, lasted: tuple[float, ...], served: str
) -> None:
    """S41: a tenth of the way to each new duration; known for the queue's task, whichever tenant ran it."""
    await _count_seconds(world)
    await _teach(world, "learnt", *lasted)
    assert "".join(await _contest(world, "learnt")) == served


@pytest.mark.parametrize("ending", [failed(), ruined()], ids=["retried", "dead"])
async def test_a_failed_run_teaches_as_well(world: World, ending: AttemptResult) -> None:
    """S41: it took the worker's time like any other."""
    await _count_seconds(world)
    await _teach(world, "learnt", 11, ending=ending)
    assert "".join(await _contest(world, "learnt")) == "xyyxyyxyy"


async def test_one_tasks_average_is_not_anothers(world: World) -> None:
    """S41: a slow task makes no other task dear."""
    await _count_seconds(world)
    await _teach(world, "slow", 101)
    assert await _contest(world, "other") == ["x", "y"] * 4 + ["x"]


async def test_one_queues_average_is_not_anothers(world: World) -> None:
    """S41: what a task took in one queue says nothing of it in the next, and is still known in the first."""
    for queue in ("default", "night"):
        await _count_seconds(world, queue)
    await _teach(world, "learnt", 11)
    assert await _contest(world, "learnt", queue="night") == ["x", "y"] * 4 + ["x"]
    assert "".join(await _contest(world, "learnt")) == "xyyxyyxyy"


async def test_a_job_is_never_believed_to_last_longer_than_its_timeout(world: World) -> None:
    """S41: an average of 11 s, but this one is stopped after 2."""
    await _count_seconds(world)
    await _teach(world, "learnt", 101)
    assert "".join(await _contest(world, "learnt", timeout=2 * SECOND)) == "xyyxyyxyy"


# ── the correction ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("took", "served"),
    [
        (0, "aaaab"),
        (0.25, "aaaab"),
        (0.75, "aabab"),
        (1, "abab"),
        (1.5, "bbabab"),
        (3, "bbbbbbbbab"),
    ],
    ids=str,
)
async def test_a_settlement_corrects_the_charge_to_what_it_took(
    world: World, took: float, served: str
) -> None:
    """S41: both ways; four attempts of a were charged a second each, b's are running still."""
    claims = await _level(world)
    world.advance(took)
    await world.settle_reply(*(world.verdict(claim) for claim in claims))
    assert "".join(await world.tenants_served(len(served))) == served


@pytest.mark.parametrize("ending", ENDINGS)
async def test_every_end_corrects_the_charge(world: World, ending: str) -> None:
    """S41: what did not succeed took the time, too."""
    claims = await _level(world)
    world.advance(3)
    await world.settle_reply(*(world.verdict(claim, ENDINGS[ending]) for claim in claims))
    assert "".join(await world.tenants_served(10)) == "bbbbbbbbab"


@pytest.mark.parametrize("how", ["retry", "dead", "return"])
async def test_a_claim_that_an_operator_ends_is_charged_and_teaches_nothing(
    world: World, how: RevokeHow
) -> None:
    """S72, S41: the seconds until then count; how long the task takes is not known."""
    claims = await _level(world)
    world.advance(3)
    await world.revoke(*(claim.job.id for claim in claims), how=how, delay=60 * SECOND)
    assert "".join(await world.tenants_served(10)) == "bbbbbbbbab"
    await _count_seconds(world, "own")
    job = await world.enqueue("teacher", task="learnt", queue="own")
    await world.claim_one("own")
    world.advance(11)
    await world.revoke(job.id, how=how, delay=60 * SECOND)
    await world.condemn(job.id)
    assert await _contest(world, "learnt", queue="own") == ["x", "y"] * 4 + ["x"]


async def test_a_correction_is_weighed_like_a_charge(world: World) -> None:
    """S41: two seconds more cost a tenant of weight two one second of its clock."""
    await world.declare(SubjectKind.TENANT, "a", TenantRules(weight=2))
    await _count_seconds(world)
    await _distinct(world, "a", 20)
    await _distinct(world, "b", 20)
    claims = await world.claim(6)
    assert [claim.job.tenant for claim in claims] == [*"ab", *"aab", *"a"]
    world.advance(3)
    mine = [world.verdict(claim) for claim in claims if claim.job.tenant == "a"]
    await world.settle_reply(*mine)
    assert "".join(await world.tenants_served(7)) == "bbbbaba"


async def test_a_queue_that_counts_jobs_does_not_care_how_long_they_take(world: World) -> None:
    """S41: the default; neither settle nor renewal moves a clock there."""
    await world.send(*(world.new(tenant) for tenant in "ab" * 10))
    claims = await world.claim(8)
    mine = [claim for claim in claims if claim.job.tenant == "a"]
    world.advance(5)
    await world.renew(*mine)
    world.advance(5)
    await world.settle_reply(*(world.verdict(claim) for claim in mine))
    assert await world.tenants_served(6) == ["a", "b"] * 3


# ── long runs ────────────────────────────────────────────────────────────────


async def test_a_renewal_charges_the_time_beyond_the_charge_so_far(world: World) -> None:
    """S41: a long attempt pays while it runs, not only at its end, and each second once."""
    claims = await _level(world)
    world.advance(2)
    await world.renew(*claims)
    assert "".join(await world.tenants_served(5)) == "bbbba"
    world.advance(1)
    await world.renew(*claims)
    assert "".join(await world.tenants_served(6)) == "bbbbba"
    await world.settle_reply(*(world.verdict(claim) for claim in claims))
    assert "".join(await world.tenants_served(2)) == "ba"


async def test_a_renewal_within_the_estimate_charges_and_refunds_nothing(world: World) -> None:
    """S41: until the estimate is spent there is nothing to correct."""
    claims = await _level(world)
    world.advance(0.25)
    await world.renew(*claims)
    assert "".join(await world.tenants_served(4)) == "abab"


async def test_a_stale_renewal_or_settlement_charges_nobody(world: World) -> None:
    """S36, S41: what changes nothing moves no clock either."""
    claims = await _level(world)
    world.advance(3)
    await world.renew(*claims, worker="w2")
    await world.settle_reply(*(world.verdict(claim) for claim in claims), worker="w2")
    assert "".join(await world.tenants_served(4)) == "abab"


# ── the whole of it ──────────────────────────────────────────────────────────


async def test_slow_and_quick_jobs_get_equal_worker_seconds(world: World) -> None:
    """S41: 340 ms against 10 ms in three slots, 136 ticks of 10 ms, because shares are long-run facts."""
    lasts = {"slow": 340_000, "quick": 10_000}
    await _count_seconds(world)
    for task, duration in lasts.items():  # so that the average has come near what is true
        await world.enqueue_many(30, "teacher", task=task)
        claims = await world.claim(30)
        world.advance(duration / SECOND)
        await world.settle_reply(*(world.verdict(claim) for claim in claims))
    await world.send(*(world.new(name, task=name) for name in lasts for _ in range(300)))
    running = await world.claim(3)
    used: Counter[str] = Counter()
    for _ in range(136):
        world.advance(0.01)
        used.update(claim.job.tenant for claim in running)
        done = [claim for claim in running if world.now - claim.fence >= lasts[claim.job.tenant]]
        if done:
            verdicts = [world.verdict(claim) for claim in done]
            reply = await world.settle_reply(*verdicts, claim=world.claim_request(len(done)))
            assert reply.claimed is not None
            running = [claim for claim in running if claim not in done] + list(reply.claimed.claims)
    assert used.total() == 3 * 136
    assert abs(used["slow"] - used["quick"]) <= 0.05 * used.total(), used
