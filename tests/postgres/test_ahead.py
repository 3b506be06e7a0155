"""Claiming ahead stays one batch, and what comes back unstarted is found again (S68)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from fairlane.model.job import Claim
from fairlane.model.policy.overrides import QueueRules, SubjectKind, TenantRules
from fairlane.store.contract.claims import QueueRequest
from fairlane.store.postgres.claims.claim import QueueClaim, QueueClaimReply, claim_queue
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import UNSTARTED, World

_CALLED = """
SELECT funcname, calls FROM pg_stat_xact_user_functions
WHERE schemaname = $1 AND funcname IN ('claim_batch', 'claim_stepwise', 'advance_strand', 'apply_in_order')
"""


async def counted(world: World, total: int, ahead: int) -> tuple[QueueClaimReply, dict[str, int]]:
    """Claim, and count the calls of the functions that tell which way it went."""
    assert isinstance(world.store, PostgresStore)
    server = world.store._server
    ask = QueueClaim(queue_request=QueueRequest("default", total), total=total, worker="w", ahead=ahead)
    async with server.transaction() as connection:
        await connection.execute("SET LOCAL track_functions = 'pl'")
        reply = await claim_queue(connection, server, ask)
        return reply, dict(await connection.fetch(_CALLED, server.schema))


async def hand_back(world: World, claims: Sequence[Claim]) -> None:
    """Give claims back unstarted, by one settlement."""
    await world.settle_reply(*(world.verdict(claim, UNSTARTED) for claim in claims))


def read(admin: psycopg.Connection, schema: str, query: str) -> list[tuple[Any, ...]]:
    """Read from a schema."""
    admin.execute(f"SET search_path = {schema}")
    return admin.execute(query.encode()).fetchall()


@pytest.mark.parametrize("tenants", ["a", "ab", "abcdefghijkl"], ids=len)
async def test_a_claim_ahead_of_plain_jobs_is_one_batch(world: World, tenants: str) -> None:
    """None of them is chosen step by step, by whichever way the batch is chosen."""
    await world.send(*(world.new(tenant) for tenant in tenants for _ in range(12)))
    reply, called = await counted(world, 12, 8)
    assert (len(reply.claims), reply.is_ahead_cut) == (12, False)
    assert called == {"claim_batch": 1}


@pytest.mark.parametrize("tenants", ["a", "ab", "abcdefghijkl"], ids=len)
async def test_careful_jobs_for_free_slots_leave_the_rest_in_the_batch(world: World, tenants: str) -> None:
    """A retry on its last attempt that can start at once does not slow down those behind it."""
    await world.send(*(world.new(tenant, max_attempts=1) for tenant in tenants[:4]))
    await world.send(*(world.new(tenant) for tenant in tenants for _ in range(12)))
    reply, called = await counted(world, 12, 8)
    assert (len(reply.claims), reply.is_ahead_cut) == (12, False)
    assert called == {"claim_batch": 1}


@pytest.mark.parametrize("ahead", [5, 7, 8, 12])
async def test_what_is_before_a_careful_job_is_still_one_batch(world: World, ahead: int) -> None:
    """The batch is chosen again up to that job; the one step after it serves nobody."""
    await world.enqueue_many(7)
    await world.enqueue(at_most_once=True)
    await world.enqueue_many(7)
    reply, called = await counted(world, 12, ahead)
    assert (len(reply.claims), reply.is_ahead_cut) == (7, True)
    assert called == {"claim_batch": 1, "claim_stepwise": 1}
    ids = [claim.job.id for claim in (await world.claim_reply(12)).claims]
    assert len(ids) == 8


async def test_nothing_is_written_of_a_claim_that_ends_at_its_first_job(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """The job stays in its place: nothing is charged, nothing parked."""
    tables = (
        "SELECT vt, state, ready, head_key FROM tenant_queue",
        "SELECT state, head_key, head_id FROM strand",
    )
    await world.enqueue_many(3, max_attempts=1)
    await world.promote()
    before = [read(admin, schema, table) for table in tables]
    reply, _ = await counted(world, 4, 4)
    assert (reply.claims, reply.is_ahead_cut, reply.parked) == ((), True, 0)
    assert [read(admin, schema, table) for table in tables] == before


async def test_scans_begin_early_enough_for_a_clock_that_has_fallen(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """`vt_scan_from` goes back with it: nothing else would ever show the tenant to a claim."""
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(9)))
    claims = await world.claim(10)
    passed = read(admin, schema, "SELECT vt_scan_from FROM queue")[0][0]
    await hand_back(world, [claim for claim in claims if claim.job.tenant == "b"])
    reply, called = await counted(world, 1, 0)
    assert [claim.job.tenant for claim in reply.claims] == ["b"]
    assert "apply_in_order" not in called  # a refund to a ready tenant is applied with all others at once
    ((low, high, start),) = read(
        admin,
        schema,
        "SELECT min(vt), max(vt), min(vt_scan_from) FROM tenant_queue, queue WHERE state = 1",
    )
    assert start <= low < passed < high
    assert "".join(claim.job.tenant for claim in await world.claim(6)) == "bbbbab"


async def test_what_a_drained_tenant_gives_back_is_applied_in_order(world: World) -> None:
    """It enters the fair order with the first job, and the charges of the others come off after that."""
    await world.send(*(world.new("a") for _ in range(4)))
    claims = await world.claim(4)
    await world.enqueue_many(9, "b")
    assert len(await world.claim(5)) == 5
    await hand_back(world, claims)
    reply, called = await counted(world, 8, 0)
    assert called["apply_in_order"] == 1
    assert "".join(claim.job.tenant for claim in reply.claims) == "aaababbb"


async def test_a_tenant_that_was_forgotten_meanwhile_is_not_in_credit(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S41: its row went while its last job was claimed; what comes back enters at the queue's own clock."""
    await world.enqueue("a")
    (claim,) = await world.claim(1, lease=1_000_000_000)
    await world.enqueue_many(9, "b")
    assert len(await world.claim(5, lease=1_000_000_000)) == 5
    for _ in range(2):
        world.advance(61)
        await world.promote()
    assert read(admin, schema, "SELECT tenant FROM tenant_queue") == [("b",)]
    await hand_back(world, [claim])
    await world.promote()
    clocks = dict(read(admin, schema, "SELECT tenant, vt FROM tenant_queue"))
    assert clocks["a"] == min(clocks.values())
    assert min(clocks.values()) >= read(admin, schema, "SELECT vt_floor FROM queue")[0][0]


@pytest.mark.parametrize("cost", ["jobs", "seconds"])
async def test_a_refund_beside_a_lighter_weight_ends_at_zero(
    world: World, schema: str, admin: psycopg.Connection, cost: Any
) -> None:
    """S41, S68: also where several come back at once, and never below."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(cost=cost))
    await world.send(*(world.new(tenant) for tenant in "ab" for _ in range(6)))
    claims = await world.claim(4)
    await world.declare(SubjectKind.TENANT, "a", TenantRules(weight=0.01))
    await hand_back(world, claims)
    await world.promote()
    assert read(admin, schema, "SELECT tenant, vt FROM tenant_queue ORDER BY tenant") == [("a", 0), ("b", 0)]
