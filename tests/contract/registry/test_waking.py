"""What was parked comes back by claims and promote, a bounded number each (S42, S43, S54).

1,200 tenants, so that it takes three claims whatever the store: twice and a bit what one may wake.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.job import Claim
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import (
    EVERY,
    GateRules,
    PolicyChange,
    QueueRules,
    SubjectKind,
    TenantRules,
)
from fairlane.store.contract.claims import MAX_UNPARKED, ClaimReply
from tests.contract.world import World

MANY = 1_200
TENANTS = [f"t{number:04}" for number in range(MANY)]
NONE_AT_ALL = Limits(running=0)


async def _limit_until(world: World) -> None:
    change = PolicyChange(queue_limits={"default": NONE_AT_ALL})
    await world.override(SubjectKind.TENANT, EVERY, change, until=world.now + MINUTE)


async def _limit(world: World) -> None:
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules(limits={"default": NONE_AT_ALL}))


async def _limit_queue(world: World) -> None:
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=NONE_AT_ALL))


async def _shut_gate(world: World) -> None:
    await world.put_gate("door", "noop")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=0))


async def _minute(world: World) -> None:
    world.advance(MINUTE / SECOND)


Deed = Callable[[World], Awaitable[object]]

CAUSES: dict[str, tuple[Deed, Deed]] = {
    "time": (_limit_until, _minute),
    "a declaration": (_limit, lambda w: w.declare(SubjectKind.TENANT, EVERY, TenantRules())),
    "an override": (
        _limit_queue,
        lambda w: w.override(SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(running=1))),
    ),
    "the end of a pause": (
        lambda w: w.pause(SubjectKind.TASK, "noop"),
        lambda w: w.resume(SubjectKind.TASK, "noop"),
    ),
    "an open gate": (_shut_gate, lambda w: w.override(SubjectKind.GATE, "door", PolicyChange(limit=None))),
}
"""What parks all tenants of the default queue, and what frees them all at once."""


async def _park_all(world: World, cause: str) -> None:
    """Have one job of every tenant, all of them parked."""
    await CAUSES[cause][0](world)
    for tenants in (TENANTS[:600], TENANTS[600:]):
        await world.send(*(world.new(tenant) for tenant in tenants))
    assert await world.claim(1) == []


def _tenants(claims: tuple[Claim, ...] | list[Claim]) -> list[str]:
    return [claim.job.tenant for claim in claims]


@pytest.mark.parametrize("cause", CAUSES)
async def test_claims_wake_a_bounded_number_and_say_that_there_is_more(world: World, cause: str) -> None:
    """S35, S42, S54: each claim returns what it unparked, in the fair order, until none is left."""
    await _park_all(world, cause)
    await CAUSES[cause][1](world)
    replies: list[ClaimReply] = []
    while not replies or replies[-1].is_partial:
        replies.append(await world.claim_reply(MANY))
        assert len(replies[-1].claims) <= MAX_UNPARKED
        assert len(replies) < 50, "asking again must end"
    assert [tenant for reply in replies for tenant in _tenants(reply.claims)] == TENANTS


@pytest.mark.parametrize("cause", ["time", "an open gate"])
async def test_promote_wakes_a_bounded_number_and_says_that_there_is_more(world: World, cause: str) -> None:
    """S42, S54: and asking again ends; a claim that comes in between wakes on from there."""
    await _park_all(world, cause)
    await CAUSES[cause][1](world)
    assert (await world.promote()).is_partial
    first = await world.claim_reply(1)
    assert (_tenants(first.claims), first.is_partial) == (TENANTS[:1], False)
    passes = 0
    while (await world.promote()).is_partial:
        passes += 1
        assert passes < 50, "asking again must end"
    rest = await world.claim(MANY)
    assert _tenants(rest) == TENANTS[1:]


async def test_wishes_after_a_queue_that_stopped_early_are_served(world: World) -> None:
    """S35: the bound is a queue's own, the reply is partial all the same."""
    await _park_all(world, "a declaration")
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules())
    await world.enqueue_many(3, "acme", queue="mail")
    reply = await world.claim_reply(MANY, queue_requests=[("default", MANY), ("mail", 9)])
    assert _tenants(reply.claims)[-3:] == ["acme"] * 3
    assert reply.is_partial


async def test_what_was_woken_for_nothing_is_parked_again_and_asking_again_ends(world: World) -> None:
    """S35, S42: a pause replaced by another frees nobody; who is free is found behind all of them."""
    await _park_all(world, "the end of a pause")
    await world.pause(SubjectKind.TASK, "noop", until=world.now + MINUTE)
    free = await world.enqueue("zz", task="free")
    found: list[Claim] = []
    for _ in range(100):
        reply = await world.claim_reply(9)
        found += reply.claims
        if not reply.is_partial:
            break
    assert not reply.is_partial
    assert [claim.job.id for claim in found] == [free.id]
    assert reply.next_due_at == world.now + MINUTE


async def test_a_claim_that_is_full_leaves_the_rest_for_the_next(world: World) -> None:
    """S35: it is not partial, and what it had no use for is not lost."""
    await _park_all(world, "time")
    await world.reset(SubjectKind.TENANT, EVERY)
    served = []
    for _ in range(3):
        reply = await world.claim_reply(2)
        assert (reply.is_partial, reply.next_due_at) == (False, None)
        served += _tenants(reply.claims)
    assert served == TENANTS[:6]
    assert _tenants(await world.claim(MANY)) == TENANTS[6:]


async def test_what_a_change_frees_gets_no_credit_for_the_time_until_a_claim(world: World) -> None:
    """S41, S54: it starts at the virtual time of the claim that unparks it: every second turn, no more."""
    await world.pause(SubjectKind.TENANT, "acme")
    await world.enqueue_many(9, "acme")
    await world.enqueue_many(30, "globex")
    assert await world.tenants_served(6) == ["globex"] * 6
    await world.resume(SubjectKind.TENANT, "acme")
    world.advance(3600)
    assert await world.tenants_served(6) == ["acme", "globex"] * 3


async def test_a_queue_is_made_ready_only_when_its_wish_comes_up(world: World) -> None:
    """S35: with the total reached before, its due jobs stay delayed and what is next there is not told."""
    await world.enqueue_many(2, queue="first")
    due = await world.enqueue(queue="second", delay=SECOND)
    world.advance(1)
    reply = await world.claim_reply(2, queue_requests=[("first", 9), ("second", 9)])
    assert (len(reply.claims), reply.next_due_at) == (2, None)
    assert await world.get(due.id) == due
    assert [claim.job.id for claim in await world.claim(2, queue_requests=[("first", 9), ("second", 9)])] == [
        due.id
    ]


async def test_a_gate_that_opens_for_many_lets_them_all_in_before_anybody_is_served(world: World) -> None:
    """S43: each tenant's gated job is older than its other one, and goes before it; some at a time or not."""
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    tenants = TENANTS[:120]
    await world.send(*(world.new(tenant, task="gated") for tenant in tenants))
    await world.claim(1)
    while (await world.claim_reply(1)).is_partial:
        pass
    world.advance(1)
    await world.send(*(world.new(tenant) for tenant in tenants))
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=100))
    served = await world.claim(120)
    assert [claim.job.task for claim in served].count("gated") == 99
