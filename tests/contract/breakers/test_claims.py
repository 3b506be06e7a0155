"""What a breaker that is not closed means for claims: the line, the probe, the ramp (S58, S110, S111)."""

from __future__ import annotations

import asyncio

import pytest

from fairlane.model.instants import MINUTE
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Rate
from fairlane.model.policy.overrides import BreakerRules, GateRules, Subject, SubjectKind, TaskRules
from fairlane.model.retry.decision import AttemptResult
from tests.contract.breakers.scene import (
    OPEN_FOR,
    claim_with_permits,
    end,
    guard,
    operate,
    phase_of,
    report,
    state_of,
    trip,
    until,
)
from tests.contract.world import SNOOZED, UNSTARTED, World, failed


async def test_a_closed_breaker_holds_nobody_and_gives_no_permits(world: World) -> None:
    """S58: whatever was counted; also where nothing was declared about it."""
    await guard(world)
    await report(world, failed=4, succeeded=9)
    await world.enqueue_many(20, task="send")
    claims, permits = await claim_with_permits(world, 50)
    assert (len(claims), permits) == (20, [])


async def test_an_open_breaker_parks_its_strands_and_no_others(world: World) -> None:
    """S58: in every queue, of every tenant; other tasks of the same tenants go on."""
    await guard(world, "send", "fax")
    await world.send(
        *(
            world.new(tenant, queue=queue, task=task)
            for queue in ("a", "b")
            for tenant in ("acme", "globex")
            for task in ("send", "plain", "fax")
        )
    )
    await trip(world)
    claims = await world.claim(50, queue_requests=[("a", 50), ("b", 50)])
    assert [claim.job.task for claim in claims] == ["plain"] * 4
    assert await world.claim(50, queue_requests=[("a", 50), ("b", 50)]) == []


async def test_explain_names_the_breaker_and_when_it_lets_somebody_pass(world: World) -> None:
    """S58: before a claim has met the job, and after."""
    await guard(world)
    (job,) = await world.enqueue_many(1, task="send")
    await trip(world)
    for _ in range(2):
        why = await world.explain(job.id)
        assert (why.reason, why.subject, why.until) == ("breaker", "breaker mail", until(world))
        assert await world.claim(9) == []


