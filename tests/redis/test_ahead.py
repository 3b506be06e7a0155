"""What is claimed ahead of a free slot, over several scripts and pages, and what comes back of it (S68)."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from redis import Redis

from fairlane.model.job import Claim
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.store.contract.claims import ClaimReply
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.head import is_new
from fairlane.store.redis.records.job import JobBody, to_body
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT
from tests.contract.world import UNSTARTED, World, failed
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore
from tests.redis.test_bounds import PER_JOB, Meter

MANY = 2 * MAX_JOBS_PER_SCRIPT + 10
"""Jobs for three scripts."""

SIZES = (0, 1, 255, 256, 65_535, 65_536)
"""Lengths of a payload around those at which msgpack writes a length with more bytes."""


def client_of(world: World) -> RedisClient:
    """Return the client of the store."""
    return world.store.claims._client  # type: ignore[attr-defined,no-any-return]


def claims_of(reply: ClaimReply | None) -> tuple[Claim, ...]:
    """Return the claims of a reply that must have come."""
    assert reply is not None
    return reply.claims


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("checksum", [0, 200, 2**31, 2**32 - 1])
async def test_the_limits_of_attempts_are_found_in_every_body(world: World, size: int, checksum: int) -> None:
    """S68: scripts read them behind a payload of any length and a checksum of any size."""
    body: dict[str, Any] = {"payload": b"\xc3" * size, "checksum": checksum}
    for values, is_cut in (
        ({"max_attempts": 2}, False),
        ({"max_attempts": 1_000, "version": 300}, False),
        ({"max_attempts": 1}, True),
        ({"max_attempts": 1, "version": 70_000}, True),
        ({"at_most_once": True}, True),
        ({"at_most_once": True, "max_attempts": 300}, True),
    ):
        await world.enqueue(**body, **values)
        reply = await world.claim_whole(1, ahead=1)
        assert reply.is_ahead_cut is is_cut, values
        assert len(reply.claims or await world.claim(1)) == 1


@pytest.mark.parametrize("place", [15, 16, 39, 40, 41, 79, 80, 81, MANY - 1])
@pytest.mark.parametrize("free", [1, 40, 60])
async def test_a_claim_of_several_scripts_ends_before_the_careful_job(
    world: World, place: int, free: int
) -> None:
    """S35, S68: wherever it stands, unless it is for a free slot."""
    careful: dict[int, dict[str, Any]] = {place: {"at_most_once": True}}
    await world.send(*(world.new(**careful.get(number, {})) for number in range(MANY + 5)))
    reply = await world.claim_whole(MANY, ahead=MANY - free)
    is_for_free_slot = place < free
    assert len(reply.claims) == (MANY if is_for_free_slot else place)
    assert reply.is_ahead_cut is not is_for_free_slot
    assert len(await world.claim(2 * MANY)) == MANY + 5 - len(reply.claims)


@pytest.mark.parametrize("place", [10, MAX_JOBS_PER_SCRIPT, MANY - 1])
async def test_a_claim_in_pages_ends_before_the_careful_job(world: World, place: int) -> None:
    """S35, S68: a page that begins the claim anew meets that job again, and the last page says so."""
    await world.send(*(world.new() for _ in range(MANY)))
    claims = await world.claim(MANY)
    careful: dict[int, dict[str, Any]] = {place: {"max_attempts": 1}}
    await world.send(*(world.new(**careful.get(number, {})) for number in range(MANY)))
    settlements = [world.verdict(claim) for claim in claims]
    reply = await world.settle_reply(*settlements, claim=world.claim_request(MANY, ahead=MANY))
    assert len(reply.settled) == MANY
    assert len(claims_of(reply.claimed)) == place
    assert reply.claimed is not None
    assert reply.claimed.is_ahead_cut


async def test_a_page_that_brings_back_an_earlier_job_goes_on_with_the_claim(world: World) -> None:
    """S41, S68: a claim that one page has cut is whole if a later one gives its tenant a job before that."""
    await world.send(*(world.new() for _ in range(MANY)))
    claims = await world.claim(MANY)
    await world.enqueue(at_most_once=True)
    endings = [world.verdict(claim) for claim in claims[:-2]]
    endings += [world.verdict(claim, UNSTARTED) for claim in claims[-2:]]
    reply = await world.settle_reply(*endings, claim=world.claim_request(2, ahead=2))
    assert [claim.job.id for claim in claims_of(reply.claimed)] == [claim.job.id for claim in claims[-2:]]
    assert reply.claimed is not None
    assert not reply.claimed.is_ahead_cut


async def test_a_job_that_comes_back_in_the_same_script_is_judged_as_it_is_now(world: World) -> None:
    """S25, S68: another failure has brought it to its last attempt; what is stored still says otherwise."""
    await world.enqueue(max_attempts=2)
    (claim,) = await world.claim(1, ahead=1)
    settlement = world.verdict(claim, failed(after=0))
    reply = await world.settle_reply(settlement, claim=world.claim_request(1, ahead=1))
    assert reply.claimed is not None
    assert (reply.claimed.claims, reply.claimed.is_ahead_cut) == ((), True)
    assert len(await world.claim(1)) == 1


async def test_a_body_without_later_fields_says_enough(world: World, client: Redis) -> None:
    """S67, S68: the first layout of bodies ended with what a script must know."""
    for is_careful in (False, True):
        new = world.new(at_most_once=is_careful)
        await world.send(new)
        body = msgspec.msgpack.decode(to_body(new))[: JobBody.__struct_fields__.index("at_most_once") + 1]
        client.hset(client_of(world).keys("bodies"), new.id.bytes, msgspec.msgpack.encode(body))
        reply = await world.claim_whole(1, ahead=1)
        assert reply.is_ahead_cut is is_careful
        assert len(reply.claims or await world.claim(1)) == 1


async def test_a_job_that_came_back_is_no_new_one(world: World, client: Redis) -> None:
    """S36, S68: it has no attempt, but its fence must grow, also if the clock stands still or goes back."""
    job = await world.enqueue()
    fences = []
    for back in (0, 0, 5, 5):
        world.advance(-back)
        claim = await world.claim_one()
        assert (claim.job.attempt, claim.job.attempts) == (1, ())
        fences.append(claim.fence)
        await world.settle(claim, UNSTARTED)
    assert fences == sorted(set(fences))
    keys = client_of(world).keys
    head = client.hget(keys("heads"), job.id.bytes)
    assert isinstance(head, bytes)
    assert not is_new(head)
    assert not client.hexists(keys("attempts"), job.id.bytes)
    await world.edit(job.id, priority=3)  # Python writes this head
    assert (await world.get(job.id)).fence == fences[-1]
    assert (await world.claim_one()).fence > fences[-1]


@pytest.mark.parametrize("cost", ["jobs", "seconds"])
@pytest.mark.parametrize("seed", range(6))
async def test_histories_with_many_ahead_are_those_of_the_oracle(world: World, seed: int, cost: Any) -> None:
    """S41, S68: claims of several scripts, of which some jobs come back unstarted."""
    clock = DrivenClock()
    pair = (world, World(OracleStore(clock), clock))
    draws = Random(seed), Random(seed)
    for one in pair:
        await one.declare(SubjectKind.QUEUE, "default", QueueRules(cost=cost))
    for number in range(12):
        served = [await play(draw, one) for draw, one in zip(draws, pair, strict=True)]
        assert served[0] == served[1], (seed, number)
        assert await places(world) == await places(pair[1]), (seed, number)


async def play(draw: Random, world: World) -> object:
    """Enqueue, claim more than one script does, and give some of it back."""
    kinds: tuple[dict[str, Any], ...] = (*({},) * 40, {"at_most_once": True}, {"max_attempts": 1})
    await world.send(
        *(
            world.new(draw.choice("abcd"), priority=draw.randint(0, 2), **draw.choice(kinds))
            for _ in range(60)
        )
    )
    reply = await world.claim_whole(draw.randint(30, 100), ahead=draw.choice((0, 20, 60, 99)))
    world.advance(draw.choice((0, 1, 7)))
    if draw.random() < 0.5:
        await world.renew(*reply.claims)
    endings = [world.verdict(claim, UNSTARTED) for claim in reply.claims if draw.random() < 0.4]
    await world.settle_reply(*endings)
    back = {one.id for one in endings}
    for claim in reply.claims:
        if claim.job.id not in back and draw.random() < 0.8:
            await world.settle(claim)
    return [claim.job.id for claim in reply.claims], reply.is_ahead_cut, reply.next_due_at


async def places(world: World) -> list[tuple[Any, ...]]:
    """Return what waits, in the fair order."""
    return [(job.id, job.attempt, job.attempts) for job in await world.peek(200)]


async def test_a_script_that_claims_ahead_does_little_for_each_job(world: World, client: Redis) -> None:
    """It reads each job once, before it is chosen: forty at most, of as many tenants."""
    await world.send(*(world.new(f"t{number}") for number in range(3 * MANY)))
    meter = Meter(client_of(world), client)
    await world.claim(MANY)
    plain = meter.limit.pop("claims/claim")
    assert len(await world.claim(MANY, ahead=MANY)) == MANY
    assert meter.limit["claims/claim"] <= plain + 2 * MAX_JOBS_PER_SCRIPT
    assert meter.limit["claims/claim"] <= PER_JOB * MAX_JOBS_PER_SCRIPT
