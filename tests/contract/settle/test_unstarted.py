"""A claim that comes back unstarted leaves its job as if it had not been claimed (S68)."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind, TenantRules
from fairlane.model.retry.decision import AttemptResult
from tests.contract.world import HANDED_BACK, SUCCEEDED, UNSTARTED, World, failed


async def test_only_the_fence_has_grown(world: World) -> None:
    """S24, S36, S68: no attempt is recorded, and its number is free again."""
    first, second = await world.enqueue_many(2)
    world.advance(30)
    claim = await world.claim_one()
    world.advance(1)
    assert await world.settle(claim, UNSTARTED) is State.READY
    assert await world.get(first.id) == msgspec.structs.replace(first, fence=claim.fence)
    again, other = await world.claim(2)
    assert (again.job.id, other.job.id) == (first.id, second.id)
    assert again.job.attempt == 1
    assert again.fence > claim.fence


async def test_what_earlier_attempts_left_stays(world: World) -> None:
    """S24, S68: failures, their records and the place of the retry."""
    await world.enqueue()
    retried = await world.run(failed())
    world.advance(1)
    claim = await world.claim_one()
    assert claim.job.attempt == 2
    await world.settle(claim, UNSTARTED)
    job = await world.get(retried.id)
    assert (job.attempt, job.failures, job.attempts) == (1, 1, retried.attempts)
    assert (job.run_at, job.sort_key) == (claim.job.run_at, claim.job.sort_key)


async def test_the_tenant_gets_its_charge_back(world: World) -> None:
    """S41, S68: whoever gives jobs back loses no turn by it."""
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(6)))
    claims = [claim for claim in await world.claim(4) if claim.job.tenant == "a"]
    await world.settle_reply(*(world.verdict(claim, UNSTARTED) for claim in claims))
    assert "".join(await world.tenants_served(4)) == "aaab"


async def test_what_was_started_and_handed_back_stays_charged(world: World) -> None:
    """S32, S41: it ran."""
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(6)))
    claims = [claim for claim in await world.claim(4) if claim.job.tenant == "a"]
    await world.settle_reply(*(world.verdict(claim, HANDED_BACK) for claim in claims))
    assert "".join(await world.tenants_served(4)) == "abab"


@pytest.mark.parametrize("weight", [0.5, 1, 4])
async def test_the_charge_is_by_the_tenants_weight(world: World, weight: float) -> None:
    """S41, S68: a round trip to a worker and back changes nobody's share."""
    await world.declare(SubjectKind.TENANT, "a", TenantRules(weight=weight))
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(12)))
    claims = await world.claim(10)
    await world.settle_reply(*(world.verdict(claim, UNSTARTED) for claim in claims))
    assert [claim.job.id for claim in await world.claim(10)] == [claim.job.id for claim in claims]


async def test_in_a_queue_that_counts_seconds_the_estimate_comes_back(world: World) -> None:
    """S41, S68: with what renewals have added."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(cost="seconds"))
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(6)))
    (claim,) = await world.claim(1)
    world.advance(5)
    await world.renew(claim)
    await world.settle(claim, UNSTARTED)
    assert "".join(await world.tenants_served(4)) == "abab"


async def test_nothing_is_learnt_of_its_time(world: World) -> None:
    """S41, S68: it took none."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(cost="seconds"))
    await world.send(*(world.new("a", task="returned") for _ in range(3)))
    for _ in range(3):
        (claim,) = await world.claim(1)
        world.advance(30)
        await world.settle(claim, UNSTARTED)
    await world.send(*(world.new("b", task="other") for _ in range(3)))
    assert "".join(await world.tenants_served(4)) == "abab", "its task counts as longer than the other"


async def test_a_clock_is_never_below_zero(world: World) -> None:
    """S41, S68: also if the weight has fallen since, so that a job costs more now than was charged."""
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(3)))
    (claim,) = await world.claim(1)
    await world.declare(SubjectKind.TENANT, "a", TenantRules(weight=0.01))
    await world.settle(claim, UNSTARTED)
    assert "".join(await world.tenants_served(3)) == "abb"


async def test_a_tenant_that_had_nothing_left_is_ready_again(world: World) -> None:
    """S41, S68: its clock is at least the queue's, as that of whoever becomes ready."""
    await world.enqueue("a")
    (claim,) = await world.claim(1)
    await world.enqueue_many(9, "b")
    served = await world.claim(5)
    assert len(served) == 5
    await world.settle(claim, UNSTARTED)
    assert "".join(await world.tenants_served(3)) == "bab"


async def test_a_place_at_a_running_limit_is_free_again(world: World) -> None:
    """S45, S68: claimed and given back is not running."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(running=1)))
    await world.enqueue_many(3, "a")
    (claim,) = await world.claim(3)
    assert not await world.claim(1)
    await world.settle(claim, UNSTARTED)
    assert [one.job.id for one in await world.claim(3)] == [claim.job.id]


async def test_a_cancel_that_was_asked_for_is_obeyed(world: World) -> None:
    """S30, S68: it does not come back."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.cancel(claim.job.id)
    assert await world.settle(claim, UNSTARTED) is State.CANCELLED
    job = await world.get(claim.job.id)
    assert (job.attempt, [one.outcome for one in job.attempts]) == (1, ["cancelled"])


async def test_a_suspect_remains_one(world: World) -> None:
    """S39, S68: nobody has seen it run."""
    await world.enqueue()
    await world.claim_one()
    await world.lose()
    claim = await world.claim_one()
    assert claim.job.is_suspect
    await world.settle(claim, UNSTARTED)
    job = await world.get(claim.job.id)
    assert (job.is_suspect, job.crashes, job.attempt) == (True, 1, 1)
    assert (await world.claim_one()).job.is_suspect


async def test_one_that_was_reclaimed_is_stale(world: World) -> None:
    """S36, S68: the fence decides, as for every settlement."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.lose()
    reply = await world.settle_reply(world.verdict(claim, UNSTARTED))
    assert reply.stale == (claim.job.id,)
    assert (await world.get(claim.job.id)).attempt == 1


async def test_many_go_back_beside_others_that_succeed(world: World) -> None:
    """S35, S68: in one call, each as it is."""
    jobs = await world.enqueue_many(6)
    claims = await world.claim(6)
    endings: tuple[AttemptResult, ...] = (SUCCEEDED, UNSTARTED) * 3
    await world.settle_reply(*(world.verdict(*pair) for pair in zip(claims, endings, strict=True)))
    assert await world.states() == {State.READY: 3, State.SUCCEEDED: 3}
    assert [one.job.id for one in await world.claim(6)] == [job.id for job in jobs[1::2]]
