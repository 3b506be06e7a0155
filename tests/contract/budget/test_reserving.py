"""A budget bounds what jobs spend, over all workers (S59): what a claim reserves, and who waits or dies."""

from __future__ import annotations

import asyncio

import pytest

from fairlane.model.instants import DAY, SECOND
from fairlane.model.policy.overrides import PolicyChange, SubjectKind, TaskRules
from fairlane.model.scope import Scope
from tests.contract.world import HANDED_BACK, SNOOZED, UNSTARTED, World, failed


async def test_a_claim_reserves_the_estimate_over_queues_tasks_tenants_and_workers(world: World) -> None:
    """S59: three estimates fit, whoever asks and from where."""
    await world.put_budget("ai", "tag", "sum", estimate=30)
    await world.send(
        *(
            world.new(tenant, queue=queue, task=task)
            for queue in ("a", "b")
            for tenant in ("acme", "globex")
            for task in ("tag", "sum")
        )
    )
    claims = await world.claim(2, "a", worker="w1")
    claims += await world.claim(9, "b", worker="w2")
    assert [claim.job.queue for claim in claims] == ["a", "a", "b"]
    assert await world.claim(9, queue_requests=[("a", 9), ("b", 9)], worker="w3") == []
    assert await world.account("ai") == (0, 90)


async def test_concurrent_claimers_never_reserve_more_than_the_ceiling(world: World) -> None:
    """S59: eight at once, from two queues; afterwards no room is left empty either."""
    await world.put_budget("ai", "tag", estimate=20)
    await world.send(*(world.new(f"t{n % 4}", queue="ab"[n % 2], task="tag") for n in range(24)))
    taken = await asyncio.gather(*(world.claim(3, "ab"[n % 2], worker=f"w{n}") for n in range(8)))
    claims = [claim for one in taken for claim in one]
    assert len(claims) <= 5
    claims += await world.claim(9, queue_requests=[("a", 9), ("b", 9)])
    assert len({claim.job.id for claim in claims}) == len(claims) == 5
    assert await world.account("ai") == (0, 100)


@pytest.mark.parametrize(("spent", "left"), [(0, 2), (40, 1), (50, 1), (51, 0), (120, 0)])
async def test_a_settlement_replaces_the_estimate_by_what_was_spent(
    world: World, spent: int, left: int
) -> None:
    """S59: what the first job has left over is room for others, what it spent beyond its estimate is not."""
    await world.put_budget("ai", "tag", estimate=50)
    await world.enqueue_many(5, task="tag")
    first, second = await world.claim(9)
    await world.settle(first, spent=spent)
    await world.settle(second)
    assert await world.account("ai") == (spent, 0)
    assert len(await world.claim(9)) == left


async def test_a_job_without_an_estimate_starts_until_the_ceiling_is_reached(world: World) -> None:
    """S59: it may go beyond, by what the jobs that run at that moment spend."""
    await world.put_budget("ai", "tag")
    await world.enqueue_many(4, task="tag")
    for spent in (60, 60):
        await world.settle(await world.claim_one(), spent=spent)
    assert await world.claim(9) == []
    assert await world.account("ai") == (120, 0)


async def test_a_strand_without_room_waits_until_the_period_ends(world: World) -> None:
    """S59, S42: its tenant's other tasks go on; `explain` says which budget and until when."""
    await world.put_budget("ai", "tag", estimate=100)
    job, other = await world.enqueue(task="tag"), await world.enqueue(task="tag")
    plain = await world.enqueue()
    await world.settle(await world.claim_one(), spent=100)
    assert [claim.job.id for claim in await world.claim(9)] == [plain.id]
    end = world.now - world.now % DAY + DAY
    why = await world.explain(other.id)
    assert (why.reason, why.subject, why.until) == ("budget", "budget ai", end)
    assert (await world.claim_reply()).next_due_at == end
    world.advance((end - world.now) / SECOND)
    assert [claim.job.id for claim in await world.claim(9)] == [other.id]
    assert await world.account("ai") == (0, 100)
    assert job.id != other.id


async def test_room_that_comes_back_wakes_who_waits_for_it(world: World) -> None:
    """S59: a settlement that leaves room lets the next claim start the next job, in the fair order."""
    await world.put_budget("ai", "tag", estimate=100)
    await world.enqueue_many(2, "acme", task="tag")
    await world.enqueue("globex", queue="other", task="tag")
    first = await world.claim_one()
    assert await world.claim(9, queue_requests=[("default", 9), ("other", 9)]) == []
    await world.settle(first, spent=0)
    second = await world.claim_one("other")
    await world.settle(second, spent=0)
    assert (await world.claim_one()).job.tenant == "acme"


@pytest.mark.parametrize("ending", [HANDED_BACK, UNSTARTED, SNOOZED, failed()], ids=str)
async def test_whatever_ends_an_attempt_gives_back_what_it_did_not_spend(
    world: World, ending: object
) -> None:
    """S59: a hand-back releases the reservation, also of a job that did not start (S68)."""
    await world.put_budget("ai", "tag", estimate=60)
    await world.enqueue_many(2, task="tag")
    await world.settle(await world.claim_one(), ending)  # type: ignore[arg-type]
    assert await world.account("ai") == (0, 0)
    assert len(await world.claim(9)) == 1


async def test_a_spent_budget_that_fails_hands_the_job_out_to_die(world: World) -> None:
    """S59: nothing is reserved, and the worker is told; so nothing of it is spent."""
    await world.put_budget("ai", "tag", estimate=50, on_spent="fail")
    await world.enqueue_many(4, task="tag")
    first = await world.claim_one()
    assert not first.is_over_budget
    await world.settle(first, spent=60)
    late = await world.claim(9)
    assert [claim.is_over_budget for claim in late] == [True, True, True]
    assert await world.account("ai") == (60, 0)


