"""A lane may claim before a slot is free, but no job that a lost claim would cost something (S68)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from fairlane.store.contract.claims import ClaimReply
from tests.contract.world import LEASE, World, failed

CAREFUL: Mapping[str, dict[str, Any]] = {
    "at most once": {"at_most_once": True},
    "single attempt": {"max_attempts": 1},
    "key until started": {"dedup_key": "k", "dedup_until": "started"},
}
"""Jobs that are never claimed ahead, by what they were enqueued with."""

_RATE = Rate(50, "second", burst=50)

RULES: Mapping[str, dict[Subject, Rules]] = {
    "gate": {
        Subject(SubjectKind.TASK, "noop"): TaskRules(gate="g"),
        Subject(SubjectKind.GATE, "g"): GateRules(limit=50),
    },
    "gate with a rate": {
        Subject(SubjectKind.TASK, "noop"): TaskRules(gate="g"),
        Subject(SubjectKind.GATE, "g"): GateRules(rate=_RATE),
    },
    "rate of the task": {Subject(SubjectKind.TASK, "noop"): TaskRules(rate=_RATE)},
    "rate of the queue": {Subject(SubjectKind.QUEUE, "default"): QueueRules(rate=_RATE)},
    "rate of the tenant": {
        Subject(SubjectKind.TENANT, "acme"): TenantRules(limits={"default": Limits(rate=_RATE)})
    },
    "rate of every tenant": {Subject(SubjectKind.QUEUE, "default"): QueueRules(limits=Limits(rate=_RATE))},
}
"""Policies under which no job of the tenant acme, queue default and task noop is claimed ahead."""


def served(reply: ClaimReply) -> str:
    """Return the tenants in the order served."""
    return "".join(claim.job.tenant for claim in reply.claims)


@pytest.mark.parametrize("ahead", [0, 1, 5, 8, 99])
async def test_plain_jobs_are_claimed_ahead_like_others(world: World, ahead: int) -> None:
    """S68: up to the total, in the fair order; nothing was cut."""
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(9)))
    reply = await world.claim_whole(8, ahead=ahead)
    assert served(reply) == "abababab"
    assert not reply.is_ahead_cut


@pytest.mark.parametrize("kind", CAREFUL)
async def test_the_part_ahead_ends_before_a_careful_job(world: World, kind: str) -> None:
    """S68: also though jobs behind it could be claimed."""
    await world.enqueue_many(5)
    careful = await world.enqueue(**CAREFUL[kind])
    await world.enqueue_many(5)
    reply = await world.claim_whole(8, ahead=6)
    assert len(reply.claims) == 5
    assert reply.is_ahead_cut
    again = await world.claim_whole(3, ahead=2)
    assert [claim.job.id for claim in again.claims][:1] == [careful.id]
    assert len(again.claims) == 3
    assert not again.is_ahead_cut


@pytest.mark.parametrize("kind", CAREFUL)
async def test_a_careful_job_is_claimed_for_a_free_slot(world: World, kind: str) -> None:
    """S68: what is not ahead is claimed as ever, though what follows is."""
    await world.enqueue_many(2)
    await world.enqueue(**CAREFUL[kind])
    await world.enqueue_many(5)
    reply = await world.claim_whole(6, ahead=3)
    assert len(reply.claims) == 6
    assert not reply.is_ahead_cut


async def test_nothing_at_all_is_claimed_ahead_of_a_careful_job(world: World) -> None:
    """S68: an empty reply says that it was cut."""
    await world.enqueue(at_most_once=True)
    await world.enqueue_many(3)
    reply = await world.claim_whole(4, ahead=4)
    assert not reply.claims
    assert reply.is_ahead_cut
    assert len(await world.claim(4, ahead=3)) == 4


async def test_a_careful_job_of_another_tenant_ends_it_in_its_turn(world: World) -> None:
    """S41, S68: it ends where the careful job would have been served, not earlier."""
    await world.enqueue_many(6, "a")
    await world.enqueue("b")
    await world.enqueue("b", at_most_once=True)
    await world.enqueue_many(4, "b")
    reply = await world.claim_whole(9, ahead=9)
    assert served(reply) == "aba"
    assert reply.is_ahead_cut


@pytest.mark.parametrize("kind", RULES)
async def test_gated_and_rated_jobs_are_not_claimed_ahead(world: World, kind: str) -> None:
    """S43, S44, S68: a gate's slot and a start that counts are for what runs."""
    await world.put(RULES[kind])
    await world.enqueue_many(9)
    reply = await world.claim_whole(6, ahead=4)
    assert len(reply.claims) == 2
    assert reply.is_ahead_cut