async def test_a_claim_says_when_the_breaker_lets_somebody_pass(world: World) -> None:
    """S58, S35: a worker with nothing else to do knows when to ask again."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    await trip(world)
    reply = await world.claim_reply(9)
    assert (reply.claims, reply.next_due_at) == ((), until(world))
    assert (await world.promote()).next_due_at == until(world)


async def test_half_open_lets_exactly_one_job_pass(world: World) -> None:
    """S110: whichever queue, worker and tenant asks; it is named as the one with a permit."""
    await guard(world)
    jobs = [world.new(f"t{n % 3}", queue="ab"[n % 2], task="send") for n in range(12)]
    await world.send(*jobs)
    await trip(world, "t0")
    world.advance(OPEN_FOR)
    taken = await asyncio.gather(
        *(claim_with_permits(world, 5, queue="ab"[n % 2], worker=f"w{n}") for n in range(8))
    )
    claims = [claim for some, _ in taken for claim in some]
    assert len(claims) == 1
    assert [id for _, permits in taken for id in permits] == [claims[0].job.id]
    state = await state_of(world)
    assert (state.permits, state.half_opened_at) == ((claims[0].job.id,), world.now)


async def test_not_a_moment_before_its_time(world: World) -> None:
    """S110: a microsecond before, nobody; then one."""
    await guard(world)
    await world.enqueue_many(2, task="send")
    await trip(world)
    assert await world.claim(9) == []
    world.advance(OPEN_FOR - 0.000001)
    assert await world.claim(9) == []
    world.advance(0.000001)
    assert len(await world.claim(9)) == 1


@pytest.mark.parametrize("ramp", [1, 2, 8])
async def test_the_ramp_doubles_and_then_closes(world: World, ramp: int) -> None:
    """S111: one, two, four … at once, as long as all succeed."""
    await guard(world, rules=BreakerRules(ramp=ramp))
    await world.enqueue_many(40, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    slots = 1
    while slots <= ramp:
        claims, permits = await claim_with_permits(world, 30)
        assert len(claims) == len(permits) == slots
        for claim in claims:
            await end(world, claim)
        slots *= 2
    assert await phase_of(world) == "closed"
    claims, permits = await claim_with_permits(world, 50)
    assert (len(claims), permits) == (40 - (2 * ramp - 1), [])


async def test_within_a_step_of_the_ramp_a_success_lets_the_next_one_pass(world: World) -> None:
    """S111: two at once stay two at once until two have succeeded."""
    await guard(world)
    await world.enqueue_many(20, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    await end(world, await world.claim_one())
    first, _ = await world.claim(9)
    await end(world, first)
    assert len(await world.claim(9)) == 1
    assert (await state_of(world)).slots == 2


@pytest.mark.parametrize("step", [1, 2, 4])
async def test_one_failure_of_those_that_pass_opens_it_again(world: World, step: int) -> None:
    """S111: for the whole time once more, whatever the others that passed come to."""
    await guard(world)
    await world.enqueue_many(20, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    claims = await world.claim(9)
    while len(claims) < step:
        for claim in claims:
            await end(world, claim)
        claims = await world.claim(9)
    await end(world, claims[0], passed=False)
    assert await phase_of(world) == "open"
    assert await world.claim(9) == []
    for claim in claims[1:]:
        await end(world, claim)
    state = await state_of(world)
    assert (state.open_until, state.trips) == (until(world), 2)
    world.advance(OPEN_FOR)
    assert len(await world.claim(9)) == 1


async def test_what_began_before_it_opened_neither_closes_it_nor_opens_it_longer(world: World) -> None:
    """S110: late outcomes are counted, and decide nothing."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    early, other = await world.claim(2)
    await trip(world)
    opened = await state_of(world)
    world.advance(5)
    await end(world, early, passed=True)
    await end(world, other, passed=False)
    state = await state_of(world)
    assert (state.open_until, state.slots, state.trips) == (opened.open_until, 1, 1)
    assert (state.succeeded, state.failed) == (1, 6)


async def test_a_lost_probe_is_given_again(world: World) -> None:
    """S110: its worker was killed: once the job is taken back, one job passes, the lost one or another."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    lost = await world.claim_one()
    assert await world.claim(9) == []
    await world.lose()
    claims, permits = await claim_with_permits(world, 9, worker="w2")
    assert [claim.job.id for claim in claims] == permits == [lost.job.id]
    assert await world.claim(9) == []
    assert (await world.settle_reply(world.verdict(lost))).stale == (lost.job.id,)
    assert await phase_of(world) == "half_open"


@pytest.mark.parametrize(
    "ending", [SNOOZED, UNSTARTED, failed()], ids=["snoozed", "unstarted", "other error"]
)
async def test_a_probe_that_says_nothing_gives_its_permit_back(world: World, ending: AttemptResult) -> None:
    """S110: it snoozed, did not start, or failed by an error that does not count: the next one passes."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    await trip(world)
    world.advance(OPEN_FOR)
    probe = await world.claim_one()
    await world.settle(probe, ending)
    claims, permits = await claim_with_permits(world, 9)
    assert [claim.job.id for claim in claims] == permits
    assert len(claims) == 1
    assert await phase_of(world) == "half_open"


async def test_those_that_wait_pass_in_the_order_in_which_they_met_it(world: World) -> None:
    """S110, S43: by the fair order at which they parked, as at a gate."""
    await guard(world)
    await world.send(*(world.new(tenant, task="send") for tenant in "abc" for _ in range(2)))
    await trip(world, "a")
    assert await world.claim(9) == []
    world.advance(OPEN_FOR)
    served = []
    for _ in range(3):
        claims = await world.claim(9)
        served += [claim.job.tenant for claim in claims]
        for claim in claims:
            await end(world, claim)
    assert served[:3] == ["a", "b", "c"]


