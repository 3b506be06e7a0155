"""What a claim asks of the server, and what it finds that others left behind."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World
from tests.servers.postgres import shared_url


@pytest.fixture
def asked(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that the store sends from now on, but for hints."""
    statements: list[str] = []
    assert isinstance(world.store, PostgresStore)
    server = world.store._server
    fetch = server.fetch

    async def counted(statement: str, *values: Any) -> list[asyncpg.Record]:
        if "pg_notify" not in statement:
            statements.append(statement)
        return await fetch(statement, *values)

    monkeypatch.setattr(server, "fetch", counted)
    return statements


async def test_an_idle_claim_over_thirty_queues_is_one_question(world: World, asked: list[str]) -> None:
    """A worker with nothing to do asks once a second, not once for each queue."""
    queue_requests = [(f"q{number}", 5) for number in range(30)]
    due = await world.enqueue(queue="q7", delay=5_000_000)
    await world.claim_reply(10, queue_requests=queue_requests)
    asked.clear()
    reply = await world.claim_reply(10, queue_requests=queue_requests)
    assert (reply.claims, reply.next_due_at) == ((), due.run_at)
    assert len(asked) == 1


async def test_only_queues_with_work_are_claimed_from(world: World, asked: list[str]) -> None:
    """One look, and one call for the one queue that has something."""
    await world.enqueue(queue="q7")
    asked.clear()
    assert len(await world.claim(1, queue_requests=[(f"q{number}", 5) for number in range(30)])) == 1
    assert len(asked) == 2


async def test_what_a_long_transaction_brought_in_is_found_by_the_next_claim(world: World) -> None:
    """However many claims came and went while it was open."""
    connection = await asyncpg.connect(shared_url())
    try:
        transaction = connection.transaction()
        await transaction.start()
        late = world.new("late")
        await world.store.jobs.enqueue_in(connection, EnqueueRequest(scope=ALL, jobs=(late,)))
        for _ in range(3):
            early = await world.enqueue()
            assert (await world.claim_one()).job.id == early.id
            assert await world.claim(1) == []
        await transaction.commit()
    finally:
        await connection.close()
    assert (await world.claim_one()).job.id == late.id


async def test_a_minutes_sweep_forgets_tenants_that_owe_nothing(world: World) -> None:
    """S41: a drained tenant's virtual time is stored until the queue has passed it, and one more minute."""
    assert isinstance(world.store, PostgresStore)
    for _ in range(3):
        for tenant in ("acme", "globex"):
            await world.enqueue(tenant)
            await world.settle(await world.claim_one())
    await world.promote()
    await world.enqueue("globex")
    await world.settle(await world.claim_one())
    server = world.store._server
    kept = []
    for _ in range(2):
        world.advance(61)
        await world.promote()
        rows = await server.fetch(f"SELECT tenant FROM {server.schema}.tenant_queue")  # noqa: S608 (its own schema)
        kept.append(sorted(tenant for (tenant,) in rows))
    assert kept == [["acme", "globex"], ["globex"]]


async def test_a_sweep_wakes_who_has_room_although_nobody_said_so(world: World) -> None:
    """A claim from before the limit may end while the row that should say so is locked."""
    assert isinstance(world.store, PostgresStore)
    await world.enqueue_many(2)
    claim = await world.claim_one()
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(running=1)))
    assert await world.claim(1) == []
    server = world.store._server
    await server.fetch(f"UPDATE {server.schema}.job SET is_capped = false")  # noqa: S608 (its own schema)
    await world.settle(claim)
    assert await world.claim(1) == []
    world.advance(61)
    await world.promote()
    assert len(await world.claim(1)) == 1
