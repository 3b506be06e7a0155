"""Page through jobs in an order that never changes, however they move meanwhile (S51)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlane.model.instants import HOUR
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import AttemptResult
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import MAX_BATCH_SIZE, FindReply, FindRequest
from tests.contract.world import ALL, CANCELLED, SNOOZED, World, failed, payload, ruined


async def test_jobs_come_newest_enqueue_first_and_ties_by_id(world: World) -> None:
    """S51: by (enqueued_at, id), both descending; run_at, priority and state play no part."""
    ids = sorted(world.new().id for _ in range(4))
    early = [world.new(id=ids[position], priority=position * 9) for position in (2, 0, 3)]
    await world.send(*early)
    world.advance(1)
    last = await world.enqueue(id=ids[1], delay=HOUR, priority=-100)
    await world.run()
    assert [job.id for job in await world.find_all()] == [last.id, ids[3], ids[2], ids[0]]


@pytest.mark.parametrize("page", [1, 2, 3, 5, 7, 1_000])
async def test_pages_of_any_size_give_the_same_whole(world: World, page: int) -> None:
    """S51: no job twice, none left out, also where a page ends exactly at the end."""
    jobs = await world.enqueue_many(5)
    world.advance(1)
    jobs += await world.enqueue_many(5, "globex")
    assert await world.find_all(page=page) == jobs[::-1]
    assert await world.find_all(Scope("acme"), page=page) == jobs[4::-1]


async def test_a_page_holds_no_more_than_its_limit(world: World) -> None:
    """S51: more come with the cursor."""
    jobs = await world.enqueue_many(3)
    reply = await world.store.jobs.find(FindRequest(scope=ALL, limit=2))
    assert 0 < len(reply.jobs) <= 2
    assert list(reply.jobs) == jobs[: -1 - len(reply.jobs) : -1]
    assert reply.cursor is not None


async def test_nothing_found_is_the_end(world: World) -> None:
    """S51: no jobs, no cursor."""
    assert await world.store.jobs.find(FindRequest(scope=ALL)) == FindReply((), None)


async def read_page(world: World, found: list[JobRecord], cursor: str | None) -> str | None:
    """Read one page of two jobs."""
    reply = await world.store.jobs.find(FindRequest(scope=ALL, limit=2, cursor=cursor))
    found += reply.jobs
    assert reply.cursor is None or reply.cursor != cursor
    return reply.cursor


async def test_paging_meets_every_job_once_while_jobs_move_homes(world: World) -> None:
    """S51: jobs settle, die, are cancelled, condemned, retried and enqueued between the pages."""
    ids = [job.id for job in await world.enqueue_many(14)]
    found: list[JobRecord] = []
    cursor = await read_page(world, found, None)
    endings: Iterator[AttemptResult] = iter([failed(), ruined(), CANCELLED, SNOOZED])
    while cursor is not None:
        world.advance(1)
        await world.enqueue()
        await world.run()
        await world.run(next(endings, failed()))
        await world.cancel(ids[13])
        await world.condemn(ids[12])
        cursor = await read_page(world, found, cursor)
        assert len(found) <= len(ids)
    assert [job.id for job in found] == ids[::-1]


async def test_paging_through_one_state_meets_what_was_in_it_throughout(world: World) -> None:
    """S51: of the ready jobs, those that stay ready are met exactly once; others at most once."""
    jobs = await world.enqueue_many(12)
    found: list[JobRecord] = []
    cursor: str | None = None
    for _ in range(100):
        reply = await world.store.jobs.find(
            FindRequest(scope=ALL, states=frozenset({State.READY}), limit=2, cursor=cursor)
        )
        found += reply.jobs
        cursor = reply.cursor
        if cursor is None:
            break
        await world.run()
        await world.enqueue()
    ids = [job.id for job in found]
    left = {job.id for job in await world.find_all(states=frozenset({State.READY}))}
    assert len(ids) == len(set(ids))
    assert {job.id for job in jobs} & left <= set(ids) <= {job.id for job in jobs}


async def test_few_matches_among_many_rows_are_all_found(world: World) -> None:
    """S51: a call reads at most 10,000 rows; a page may be empty with a cursor, and the whole is complete.

    10,050 jobs, because fewer could be read in one call. The oldest matches, and one in the middle. No store
    has an index of arguments, so one call cannot have found the oldest by them.
    """
    oldest = await world.enqueue(tags=("rare",), payload=payload(rare=True))
    for _ in range(5):
        await world.enqueue_many(MAX_BATCH_SIZE)
    middle = await world.enqueue(tags=("rare",))
    for _ in range(5):
        await world.enqueue_many(MAX_BATCH_SIZE)
    await world.enqueue_many(48)
    assert await world.find_all(tag="rare") == [middle, oldest]
    assert await world.find_all(tag="rare", page=1) == [middle, oldest]
    assert await world.find_all(task="missing") == []
    first = await world.store.jobs.find(FindRequest(scope=ALL, where=(("rare", True),)))
    assert first.jobs == ()
    assert first.cursor is not None
    assert await world.find_all(where=(("rare", True),)) == [oldest]


@pytest.mark.parametrize("cursor", ["", "x", "nonsense", "bm9uc2Vuc2U", "WzEsMl0", "W10", "é", "AAAA" * 50])
async def test_a_foreign_cursor_is_refused(world: World, cursor: str) -> None:
    """S51: a cursor that no page came with is an error, not an empty answer."""
    await world.enqueue_many(3)
    with pytest.raises(ValueError, match="cursor"):
        await world.store.jobs.find(FindRequest(scope=ALL, cursor=cursor))


async def test_a_cursor_carries_no_scope(world: World) -> None:
    """S9, S51: a cursor got under one scope shows nothing more under another."""
    mine = await world.enqueue("globex")
    await world.enqueue_many(3, "acme")
    reply = await world.store.jobs.find(FindRequest(scope=Scope("acme"), limit=1))
    page = await world.store.jobs.find(FindRequest(scope=Scope("globex"), cursor=reply.cursor))
    assert page.jobs == (mine,)
