"""How many of a tenant's jobs run at once in a queue (S45)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import PolicyChange, QueueRules, Rules, Subject, SubjectKind, TenantRules
from fairlane.store.contract.upkeep import TenantCounters
from tests.contract.world import ENDINGS, World

QUEUE = Subject(SubjectKind.QUEUE, "default")
ACME = Subject(SubjectKind.TENANT, "acme")
EVERYONE = Subject(SubjectKind.TENANT, "*")


def _queue(running: int) -> QueueRules:
    return QueueRules(limits=Limits(running=running))


def _tenant(running: int | None, queue: str = "default") -> TenantRules:
    return TenantRules(limits={queue: Limits(running=running)})


@pytest.mark.parametrize("limit", [0, 1, 3, 10, 11])
async def test_a_batch_takes_exactly_what_the_limit_leaves(world: World, limit: int) -> None:
    """S45: the n+1st does not run, in one claim or in the next; others have their own room."""
    await world.put({QUEUE: _queue(limit)})
    await world.send(*(world.new(tenant) for tenant in ("acme", "globex") for _ in range(10)))
    served = await world.tenants_served(50)
    assert (served.count("acme"), served.count("globex")) == (min(10, limit), min(10, limit))
    assert await world.claim(50) == []


async def test_a_turn_that_the_limit_takes_goes_to_the_next_tenant(world: World) -> None:
    """S41, S45: not to one that was served already and has a heavy weight, in a claim of few."""
    heavy = TenantRules(weight=4)
    await world.put({Subject(SubjectKind.TENANT, "full"): _tenant(0), ACME: heavy})
    await world.send(*(world.new(name) for name in ("full", "acme", "acme", "globex", "initech")))
    assert await world.tenants_served(2) == ["acme", "globex"]


async def test_the_limit_is_of_each_tenant_in_each_queue(world: World) -> None:
    """S45: what runs elsewhere does not count; over workers it does."""
    await world.put({EVERYONE: _tenant(2, "*")})
    await world.send(
        *(world.new(t, queue=q) for q in ("a", "b") for t in ("acme", "globex") for _ in range(5))
    )
    for queue in ("a", "b"):
        claims = await world.claim(1, queue, worker="w1") + await world.claim(9, queue, worker="w2")
        assert [claim.job.tenant for claim in claims] == ["acme", "globex"] * 2
    assert (await world.census()).tenants == tuple(
        TenantCounters(queue, tenant, 3, 2) for queue in ("a", "b") for tenant in ("acme", "globex")
    )


@pytest.mark.parametrize(
    ("rules", "runs"),
    [
        ({QUEUE: _queue(2)}, 2),
        ({QUEUE: _queue(2), EVERYONE: _tenant(3, "*")}, 3),
        ({QUEUE: _queue(2), EVERYONE: _tenant(1)}, 1),
        ({QUEUE: _queue(2), EVERYONE: _tenant(3), ACME: _tenant(4, "*")}, 4),
        ({QUEUE: _queue(2), EVERYONE: _tenant(3), ACME: _tenant(5)}, 5),
        ({QUEUE: _queue(2), ACME: _tenant(None)}, 9),
        ({QUEUE: _queue(2), ACME: _tenant(5, "other")}, 2),
        ({}, 9),
    ],
    ids=[
        "the queue's",
        "of every tenant in every queue",
        "of every tenant in this queue",
        "its own in every queue",
        "its own in this queue",
        "its own without limit",
        "its own in another queue",
        "none",
    ],
)
async def test_the_most_specific_limit_holds(world: World, rules: Mapping[Subject, Rules], runs: int) -> None:
    """S45: the tenant's own, then of all tenants, then the queue's; higher or lower."""
    await world.put(rules)
    await world.enqueue_many(9)
    assert len(await world.claim(20)) == runs


async def test_concurrent_claimers_together_never_exceed_the_limit(world: World) -> None:
    """S45: eight at once; the limit is used up, not passed, and the others fill the rest."""
    await world.put({QUEUE: _queue(5)})
    await world.send(*(world.new(tenant) for tenant in ("acme", "globex") for _ in range(20)))
    taken = await asyncio.gather(*(world.claim(4, worker=f"w{n}") for n in range(8)))
    claims = [claim for one in taken for claim in one]
    running = [claim.job.tenant for claim in claims]
    assert max(running.count("acme"), running.count("globex")) <= 5
    running += await world.tenants_served(40)
    assert (running.count("acme"), running.count("globex")) == (5, 5)


async def test_settling_and_claiming_at_once_never_exceed_the_limit(world: World) -> None:
    """S45: while places are given back others take them, one for one."""
    await world.put({QUEUE: _queue(4)})
    await world.enqueue_many(20)
    held = await world.claim(4)
    request = world.claim_request(2)
    replies = await asyncio.gather(
        *(world.settle_reply(world.verdict(claim), claim=request) for claim in held)
    )
    assert all(len(reply.settled) == 1 for reply in replies)
    await world.claim(20)
    states = await world.states()
    assert (states[State.SUCCEEDED], states[State.RUNNING], states[State.READY]) == (4, 4, 12)


async def test_room_that_a_limit_leaves_unused_goes_to_the_others(world: World) -> None:
    """S41, S45: no slot idles while anyone else has work."""
    await world.put({ACME: _tenant(1)})
    await world.enqueue_many(50, "acme")
    await world.enqueue_many(9, "globex")
    assert await world.tenants_served(8) == ["acme"] + ["globex"] * 7


# ── room comes back ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", [*ENDINGS, "lost"])
async def test_every_end_of_an_attempt_gives_one_place_back(world: World, how: str) -> None:
    """S45: in the same step, so that the next claim can have it; one and no more."""
    await world.put({QUEUE: _queue(2)})
    await world.enqueue_many(9)
    (claim,) = await world.claim(1, lease=5 * SECOND)
    await world.claim(9, lease=60 * SECOND)
    assert await world.claim(9) == []
    if how == "lost":
        await world.lose()
    else:
        await world.settle(claim, ENDINGS[how])
    assert (await world.census()).tenants[0].running == 1
    assert len(await world.claim(9)) == 1


async def test_a_cancel_gives_the_place_back_when_it_is_obeyed_not_when_it_is_asked(world: World) -> None:
    """S30, S45: until then the job still runs."""
    await world.put({QUEUE: _queue(1)})
    await world.enqueue_many(2)
    claim = await world.claim_one()
    await world.cancel(claim.job.id)
    assert await world.claim(9) == []
    assert await world.settle(claim, ENDINGS["snoozed"]) is State.CANCELLED
    assert len(await world.claim(9)) == 1


async def test_an_ended_lease_alone_gives_no_place_back(world: World) -> None:
    """S37, S45: claims count until they are settled or reclaimed."""
    await world.put({QUEUE: _queue(1)})
    await world.enqueue_many(2)
    await world.claim_one()
    world.advance(3600)
    assert await world.claim(9) == []
    await world.reclaim()
    assert len(await world.claim(9)) == 1


# ── a limit that changes ─────────────────────────────────────────────────────


async def test_a_lowered_limit_interrupts_nothing_and_lets_nobody_in_until_it_is_met(world: World) -> None:
    """S45: three run on under a limit of one; the next starts when none of them is left."""
    await world.put({QUEUE: _queue(3)})
    await world.enqueue_many(9)
    claims = await world.claim(9)
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(running=1)))
    assert (await world.renew(*claims)).stale == ()
    for claim in claims:
        assert await world.claim(9) == []
        assert await world.settle(claim) is State.SUCCEEDED
    assert len(await world.claim(9)) == 1


@pytest.mark.parametrize("layer", ["queue", "everyone", "tenant"])
async def test_a_raised_limit_lets_exactly_so_many_more_in(world: World, layer: str) -> None:
    """S45, S54: at the next claim, whichever layer it stands in."""
    declared: dict[str, tuple[Subject, Rules, Rules]] = {
        "queue": (QUEUE, _queue(1), _queue(4)),
        "everyone": (EVERYONE, _tenant(1), _tenant(4)),
        "tenant": (ACME, _tenant(1), _tenant(4)),
    }
    subject, low, high = declared[layer]
    await world.put({subject: low})
    await world.enqueue_many(9)
    assert len(await world.claim(9)) == 1
    await world.put({subject: high})
    assert len(await world.claim(9)) == 3


async def test_a_limit_of_zero_holds_everything_until_it_is_raised(world: World) -> None:
    """S45: and says so."""
    await world.put({ACME: _tenant(0)})
    job = await world.enqueue()
    assert await world.claim(9) == []
    why = await world.explain(job.id)
    assert (why.reason, why.subject, why.until) == ("running_limit", "tenant acme", None)
    await world.override(
        SubjectKind.TENANT, "acme", PolicyChange(queue_limits={"default": Limits(running=1)})
    )
    assert len(await world.claim(9)) == 1


@pytest.mark.parametrize("subject", [QUEUE, EVERYONE, ACME], ids=str)
async def test_a_limit_for_a_while_ends_by_itself(world: World, subject: Subject) -> None:
    """S45, S54: at its `until`, and the claim before says when that is."""
    none = Limits(running=0)
    change = PolicyChange(limits=none) if subject == QUEUE else PolicyChange(queue_limits={"*": none})
    await world.override(subject.kind, subject.name, change, until=world.now + MINUTE)
    await world.enqueue_many(3)
    reply = await world.claim_whole(9)
    assert (reply.claims, reply.next_due_at) == ((), world.now + MINUTE)
    world.advance(MINUTE / SECOND)
    assert len(await world.claim(9)) == 3
