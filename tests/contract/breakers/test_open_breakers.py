"""What claims say of breakers that are not closed, to workers that want to hear it (S124)."""

from __future__ import annotations

from fairlane.model.instants import MINUTE
from fairlane.model.policy.overrides import BreakerRules
from fairlane.store.contract.breakers import MAX_OPEN_BREAKERS, BreakerKey, BreakerWord, OpenBreakers
from tests.contract.breakers.scene import OPEN_FOR, end, guard, operate, report, trip
from tests.contract.world import World


async def named(world: World, total: int = 50, queue: str = "default") -> OpenBreakers | None:
    """Claim a job or more, and return what the reply says of breakers."""
    await world.enqueue("acme", queue=queue, task="plain")
    return (await world.claim_reply(total, queue, names_breakers=True)).open_breakers


async def test_a_claim_names_the_breakers_that_are_not_closed(world: World) -> None:
    """S124: also one of tasks that name no breaker."""
    await guard(world)
    assert await named(world) is None
    await report(world, failed=4)
    assert await named(world) is None
    await trip(world)
    opened = world.now
    word = BreakerWord(BreakerKey("mail"), "open", opened + MINUTE)
    assert await named(world) == OpenBreakers(opened, (word,))
    world.advance(1)
    await world.enqueue_many(60, task="plain")
    reply = await world.claim_reply(50, names_breakers=True)
    assert (len(reply.claims), reply.open_breakers) == (50, OpenBreakers(world.now, (word,)))
    assert (await world.claim_reply(50)).open_breakers is None, "nobody wanted to hear it"


async def test_a_claim_without_a_job_says_nothing_of_them(world: World) -> None:
    """S124: nothing begins that would have to know."""
    await guard(world)
    await trip(world)
    assert (await world.claim_reply(50, names_breakers=True)).open_breakers is None


async def test_a_claim_says_what_they_are_now(world: World) -> None:
    """S124: half-open by time alone, then the ramp; once it is closed, it is not named any more."""
    await guard(world, rules=BreakerRules(ramp=2))
    await trip(world)
    opened_until = world.now + MINUTE
    await world.enqueue_many(3, task="send")
    world.advance(OPEN_FOR)
    seen = []
    for _ in range(3):
        reply = await world.claim_reply(1, names_breakers=True)
        seen.append(reply.open_breakers)
        await end(world, *reply.claims)
    words = [None if one is None else one.words for one in seen]
    half_open, ramp = (
        BreakerWord(BreakerKey("mail"), phase, opened_until) for phase in ("half_open", "ramp")
    )
    assert words == [(half_open,), (ramp,), (ramp,)]
    assert await named(world) is None


async def test_a_claim_that_comes_with_a_settlement_names_them_too(world: World) -> None:
    """S124: and one of several queues; what the last of its steps saw counts."""
    await guard(world, rules=BreakerRules(per="tenant"))
    await world.send(*(world.new(queue=queue, task="plain") for queue in ("a", "b") for _ in range(2)))
    claim = await world.claim_one("a")
    await trip(world, "acme")
    request = world.claim_request(9, queue_requests=[("a", 9), ("b", 9)], names_breakers=True)
    reply = await world.settle_reply(world.verdict(claim), claim=request)
    assert reply.claimed is not None
    assert len(reply.claimed.claims) == 3
    word = BreakerWord(BreakerKey("mail", "acme"), "open", world.now + MINUTE)
    assert reply.claimed.open_breakers == OpenBreakers(world.now, (word,))


async def test_too_many_are_not_named_but_said_to_be_there(world: World) -> None:
    """S124: the reply stays small; as many as it may name are named in the order of their keys."""
    await guard(world, rules=BreakerRules(per="tenant"))
    tenants = [f"t{number:03}" for number in range(MAX_OPEN_BREAKERS)]
    for tenant in reversed(tenants):
        await operate(world, "open", tenant)
    found = await named(world)
    assert found is not None
    assert ([one.key.tenant for one in found.words], found.is_cut) == (tenants, False)
    await operate(world, "open")
    assert await named(world) == OpenBreakers(world.now, is_cut=True)
