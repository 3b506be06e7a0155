"""The pass that makes due jobs ready, ends waits and heals gates (S20, S42, S43)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, PolicyChange, SubjectKind, TenantRules
from fairlane.store.contract.claims import PromoteReply
from tests.contract.world import ENDINGS, MICRO, World, failed


async def test_promote_makes_due_jobs_ready_and_changes_nothing_else_in_them(world: World) -> None:
    """S20, S23: from their time on, not a microsecond before; they keep their place."""
    job = await world.enqueue(delay=MINUTE, priority=5)
    world.advance(60 - MICRO)
    assert await world.promote() == PromoteReply(0, job.run_at)
    assert await world.get(job.id) == job
    world.advance(MICRO)
    assert await world.promote() == PromoteReply(1, None)
    assert await world.get(job.id) == msgspec.structs.replace(job, state=State.READY, because=None)
    assert await world.promote() == PromoteReply(0, None)


@pytest.mark.parametrize("how", ["retried", "snoozed", "unknown task"])
async def test_promote_ends_every_kind_of_delay(world: World, how: str) -> None:
    """S20, S23: a retry and a snooze like a time that was asked for."""
    await world.enqueue()
    delayed = await world.run(ENDINGS[how])
    world.advance((delayed.run_at - world.now) / SECOND)
    assert (await world.promote()).promoted == 1
    assert await world.get(delayed.id) == msgspec.structs.replace(delayed, state=State.READY, because=None)


async def test_promote_is_bounded_and_takes_the_earliest_first(world: World) -> None:
    """S20: over all queues and tenants; it says that there was more, and only then."""
    jobs = [
        await world.enqueue(f"t{n % 2}", queue="ab"[n % 2], delay=(9 - n) * SECOND, priority=n)
        for n in range(5)
    ]
    world.advance(60)
    first = await world.promote(limit=2)
    assert (first.promoted, first.is_partial) == (2, True)
    states = [(await world.get(job.id)).state for job in jobs]
    assert states == [State.DELAYED] * 3 + [State.READY] * 2
    second = await world.promote(limit=3)
    assert second == PromoteReply(3, None, is_partial=False)
    assert (await world.states())[State.READY] == 5


async def test_promote_leaves_running_finished_and_ready_jobs_alone(world: World) -> None:
    """S23: only delayed jobs become due."""
    await world.enqueue_many(3)
    claims = await world.claim(2)
    await world.settle(claims[0])
    world.advance(3600)
    before = await world.sight()
    assert await world.promote() == PromoteReply()
    assert await world.sight() == before


async def test_promote_says_when_to_come_back(world: World) -> None:
    """S20: at the earliest of all that time will free, in whatever queue."""
    start = world.now
    await world.send(
        world.new(delay=SECOND),
        world.new(queue="mail", delay=7 * SECOND),
        world.new("globex", delay=9 * SECOND),
    )
    world.advance(1)
    assert await world.promote() == PromoteReply(1, start + 7 * SECOND)


async def test_promoted_or_not_makes_no_difference_to_the_order(world: World) -> None:
    """S20, S35: half of the jobs are promoted, half are only due."""
    jobs = [await world.enqueue(delay=delay * SECOND, task=f"task{delay % 2}") for delay in (4, 2, 5, 1, 3)]
    world.advance(2)
    assert (await world.promote()).promoted == 2
    world.advance(9)
    claims = await world.claim(9)
    assert [claim.job.id for claim in claims] == [jobs[n].id for n in (3, 1, 4, 0, 2)]


async def test_promoting_and_claiming_at_once_hands_each_job_out_once(world: World) -> None:
    """S20, S35: whoever comes first; nothing is promoted twice or left behind."""
    await world.send(*(world.new(f"t{n % 3}", delay=SECOND) for n in range(12)))
    world.advance(1)
    promoting = asyncio.gather(*(world.promote(limit=5) for _ in range(3)))
    claiming = asyncio.gather(*(world.claim(3, worker=f"w{n}") for n in range(3)))
    _, taken = await asyncio.gather(promoting, claiming)
    claims = [claim for one in taken for claim in one]
    claims += await world.claim(12)
    assert len({claim.job.id for claim in claims}) == len(claims) == 12


# ── waits that time ends ─────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["pause", "rate", "limit"])
async def test_promote_ends_a_wait_from_its_time_on(world: World, what: str) -> None:
    """S42: it names the end of the wait beforehand, and ends it neither early nor for good."""
    start = world.now
    until = start + 30 * SECOND
    if what == "pause":
        await world.pause(SubjectKind.TENANT, "acme", until)
        await world.enqueue_many(2)
    elif what == "rate":
        rate = Limits(rate=Rate(2, "minute"))
        await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits={"default": rate}))
        await world.enqueue_many(3)
        await world.claim(1)
    else:
        change = PolicyChange(queue_limits={"default": Limits(running=0)})
        await world.override(SubjectKind.TENANT, "acme", change, until)
        await world.enqueue_many(2)
    assert await world.claim(9) == []
    assert await world.promote() == PromoteReply(0, until)
    world.advance(30 - MICRO)
    await world.promote()
    assert await world.claim(9) == []
    world.advance(MICRO)
    assert (await world.promote()).promoted == 0
    assert len(await world.claim(9)) == (1 if what == "rate" else 2)


async def test_promote_opens_no_wait_that_a_person_must_end(world: World) -> None:
    """S42, S46: a pause without end, a limit, a full gate stay."""
    await world.pause(SubjectKind.TENANT, "paused")
    await world.declare(SubjectKind.TENANT, "full", TenantRules(limits={"default": Limits(running=0)}))
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=0))
    await world.send(world.new("paused"), world.new("full"), world.new("third", task="gated"))
    assert await world.claim(9) == []
    world.advance(3600)
    assert await world.promote() == PromoteReply()
    assert await world.claim(9) == []


# ── gates ────────────────────────────────────────────────────────────────────


async def test_promote_fills_a_gate_whose_place_nobody_took(world: World) -> None:
    """S43: the first in line was paused meanwhile; a backlog of others must not hide the second."""
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    await world.send(world.new("first", task="gated"), world.new("second", task="gated"))
    await world.enqueue_many(20, "busy")
    assert set(await world.tenants_served(3)) == {"busy"}
    await world.pause(SubjectKind.TENANT, "first")
    await world.settle(holder)
    await world.claim(1)
    await world.promote()
    assert "second" in await world.tenants_served(2)


async def test_promote_passes_nobody_through_a_full_gate(world: World) -> None:
    """S43: it readies as many as there are places, and a claim counts again."""
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=2))
    await world.send(*(world.new(f"t{n}", task="gated") for n in range(6)))
    assert len(await world.claim(9)) == 2
    await world.promote()
    assert await world.claim(9) == []
    await world.override(SubjectKind.GATE, "door", PolicyChange(limit=3))
    await world.promote()
    assert len(await world.claim(9)) == 1


@pytest.mark.parametrize("how", ["enqueued", "retried", "edited"])
async def test_what_a_clock_that_was_back_for_a_while_has_delayed_is_due_at_its_time(
    world: World, how: str
) -> None:
    """S20: it is due long before what the last pass has seen, and no pass noticed that the clock was back."""
    waits = {"enqueued": [], "retried": [await world.enqueue()], "edited": [await world.enqueue(delay=HOUR)]}[
        how
    ]
    for _ in range(3):
        world.advance(20)
        await world.promote()
    world.advance(-60)
    if how == "enqueued":
        waits.append(await world.enqueue(delay=SECOND))
    elif how == "retried":
        await world.run(failed(after=SECOND))
    else:
        await world.edit(waits[0].id, run_at=world.now + SECOND)
    world.advance(60)
    assert (await world.promote()).promoted == 1
    assert (await world.get(waits[0].id)).state is State.READY
