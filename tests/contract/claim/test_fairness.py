"""Which tenant is next, counted in jobs (S41). `test_priority` has the order inside a tenant."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlane.model.instants import MINUTE
from fairlane.model.policy.overrides import PolicyChange, Rules, Subject, SubjectKind, TenantRules
from fairlane.model.scheduling.fairness import Contender, stride, water_fill
from tests.contract.world import HANDED_BACK, World


async def _weigh(world: World, /, **weights: float) -> None:
    rules: dict[Subject, Rules] = {
        Subject(SubjectKind.TENANT, name): TenantRules(weight=weight) for name, weight in weights.items()
    }
    await world.put(rules)


async def _backlog(world: World, queue: str = "default", /, **jobs: int) -> None:
    """Enqueue so many jobs for each tenant in one batch, tenant after tenant."""
    await world.send(*(world.new(name, queue=queue) for name, number in jobs.items() for _ in range(number)))


def _turns(jobs: int, /, **weights: float) -> list[str]:
    """Return the tenants in the order in which that many jobs are served, all starting level."""
    contenders = [Contender(0, since, stride(weight), jobs) for since, weight in enumerate(weights.values())]
    return [list(weights)[position] for position in water_fill(contenders, jobs)]


# ── equal and unequal weights ────────────────────────────────────────────────


async def test_equal_tenants_take_turns_however_much_each_has(world: World) -> None:
    """S41: one each in a round, until one has no more; then the others go on."""
    await _backlog(world, a=6, b=2, c=4)
    assert await world.tenants_served(12) == [*"abc", *"abc", *"ac", *"ac", *"aa"]


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ({"a": 1, "b": 2, "c": 5}, {"a": 100, "b": 200, "c": 500}),
        ({"c": 5, "a": 1, "b": 2}, {"a": 100, "b": 200, "c": 500}),
        ({"a": 0.01, "b": 1}, {"a": 8, "b": 792}),
        ({"a": 1, "b": 1000}, {"a": 1, "b": 799}),
    ],
    ids=str,
)
async def test_weights_give_exact_shares_in_the_exact_order(
    world: World, weights: dict[str, float], shares: dict[str, int]
) -> None:
    """S41: each dispatch goes to the lowest clock, over 800 of them, because shares are long-run facts."""
    await _weigh(world, **weights)
    await _backlog(world, **{name: shares[name] + 5 for name in weights})
    served = [tenant for _ in range(8) for tenant in await world.tenants_served(100)]
    assert Counter(served) == shares
    assert served == _turns(800, **weights)


async def test_ties_go_to_who_became_ready_first(world: World) -> None:
    """S41: not to a name, an id or a priority."""
    late = world.new("aaa", priority=100)
    for tenant in ("mmm", "zzz"):
        await world.enqueue(tenant)
    await world.send(late)
    await world.enqueue("bbb")
    assert await world.tenants_served(9) == ["mmm", "zzz", "aaa", "bbb"]


async def test_many_tenants_with_one_job_each_are_served_as_they_came(world: World) -> None:
    """S41: 200 of them, in two batches, neither sorted by name."""
    names = [f"t{n * 77 % 200:03}" for n in range(200)]
    await world.send(*(world.new(name) for name in names[:120]))
    await world.send(*(world.new(name) for name in names[120:]))
    assert await world.tenants_served(200) == names


# ── coming and going ─────────────────────────────────────────────────────────


async def test_a_new_tenant_joins_at_the_present_and_does_not_catch_up(world: World) -> None:
    """S41: it gets no turns for the time before it came."""
    await _backlog(world, a=30, b=30)
    await world.claim(20)
    await _backlog(world, c=30)
    assert await world.tenants_served(12) == ["a", "b", "c"] * 4


async def test_a_tenant_that_was_idle_gets_no_credit_for_it(world: World) -> None:
    """S41: served once, then without jobs for twenty turns of the other; now it gets every second turn."""
    await _backlog(world, a=40, b=1)
    assert (await world.tenants_served(22)).count("b") == 1
    await _backlog(world, b=20)
    assert await world.tenants_served(8) == ["a", "b"] * 4


async def test_a_drained_tenant_keeps_its_debt(world: World) -> None:
    """S41: with a tenth of the weight, one job costs ten turns, also after the tenant had no jobs."""
    await _weigh(world, light=0.1)
    await _backlog(world, plain=40, light=1)
    assert await world.tenants_served(4) == ["plain", "light", "plain", "plain"]
    await _backlog(world, light=2)
    assert await world.tenants_served(9) == ["plain"] * 8 + ["light"]


async def test_a_drained_tenant_keeps_its_debt_when_its_jobs_have_ended(world: World) -> None:
    """S41: none of its jobs waits or runs, and its virtual time is still stored until V has passed it."""
    await _weigh(world, light=0.1)
    await _backlog(world, plain=40, light=1)
    for claim in await world.claim(4):
        await world.settle(claim)
    await _backlog(world, light=2)
    assert await world.tenants_served(9) == ["plain"] * 8 + ["light"]


async def test_handing_a_job_back_and_forth_wins_no_turns(world: World) -> None:
    """S41: a tenant whose line empties with every claim pays for each of them."""
    await _backlog(world, a=20, b=1)
    served = []
    for _ in range(6):
        claims = await world.claim(2)
        served += [claim.job.tenant for claim in claims]
        for claim in claims:
            if claim.job.tenant == "b":
                await world.settle(claim, HANDED_BACK)
    assert Counter(served) == {"a": 6, "b": 6}


async def test_tenants_that_drain_and_return_do_not_starve_a_backlog(world: World) -> None:
    """S41: one tenant has a backlog, five enqueue slowly; each gets its sixth, within a tenth."""
    await _backlog(world, whale=80)
    trickle = [f"t{n}" for n in range(5)]
    waiting: Counter[str] = Counter()
    served: Counter[str] = Counter()
    for _ in range(30):
        await _backlog(world, **{name: 1 for name in trickle if not waiting[name]})
        waiting = Counter(trickle)
        turns = await world.tenants_served(2)
        waiting.subtract(turns)
        served.update(turns)
    fair = 60 / 6
    assert served.total() == 60
    assert served["whale"] >= 0.9 * fair
    assert all(served[name] >= 0.9 * fair for name in trickle)


async def test_a_thousand_jobs_of_one_tenant_delay_anothers_first_by_one_turn(world: World) -> None:
    """S41: 1,000 jobs, because the promise is that their number does not matter."""
    await world.enqueue_many(1_000, "whale")
    assert set(await world.tenants_served(50)) == {"whale"}
    await world.enqueue("q1")
    assert await world.tenants_served(2) == ["whale", "q1"]
    await world.send(world.new("q2"), world.new("q3"))
    assert await world.tenants_served(4) == ["whale", "q2", "q3", "whale"]


async def test_many_task_names_give_no_larger_share(world: World) -> None:
    """S41, S42: the tenant is the unit, not the strand."""
    await world.send(*(world.new("splitter", task=f"task{n}") for n in range(30)))
    await world.send(*(world.new("plain") for _ in range(30)))
    assert await world.tenants_served(20) == ["splitter", "plain"] * 10


async def test_jobs_that_were_never_served_cost_nothing(world: World) -> None:
    """S41: cancelled, condemned and expired jobs are not charged to their tenant."""
    await _backlog(world, a=20, b=20)
    await world.claim(2)
    jobs = [job for job in await world.find_all() if job.tenant == "b" and job.attempt == 0]
    await world.cancel(*(job.id for job in jobs[:8]))
    await world.condemn(*(job.id for job in jobs[8:12]))
    assert await world.tenants_served(8) == ["a", "b"] * 4


# ── batches, weights that change, queues ─────────────────────────────────────


async def test_a_batch_is_served_as_one_by_one(world: World) -> None:
    """S35, S41: three queues with the same work: claimed at once, job by job, in pieces."""
    await _weigh(world, a=1, b=2, c=5, d=0.5)
    for queue in ("whole", "single", "pieces"):
        await _backlog(world, queue, a=9, b=4, c=10, d=7)
    whole = await world.tenants_served(24, "whole")
    single = [tenant for _ in range(24) for tenant in await world.tenants_served(1, "single")]
    pieces = [tenant for n in (5, 1, 11, 7) for tenant in await world.tenants_served(n, "pieces")]
    assert whole == single == pieces
    assert len(whole) == 24


async def test_a_new_weight_holds_from_the_next_claim_on_for_the_whole_backlog(world: World) -> None:
    """S41, S54: jobs that waited already are served by it; without it the old one holds again."""
    await _backlog(world, a=60, b=60)
    assert await world.tenants_served(10) == ["a", "b"] * 5
    await world.override(SubjectKind.TENANT, "a", PolicyChange(weight=9))
    assert await world.tenants_served(20) == _turns(20, a=9, b=1)
    await world.reset(SubjectKind.TENANT, "a")
    served = await world.tenants_served(20)
    assert abs(served.count("a") - served.count("b")) <= 1


async def test_a_weight_for_a_while_ends_by_itself(world: World) -> None:
    """S41, S54: at its `until`, without anyone doing anything."""
    await _weigh(world, a=1, b=1)
    await world.override(SubjectKind.TENANT, "b", PolicyChange(weight=4), until=world.now + MINUTE)
    await _backlog(world, a=60, b=60)
    assert (await world.tenants_served(20)).count("b") == 16
    world.advance(60)
    served = await world.tenants_served(20)
    assert abs(served.count("a") - served.count("b")) <= 1


async def test_a_declared_weight_replaces_the_one_before(world: World) -> None:
    """S41, S54: the newest start wins, with the backlog that is there."""
    await _weigh(world, a=1, b=1)
    await _backlog(world, a=40, b=40)
    await world.claim(2)
    await _weigh(world, b=3)
    assert Counter(await world.tenants_served(16)) == {"a": 4, "b": 12}


async def test_each_queue_has_its_own_turns(world: World) -> None:
    """S41: what a tenant had in one queue is not held against it in another."""
    await _backlog(world, "x", a=20)
    await world.claim(20, "x")
    await _backlog(world, "y", a=4, b=4)
    assert await world.tenants_served(8, "y") == ["a", "b"] * 4


async def test_turns_do_not_depend_on_who_claims_or_when(world: World) -> None:
    """S41: workers, waits between claims and settled attempts change nothing in the order."""
    await _backlog(world, a=6, b=6, c=6)
    served = []
    for n in range(9):
        claim = await world.claim_one(worker=f"w{n % 2}")
        served.append(claim.job.tenant)
        if n % 3 == 0:
            await world.settle(claim, worker=f"w{n % 2}")
        world.advance(n)
    assert served == ["a", "b", "c"] * 3
