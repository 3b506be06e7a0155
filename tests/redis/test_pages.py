"""Many settlements go out page by page, each with a part of the claim, a few of them on their way."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

import pytest
from redis import Redis

import fairlane.store.redis.claims.settle as settling
from fairlane.model.job import Claim
from fairlane.model.policy.overrides import GateRules, SubjectKind, TaskRules
from fairlane.store.contract.claims import ClaimRequest, QueueRequest, SettleReply, SettleRequest
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.redis.claims.claim import encode_request
from fairlane.store.redis.claims.settle import SettlementPages
from fairlane.store.redis.client import _IN_FLIGHT, RedisClient
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT
from tests.contract.world import ALL, LEASE, World
from tests.redis.batches import publish

MANY = 2 * MAX_JOBS_PER_SCRIPT + 10
"""Jobs for three pages."""


def claim_of(*queue_requests: tuple[str, int]) -> ClaimRequest:
    """Ask for these, whole."""
    total = sum(most for _, most in queue_requests)
    return ClaimRequest(
        scope=ALL,
        worker="w1",
        lease=LEASE,
        queue_requests=tuple(QueueRequest(*queue_request) for queue_request in queue_requests),
        total=total,
    )


async def settle(world: World, claims: tuple[Claim, ...], claim: ClaimRequest) -> SettleReply:
    """Say that all have succeeded, and ask for more."""
    settlements = tuple(world.verdict(one) for one in claims)
    request = SettleRequest(scope=ALL, worker="w1", settlements=settlements, claim=claim)
    return await world.store.claims.settle(request)


async def fill(world: World, number: int, **values: Any) -> None:
    """Bring in so many jobs of three tenants."""
    jobs = tuple(world.new(f"t{i % 3}", **values) for i in range(number))
    await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=jobs))


def claims_in(reply: SettleReply) -> list[Claim]:
    """Return the claims of a reply."""
    assert reply.claimed is not None
    return list(reply.claimed.claims)


async def test_a_claim_in_pages_takes_of_each_queue_what_was_wished_and_no_more(world: World) -> None:
    """S35: a queue that was empty on the first page is not asked for more on the next; totals hold."""
    await fill(world, MANY)
    await fill(world, MANY, queue="other")
    claims = (await world.store.claims.claim(claim_of(("default", MANY)))).claims
    reply = await settle(world, claims, claim_of(("default", 5), ("other", 50), ("default", 5)))
    assert (len(reply.settled), reply.stale) == (MANY, ())
    assert [claim.job.queue for claim in claims_in(reply)] == ["other"] * 50
    assert len({claim.job.id for claim in claims_in(reply)}) == 50


async def test_what_the_last_page_frees_is_claimed_although_the_claim_had_ended_before(world: World) -> None:
    """S43: the first pages find the gate full; places that the last gives back are taken in the same call."""
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=5))
    await world.declare(SubjectKind.TASK, "gated", TaskRules(gate="door"))
    await fill(world, MANY - 5)
    plain = (await world.store.claims.claim(claim_of(("default", MANY)))).claims
    await fill(world, 20, task="gated")
    gated = (await world.store.claims.claim(claim_of(("default", MANY)))).claims
    assert (len(plain), len(gated)) == (MANY - 5, 5)
    reply = await settle(world, plain + gated, claim_of(("default", MANY)))
    assert [claim.job.task for claim in claims_in(reply)] == ["gated"] * 5


@pytest.mark.parametrize("obstacle", ["a batch on its way in", "a server that has forgotten the scripts"])
async def test_pages_that_are_refused_are_sent_again(world: World, client: Redis, obstacle: str) -> None:
    """What was refused did nothing: no settlement is lost or stale, and the claim is whole."""
    await fill(world, 2 * MANY)
    claims = (await world.store.claims.claim(claim_of(("default", MANY)))).claims
    if obstacle.startswith("a batch"):
        jobs = tuple(world.new("t0") for _ in range(MANY))
        await publish(store_client_of(world), jobs)
    else:
        client.script_flush()
    reply = await settle(world, claims, claim_of(("default", MANY)))
    assert (len(reply.settled), reply.stale, len(claims_in(reply))) == (MANY, (), MANY)


async def test_a_page_whose_first_one_was_refused_claims_nothing_and_says_so(world: World) -> None:
    """Without what the pages before knew it could claim too many: its answer is partial, and asked again."""
    await fill(world, 2 * MANY)
    claims = (await world.store.claims.claim(claim_of(("default", MANY)))).claims
    settlements = tuple(world.verdict(one) for one in claims)
    request = SettleRequest(scope=ALL, worker="w1", settlements=settlements)
    queue_requests = claim_of(("default", MANY))
    pages = SettlementPages(request, encode_request(queue_requests), MAX_JOBS_PER_SCRIPT)
    states, (continuation, _, is_partial, _, _, parts, *_) = await store_client_of(world).run(
        "claims/settle", *pages[2]
    )
    assert (len(states), 0 in states, continuation, is_partial, parts) == (10, False, b"", 1, [])


async def test_settling_the_last_job_of_a_queue_wakes_nobody(world: World, client: Redis) -> None:
    """S56: a worker that waits would come for nothing, and so would the one that settled it."""
    await fill(world, 2)
    hints = store_client_of(world).keys("hints", "default")
    counts = []
    for _ in range(2):
        await world.settle(await world.claim_one())
        counts.append(client.xinfo_stream(hints)["entries-added"])
    assert counts == [2, 2]  # of the enqueue, and of the first while another one waited


def store_client_of(world: World) -> RedisClient:
    """Return the client of the store."""
    return world.store.claims._client  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("queues", [("default", "default"), ("default", "other")], ids=["of one", "of two"])
async def test_turns_of_one_lane_go_one_after_the_other_and_those_of_two_do_not(
    world: World, monkeypatch: pytest.MonkeyPatch, queues: tuple[str, str]
) -> None:
    """A server that does some of both is done with both at once, and waits while all handlers run."""
    ready = (settle(world, (), claim_of((queue, 1))) for queue in ("default", "other"))
    await asyncio.gather(*ready)  # two connections, and a server that knows the script
    made: list[str] = []

    class Pages(SettlementPages):
        def __getitem__(self, number: Any) -> Any:
            page = super().__getitem__(number)
            made.append(str(self._request.settlements[0].id))
            return page

    monkeypatch.setattr(settling, "SettlementPages", Pages)
    pages = 4 * _IN_FLIGHT
    for queue in queues:
        await fill(world, 2 * pages * MAX_JOBS_PER_SCRIPT, queue=queue)
    asked = [claim_of((queue, pages * MAX_JOBS_PER_SCRIPT)) for queue in queues]
    held = [(await world.store.claims.claim(one)).claims for one in asked]
    replies = await asyncio.gather(
        *(settle(world, claims, one) for claims, one in zip(held, asked, strict=True))
    )
    assert [len(claims_in(reply)) for reply in replies] == [pages * MAX_JOBS_PER_SCRIPT] * 2
    runs = len(list(groupby(made)))
    assert (len(made), runs == 2) == (2 * pages, queues[0] == queues[1])
