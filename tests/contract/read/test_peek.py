"""Peek gives the next jobs in the order of a claim, and takes nothing (S65)."""

from __future__ import annotations

from typing import Final

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    GateRules,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from tests.contract.world import ALL, World


async def crowd(world: World) -> None:
    """Enqueue jobs of three tenants with two tasks each, some with priority, one of them first."""
    await world.enqueue_many(3, "acme", task="slow")
    await world.enqueue_many(2, "globex")
    world.advance(1)
    await world.enqueue("acme", priority=50)
    await world.enqueue("globex", task="slow", priority=-3)
    await world.enqueue_many(2, "initech")
    await world.enqueue("initech", delay=5 * SECOND)
    await world.enqueue("acme", queue="other")
    world.advance(5)


RULES: Final[dict[str, dict[Subject, Rules]]] = {
    "none": {},
    "weights": {Subject(SubjectKind.TENANT, "globex"): TenantRules(weight=3.0)},
    "running limit": {Subject(SubjectKind.QUEUE, "default"): QueueRules(limits=Limits(running=1))},
    "tenant's running limit": {
        Subject(SubjectKind.TENANT, "acme"): TenantRules(limits={"default": Limits(running=2)}),
    },
    "tenant's rate": {
        Subject(SubjectKind.QUEUE, "default"): QueueRules(limits=Limits(rate=Rate(1, burst=2)))
    },
    "queue's rate": {Subject(SubjectKind.QUEUE, "default"): QueueRules(rate=Rate(1, burst=4))},
    "task's rate": {Subject(SubjectKind.TASK, "slow"): TaskRules(rate=Rate(1, burst=2))},
    "gate": {
        Subject(SubjectKind.TASK, "slow"): TaskRules(gate="door"),
        Subject(SubjectKind.GATE, "door"): GateRules(limit=1),
    },
    "gate's rate": {
        Subject(SubjectKind.TASK, "noop"): TaskRules(gate="door"),
        Subject(SubjectKind.GATE, "door"): GateRules(rate=Rate(1, burst=3)),
    },
    "worker time": {Subject(SubjectKind.QUEUE, "default"): QueueRules(cost="seconds")},
}


@pytest.mark.parametrize("rules", RULES)
async def test_peek_gives_the_order_of_a_claim(world: World, rules: str) -> None:
    """S65: tenants take turns, strands go by their heads; limits, rates and gates are respected."""
    await crowd(world)
    await world.store.policies.put(PutRequest(scope=ALL, rules=RULES[rules]))
    peeked = [job.id for job in await world.peek(20)]
    claimed = [claim.job.id for claim in await world.claim(20)]
    assert peeked
    assert peeked == claimed


async def test_peek_takes_nothing_and_charges_nobody(world: World) -> None:
    """S65: records, counts and books are as before, and later claims come in the order peeked first."""
    await crowd(world)
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(rate=Rate(10, burst=10))))
    before = await world.sight()
    first = await world.peek(3)
    for _ in range(3):
        whole = await world.peek(20)
        assert whole[:3] == first
    assert await world.sight() == before
    assert [claim.job.id for claim in await world.claim(20)] == [job.id for job in whole]


async def test_peek_shows_jobs_as_they_are(world: World) -> None:
    """S65: the stored records, not what a claim would make of them; due jobs are among them, unpromoted."""
    ready = await world.enqueue()
    due = await world.enqueue(delay=SECOND)
    world.advance(1)
    assert await world.peek() == (ready, due)
    assert await world.get(due.id) == due


async def test_peek_gives_no_more_than_asked_and_no_more_than_there_are(world: World) -> None:
    """S65: in the order of the queue; an empty or unknown queue gives nothing."""
    jobs = await world.enqueue_many(3)
    assert await world.peek(0) == ()
    assert await world.peek(2) == tuple(jobs[:2])
    assert await world.peek(99) == tuple(jobs)
    assert await world.peek(99, "never-used") == ()


async def test_peek_leaves_out_what_could_not_be_claimed_now(world: World) -> None:
    """S21, S65: delayed, running, finished and expired jobs are not next; peeking cancels none of them."""
    await world.run_now((await world.enqueue(delay=9)).id)
    await world.run()
    await world.enqueue()
    await world.claim_one()
    await world.enqueue(delay=SECOND)
    late = await world.enqueue(expires_in=1)
    world.advance(0.000_001)
    ready = await world.enqueue()
    assert await world.peek() == (ready,)
    assert await world.get(late.id) == late


@pytest.mark.parametrize(
    ("kind", "name", "left"),
    [
        (SubjectKind.QUEUE, "default", []),
        (SubjectKind.TENANT, "acme", ["globex"]),
        (SubjectKind.TASK, "noop", ["acme"]),
        (SubjectKind.TENANT, "nobody", ["acme", "globex", "acme"]),
    ],
)
async def test_peek_respects_pauses(world: World, kind: SubjectKind, name: str, left: list[str]) -> None:
    """S46, S65: what is paused is left out, and is back when the pause ends."""
    await world.enqueue("acme")
    await world.enqueue("globex")
    await world.enqueue("acme", task="other")
    whole = await world.peek()
    await world.pause(kind, name)
    assert [job.tenant for job in await world.peek()] == left
    await world.resume(kind, name)
    assert await world.peek() == whole


async def test_peek_under_a_scope_shows_that_tenant_alone(world: World) -> None:
    """S9, S65: in the order in which they would come if nobody else had any."""
    jobs = await world.enqueue_many(2, "acme")
    await world.enqueue_many(2, "globex")
    assert await world.peek(9, scope=Scope("acme")) == tuple(jobs)
    assert await world.peek(9, scope=Scope("initech")) == ()


async def test_peek_under_a_scope_respects_limits_and_what_is_parked(world: World) -> None:
    """S9, S42, S65: the second in line at a gate would have the place if it were alone there."""
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    await world.enqueue_many(2, "acme", task="gated")
    second, _ = await world.enqueue_many(2, "globex", task="gated")
    assert await world.claim(9) == []
    assert await world.peek(9, scope=Scope("globex")) == ()
    await world.settle(holder)
    assert await world.peek(9, scope=Scope("globex")) == (second,)
    assert [job.tenant for job in await world.peek(9)] == ["acme"]


async def test_a_peek_is_bounded(world: World) -> None:
    """S65: a page and no more; asking for more is refused, not cut short in silence."""
    job = await world.enqueue()
    assert await world.peek(MAX_PAGE_SIZE) == (job,)
    with pytest.raises(ValueError, match="at most 1000, not 1001"):
        await world.peek(MAX_PAGE_SIZE + 1)


async def test_a_peek_sees_past_many_that_may_not_run(world: World) -> None:
    """S65, S42: more tenants are held than one claim parks, and the next job is found behind them."""
    await world.send(*(world.new(f"t{number}") for number in range(80)))
    (last,) = await world.enqueue_many(1, "free")
    for number in range(80):
        await world.pause(SubjectKind.TENANT, f"t{number}")
    assert [job.id for job in await world.peek()] == [last.id]
    assert [claim.job.id for claim in await world.claim()] == [last.id]