async def test_another_tenants_rate_cuts_nothing(world: World) -> None:
    """S68: only the jobs that count against it."""
    await world.declare(SubjectKind.TENANT, "b", TenantRules(limits={"default": Limits(rate=_RATE)}))
    await world.enqueue_many(9, "a")
    reply = await world.claim_whole(6, ahead=4)
    assert len(reply.claims) == 6
    assert not reply.is_ahead_cut


async def test_a_running_limit_holds_for_what_is_claimed_ahead(world: World) -> None:
    """S45, S68: claimed is running."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(running=3)))
    await world.enqueue_many(9, "a")
    await world.enqueue_many(1, "b")
    reply = await world.claim_whole(8, ahead=6)
    assert served(reply) == "abaa"
    assert not reply.is_ahead_cut


async def test_a_suspect_is_not_claimed_ahead(world: World) -> None:
    """S39, S68: its worker may have died of it."""
    await world.enqueue()
    await world.claim_one()
    await world.lose()
    await world.enqueue_many(3)
    reply = await world.claim_whole(2, ahead=2)
    assert not reply.claims
    assert reply.is_ahead_cut


async def test_a_job_on_its_last_attempt_is_not_claimed_ahead(world: World) -> None:
    """S25, S68: a lost claim would make it dead."""
    await world.enqueue(max_attempts=2)
    (claim,) = await world.claim(1, ahead=1)
    await world.settle(claim, failed())
    world.advance(60)
    reply = await world.claim_whole(1, ahead=1)
    assert not reply.claims
    assert reply.is_ahead_cut
    assert len(await world.claim(1)) == 1


async def test_the_part_ahead_is_of_the_total_over_all_queues(world: World) -> None:
    """S35, S68: a careful job in one queue ends the claim; later queues are not asked."""
    await world.enqueue_many(3, queue="x")
    await world.enqueue(queue="x", at_most_once=True)
    await world.enqueue_many(5, queue="y")
    reply = await world.claim_whole(8, queue_requests=[("x", 8), ("y", 8)], ahead=6)
    assert [claim.job.queue for claim in reply.claims] == ["x", "x", "x"]
    assert reply.is_ahead_cut


async def test_headroom_and_what_is_ahead_are_counted_from_the_end_alike(world: World) -> None:
    """S48, S68: the last two of the total are for tenants with nothing running."""
    await world.enqueue_many(9, "a")
    reply = await world.claim_whole(8, ahead=5, headroom=2)
    assert served(reply) == "aaaaaa"
    assert not reply.is_ahead_cut


async def test_a_settle_claims_ahead_too(world: World) -> None:
    """S35, S68: the claim that comes with a settlement has the same meaning."""
    await world.enqueue_many(3)
    first = await world.claim_one()
    await world.enqueue(max_attempts=1)
    reply = await world.settle_reply(world.verdict(first), claim=world.claim_request(4, ahead=3))
    assert reply.claimed is not None
    assert len(reply.claimed.claims) == 2
    assert reply.claimed.is_ahead_cut


async def test_what_is_claimed_ahead_keeps_its_lease(world: World) -> None:
    """S37, S68: it is renewed like any claim, and reclaimed when it is not."""
    await world.enqueue_many(3)
    claims = await world.claim(3, ahead=3)
    world.advance(LEASE / SECOND - 1)
    await world.renew(*claims[:2])
    world.advance(1)
    assert [lost.id for lost in (await world.reclaim()).lost] == [claims[2].job.id]