async def test_a_budget_that_fails_waits_as_long_as_running_jobs_may_give_room_back(world: World) -> None:
    """S59: reserved is not spent; a job does not die of what others have only reserved."""
    await world.put_budget("ai", "tag", estimate=50, on_spent="fail")
    (*_, last) = await world.enqueue_many(3, task="tag")
    first, second = await world.claim(9)
    assert (await world.explain(last.id)).reason == "budget"
    await world.settle(first, spent=0)
    third = await world.claim_one()
    assert not third.is_over_budget
    await world.settle(second, spent=80)


async def test_each_tenant_has_the_whole_ceiling_where_the_budget_says_so(world: World) -> None:
    """S59, S9: and sees no account but its own."""
    await world.put_budget("ai", "tag", estimate=100, per_tenant=True)
    for tenant in ("acme", "globex"):
        await world.enqueue_many(2, tenant, task="tag")
    claims = await world.claim(9)
    assert [claim.job.tenant for claim in claims] == ["acme", "globex"]
    await world.settle(claims[0], spent=10)
    await world.settle(claims[1], spent=0)
    assert [claim.job.tenant for claim in await world.claim(9)] == ["globex"]
    assert {tenant: one.spent for tenant, one in (await world.accounts("ai")).items()} == {
        "acme": 10,
        "globex": 0,
    }
    assert list(await world.accounts("ai", Scope("acme"))) == ["acme"]
    assert list(await world.accounts("ai", limit=1)) == ["acme"]
    assert list(await world.accounts("ai", after="acme")) == ["globex"]


async def test_a_shared_account_belongs_to_no_tenant(world: World) -> None:
    """S9: what all of them spend together is not shown to one."""
    await world.put_budget("ai", "tag", estimate=1)
    await world.enqueue(task="tag")
    await world.claim_one()
    assert list(await world.accounts("ai")) == [""]
    assert await world.accounts("ai", Scope("acme")) == {}


@pytest.mark.parametrize("is_declared", [True, False], ids=["of another task", "never declared"])
async def test_a_task_without_a_ceiling_is_not_bound(world: World, *, is_declared: bool) -> None:
    """S59: nothing is counted for it either."""
    if is_declared:
        await world.put_budget("ai", "other", estimate=100)
    else:
        await world.declare(SubjectKind.TASK, "tag", TaskRules(budget="ai"))
    await world.enqueue_many(20, task="tag")
    claims = await world.claim(50)
    assert len(claims) == 20
    await world.settle(claims[0], spent=5)
    assert await world.accounts("ai") == {}


async def test_a_ceiling_changed_at_run_time_counts_at_the_next_claim(world: World) -> None:
    """S54, S59: raised, it wakes who waits; lowered, what runs goes on and nothing new starts."""
    await world.put_budget("ai", "tag", estimate=60)
    await world.enqueue_many(5, task="tag")
    claims = await world.claim(9)
    assert len(claims) == 1
    await world.override(SubjectKind.BUDGET, "ai", PolicyChange(ceiling=180))
    claims += await world.claim(9)
    assert len(claims) == 3
    await world.override(SubjectKind.BUDGET, "ai", PolicyChange(ceiling=0))
    for claim in claims:
        await world.settle(claim, spent=10)
    assert await world.claim(9) == []
    await world.reset(SubjectKind.BUDGET, "ai")
    assert len(await world.claim(9)) == 1


async def test_a_ceiling_for_a_while_ends_by_itself(world: World) -> None:
    """S54: who waits looks again when the override ends."""
    await world.put_budget("ai", "tag", estimate=60)
    await world.enqueue(task="tag")
    await world.override(SubjectKind.BUDGET, "ai", PolicyChange(ceiling=0), until=world.now + 5 * SECOND)
    reply = await world.claim_reply()
    assert (reply.claims, reply.next_due_at) == ((), world.now + 5 * SECOND)
    world.advance(5)
    assert len(await world.claim(9)) == 1


async def test_a_job_under_a_budget_is_never_claimed_ahead(world: World) -> None:
    """S68: its claim would reserve what nobody spends."""
    await world.put_budget("ai", "tag")
    await world.enqueue_many(2)
    await world.enqueue(task="tag")
    reply = await world.claim_reply(3, ahead=2)
    assert [claim.job.task for claim in reply.claims] == ["noop", "noop"]
    assert reply.is_ahead_cut


async def test_a_peek_reserves_nothing(world: World) -> None:
    """S59: it shows what a claim would return, and leaves the account as it is."""
    await world.put_budget("ai", "tag", estimate=40)
    await world.enqueue_many(3, task="tag")
    assert len(await world.peek(9)) == 2
    assert await world.accounts("ai") == {}
    assert len(await world.claim(9)) == 2


async def test_a_long_peek_shows_what_the_claim_returns(world: World) -> None:
    """S59, S65: however many steps a store takes, it reserves once for each job."""
    await world.put_budget("ai", "tag", estimate=1, ceiling=70)
    await world.send(*(world.new(f"t{n}", task="tag") for n in range(90)))
    shown = [job.id for job in await world.peek(90)]
    assert shown == [claim.job.id for claim in await world.claim(90)]
    assert len(shown) == 70


async def test_a_budget_cannot_be_paused(world: World) -> None:
    """S46: as a gate; its ceiling can be 0."""
    with pytest.raises(ValueError, match="ceiling"):
        await world.pause(SubjectKind.BUDGET, "ai")