async def test_a_breaker_of_each_tenant_stops_that_tenant_alone(world: World) -> None:
    """S112: its jobs wait, those of others run, with permits of nobody."""
    await guard(world, rules=BreakerRules(per="tenant"))
    await world.send(*(world.new(tenant, task="send") for tenant in ("acme", "globex") for _ in range(2)))
    await trip(world, "acme")
    claims, permits = await claim_with_permits(world, 9)
    assert ([claim.job.tenant for claim in claims], permits) == (["globex"] * 2, [])
    assert await phase_of(world, "globex") == "closed"
    world.advance(OPEN_FOR)
    claims, permits = await claim_with_permits(world, 9)
    assert [claim.job.tenant for claim in claims] == ["acme"]
    assert permits == [claims[0].job.id]


async def test_a_breaker_and_a_gate_of_one_task_both_hold(world: World) -> None:
    """S58, S43: first the breaker, then the gate; nobody loses a place."""
    await guard(world, gate="door")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    await world.enqueue_many(3, task="send")
    held = await world.claim_one()
    await trip(world)
    await world.settle(held)
    assert await world.claim(9) == []
    await operate(world, "reset")
    (claim,) = await world.claim(9)
    await world.settle(claim)
    assert len(await world.claim(9)) == 1


async def test_a_breaker_is_asked_before_a_rate(world: World) -> None:
    """S58, S44: no start is counted for what may not pass."""
    await world.put(
        {
            Subject(SubjectKind.TASK, "send"): TaskRules(breaker="mail", rate=Rate(1, "minute")),
            Subject(SubjectKind.BREAKER, "mail"): BreakerRules(),
        }
    )
    first, second = await world.enqueue_many(2, task="send")
    await trip(world)
    assert await world.claim(9) == []
    assert (await world.explain(first.id)).reason == "breaker"
    world.advance(OPEN_FOR)
    await end(world, await world.claim_one())
    assert await world.claim(9) == []
    assert (await world.explain(second.id)).reason == "rate"


async def test_a_task_that_no_longer_names_it_runs_again(world: World) -> None:
    """S58, S54: the strands in its line are let out."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    await trip(world)
    assert await world.claim(9) == []
    await world.put({Subject(SubjectKind.TASK, "send"): TaskRules()})
    assert len(await world.claim(9)) == 3


async def test_nothing_is_claimed_ahead_while_it_is_not_closed(world: World) -> None:
    """S68: a permit is for a job that starts."""
    await guard(world)
    await world.enqueue_many(6, task="send", max_attempts=5)
    assert len(await world.claim(2, ahead=1)) == 2
    await trip(world)
    world.advance(OPEN_FOR)
    reply = await world.claim_reply(1, ahead=1)
    assert (reply.claims, reply.is_ahead_cut) == ((), True)
    assert len(await world.claim(1)) == 1


async def test_a_peek_shows_what_may_pass_and_takes_no_permit(world: World) -> None:
    """S65, S110: half-open, one of many."""
    await guard(world)
    await world.enqueue_many(3, task="send")
    await trip(world)
    assert await world.peek(9) == ()
    world.advance(OPEN_FOR)
    for _ in range(2):
        assert len(await world.peek(9)) == 1
    assert (await state_of(world)).permits == ()


async def test_jobs_behind_it_expire_and_are_cancelled_as_ever(world: World) -> None:
    """S58, S21: parking keeps nobody from its end."""
    await guard(world)
    (old,) = await world.enqueue_many(1, task="send", expires_at=world.now + MINUTE // 2)
    await trip(world)
    assert await world.claim(9) == []
    world.advance(OPEN_FOR)
    assert await world.claim(9) == []
    await world.expire()
    assert (await world.get(old.id)).state is State.CANCELLED


async def test_a_closed_breaker_again_lets_all_pass_that_waited(world: World) -> None:
    """S111: more strands than a claim unparks at once."""
    await guard(world)
    await world.send(*(world.new(f"t{n}", task="send") for n in range(70)))
    await trip(world, "t0")
    assert await world.claim(100) == []
    await operate(world, "reset")
    assert len(await world.claim(100)) == 70
