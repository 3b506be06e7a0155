"""A task that has a breaker and a budget waits for both (S58, S59)."""

from __future__ import annotations

from fairlane.model.instants import DAY, SECOND
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import BreakerRules, Subject, SubjectKind, TaskRules
from tests.contract.breakers.scene import OPEN_FOR, claim_with_permits, end, operate, phase_of, state_of, trip
from tests.contract.world import World


async def guard_twice(world: World, **rules: object) -> None:
    """Declare a task behind the breaker `mail` and under the budget `ai`, of which one job takes all."""
    values = {"ceiling": 100, "currency": "USD", "per": "day", "on_spent": "park", "estimate": 100, **rules}
    await world.put(
        {
            Subject(SubjectKind.TASK, "send"): TaskRules(breaker="mail", budget="ai"),
            Subject(SubjectKind.BREAKER, "mail"): BreakerRules(ramp=1),
        }
    )
    await world.declare(SubjectKind.BUDGET, "ai", BudgetRules(**values))  # type: ignore[arg-type]


async def test_parked_by_the_breaker_and_then_by_the_budget(world: World) -> None:
    """S58, S59: what the breaker holds back reserves nothing; what the budget holds back has no permit."""
    await guard_twice(world)
    first, second = await world.enqueue_many(2, task="send")
    await trip(world)
    assert await world.claim(9) == []
    assert (await world.explain(first.id)).reason == "breaker"
    assert await world.accounts("ai") == {}
    world.advance(OPEN_FOR)
    claims, permits = await claim_with_permits(world, 9)
    assert [claim.job.id for claim in claims] == permits == [first.id]
    assert await world.account("ai") == (0, 100)
    (probe,) = claims
    await end(world, probe)
    assert await phase_of(world) == "closed"
    assert [claim.job.id for claim in await world.claim(9)] == [second.id]


async def test_parked_by_the_budget_and_then_by_the_breaker(world: World) -> None:
    """S58, S59: the strand that the budget let go meets the breaker, and passes once both let it."""
    await guard_twice(world)
    first, second = await world.enqueue_many(2, task="send")
    running = await world.claim_one()
    assert running.job.id == first.id
    assert await world.claim(9) == []
    assert (await world.explain(second.id)).reason == "budget"
    await trip(world)
    await world.settle(running, spent=0)
    assert await world.claim(9) == []
    assert (await world.explain(second.id)).reason == "breaker"
    assert await world.account("ai") == (0, 0)
    world.advance(OPEN_FOR)
    claims, permits = await claim_with_permits(world, 9)
    assert [claim.job.id for claim in claims] == permits == [second.id]
    assert await world.account("ai") == (0, 100)


async def test_the_permit_goes_to_a_job_that_has_room(world: World) -> None:
    """S110, S59: a half-open breaker waits for nobody who waits for a budget."""
    await guard_twice(world)
    await world.put({Subject(SubjectKind.TASK, "fax"): TaskRules(breaker="mail")})
    await world.enqueue(task="send")
    await world.settle(await world.claim_one(), spent=100)
    poor, free = await world.enqueue(task="send"), await world.enqueue(task="fax")
    await trip(world)
    assert await world.claim(9) == []
    world.advance(OPEN_FOR)
    claims, permits = await claim_with_permits(world, 9)
    assert [claim.job.id for claim in claims] == permits == [free.id]
    assert (await state_of(world)).permits == (free.id,)
    await end(world, claims[0])
    assert await phase_of(world) == "closed"
    assert await world.claim(9) == []
    assert (await world.explain(poor.id)).reason == "budget"
    world.advance((DAY - world.now % DAY) / SECOND)
    assert [claim.job.id for claim in await world.claim(9)] == [poor.id]


async def test_a_job_that_dies_of_its_budget_passes_as_a_probe_that_says_nothing(world: World) -> None:
    """S59, S110: it is handed out to die, reserves nothing, and its permit is free at its end."""
    await guard_twice(world, on_spent="fail")
    await world.enqueue_many(3, task="send")
    await world.settle(await world.claim_one(), spent=100)
    await trip(world)
    assert await world.claim(9) == []
    world.advance(OPEN_FOR)
    (late,) = await world.claim(9)
    assert late.is_over_budget
    await world.settle(late)
    (next_one,) = await world.claim(9)
    assert next_one.is_over_budget
    assert await phase_of(world) == "half_open"
    assert await world.account("ai") == (100, 0)


async def test_a_reset_breaker_wakes_as_many_as_the_budget_has_room_for(world: World) -> None:
    """S111, S59: the others wait for the budget, and have left the breaker's line."""
    await guard_twice(world, estimate=40)
    await world.send(*(world.new(f"t{n}", task="send") for n in range(5)))
    await trip(world, "t0")
    assert await world.claim(9) == []
    await operate(world, "reset")
    claims = await world.claim(9)
    assert len(claims) == 2
    assert await world.account("ai") == (0, 80)
    for claim in claims:
        await world.settle(claim, spent=10)
    assert len(await world.claim(9)) == 2
