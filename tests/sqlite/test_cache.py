"""A writer's cache of tenants is never older than the file, whoever writes and whatever fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlane.model.lifecycle.record_changes import settled
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.model.retry.decision import Snoozed, Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.opening import open_store
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import World
from tests.oracle.clock import DrivenClock


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[World, World]]:
    """Two stores on one file, as in two processes; the counters must be exact at the end."""
    clock = DrivenClock()
    worlds = [World(open_store(f"sqlite:///{tmp_path}/fairlane.db", clock=clock), clock) for _ in range(2)]
    worlds[1]._ids = worlds[0]._ids
    yield worlds[0], worlds[1]
    await worlds[0].check_invariants()
    for world in worlds:
        await world.store.upkeep.aclose()


async def test_what_another_writer_did_is_seen(two: tuple[World, World]) -> None:
    """S16: each sees what the other enqueued and claimed, so that a limit is exact over both."""
    one, other = two
    await one.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(waiting=6, on_full="reject")))
    for _ in range(3):
        await one.enqueue()
        await other.enqueue()
    for world in two:
        assert (await world.send(world.new())).refused
    claim = await other.claim_one()
    await one.enqueue()
    await other.settle(claim)
    for world in two:
        assert (await world.send(world.new())).refused


async def test_a_tenant_that_was_dropped_begins_anew(two: tuple[World, World]) -> None:
    """S41: its row is deleted when it owes nothing; the next enqueue makes one that claims find."""
    one, other = two
    for first, second in ((one, one), (one, other), (other, one)):
        job = await first.enqueue("comes-and-goes")
        assert (await second.run()).id == job.id
        again = await first.enqueue("comes-and-goes")
        assert (await first.run()).id == again.id


async def test_what_was_undone_is_not_remembered(two: tuple[World, World]) -> None:
    """A peek claims and rolls back; the caches are emptied as well."""
    one, _ = two
    jobs = await one.enqueue_many(3)
    assert [job.id for job in await one.peek(3)] == [job.id for job in jobs]
    more = await one.enqueue()
    assert [claim.job.id for claim in await one.claim(9)] == [*(job.id for job in jobs), more.id]


async def test_a_claim_that_another_writer_took_back_is_stale_to_who_remembers_it(
    two: tuple[World, World],
) -> None:
    """S36: the fast path uses the cached claim, but only the file says that the claim stands."""
    one, other = two
    await one.enqueue()
    late = await one.claim_one()
    await other.lose()
    again = await other.claim_one()
    assert (await one.settle_reply(one.verdict(late))).stale == (late.job.id,)
    assert await other.settle(again) is State.SUCCEEDED
    assert (await one.get(late.job.id)).attempts[-1].number == again.job.attempt


@pytest.mark.parametrize("log", [None, "said"])
@pytest.mark.parametrize("result", [None, b"42"])
async def test_a_plain_success_is_kept_as_the_model_says(
    two: tuple[World, World], result: bytes | None, log: str | None
) -> None:
    """S24, S50: the fast path writes the same row as the general path, first attempt or not."""
    one, _ = two
    await one.enqueue_many(2)
    for _ in range(2):
        for claim in await one.claim(1):
            await one.settle(claim, Snoozed(0))
            one.advance(1)
    claims = await one.claim(2)
    one.advance(1)
    asked = [one.verdict(claim, Succeeded(result), log=log) for claim in claims]
    expected = [settled(claim.job, word, one.now) for claim, word in zip(claims, asked, strict=True)]
    request = SettleRequest(scope=Scope.all(), worker="w1", settlements=tuple(asked))
    assert len((await one.store.claims.settle(request)).settled) == 2
    assert [await one.get(claim.job.id) for claim in claims] == expected


async def test_a_writer_is_not_woken_by_what_it_writes_itself(two: tuple[World, World]) -> None:
    """S56: the version changes with another's commit, and not with the writer's own heartbeat."""
    one, other = two
    await one.register()
    seen = await _version(one)
    one.advance(1)
    await one.beat()
    assert await _version(one) == seen
    one.advance(1)
    await other.beat()
    assert await _version(one) != seen


async def _version(world: World) -> int:
    assert isinstance(world.store, SqliteStore)
    return await world.store._writer.version()
