"""Dead letters on several connections: one new job, no circle of waiting, nothing removed too early (S75)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest

from fairlane.model.instants import DAY, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.dead import ReprocessReply
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.dead import follow
from fairlane.store.postgres.dead.letters import locked_letters
from fairlane.store.postgres.store import PostgresStore
from fairlane.store.postgres.upkeep import prune
from tests.contract.world import SUCCEEDED, World, ruined
from tests.servers.schemas import url_of

KEEP = {"dead": 30 * DAY, "dead_reviewed": 7 * DAY}


@pytest.fixture
async def other(world: World, schema: str) -> AsyncIterator[World]:
    """Somebody else on the same schema, with connections and a clock of the same time."""
    store = PostgresStore(url_of(schema), world.clock.now)
    yield World(store, world.clock)
    await store.upkeep.aclose()


def server_of(world: World) -> Server:
    """Return the server of a world's store."""
    assert isinstance(world.store, PostgresStore)
    return world.store._server


@contextmanager
def deciding(admin: psycopg.Connection, schema: str, *ids: UUID) -> Iterator[None]:
    """Hold the locks of letters, as somebody does who has not committed yet."""
    with admin.transaction():
        admin.execute(f"SELECT FROM {schema}.dead WHERE id = ANY (%s) FOR UPDATE".encode(), (list(ids),))
        yield


async def die(world: World, jobs: int) -> list[UUID]:
    """Let jobs die."""
    await world.enqueue_many(jobs)
    await world.settle_reply(*(world.verdict(claim, ruined()) for claim in await world.claim(jobs)))
    return [letter.job.id for letter in await world.letters()]


async def wait_for_a_lock(world: World, waiting: asyncio.Task[Any]) -> None:
    """Return when somebody waits for a lock, or the task is done."""
    asked = "SELECT FROM pg_locks WHERE NOT granted"
    while not waiting.done() and not await server_of(world).fetch(asked):
        pass


async def test_who_comes_second_waits_and_is_told_of_the_first_job(
    world: World, other: World, admin: psycopg.Connection, schema: str
) -> None:
    """S75: two connections run the same letter again at once."""
    (id,) = await die(world, 1)
    dead = await world.get(id)
    mine, theirs = world.again(dead), world.again(dead)  # one world makes all ids
    with deciding(admin, schema, id):
        first, second = (
            asyncio.create_task(world.reprocess(mine)),
            asyncio.create_task(other.reprocess(theirs)),
        )
        await wait_for_a_lock(world, first)
        assert not first.done()
    replies = [*await first, *await second]
    assert Counter(reply.answer for reply in replies) == {"reprocessed": 1, "already": 1}
    assert len({reply.job for reply in replies}) == 1
    assert await world.states() == {State.DEAD: 1, State.READY: 1}
    assert len(await world.appended("events")) == 2


async def test_many_who_run_the_same_letters_again_make_one_job_each(world: World, other: World) -> None:
    """S75: in whatever order they name them, and with keys that others want, too, none waits in a circle."""
    ids = await die(world, 40)
    jobs = [await world.get(id) for id in ids]

    async def run(who: World, turn: int) -> tuple[ReprocessReply, ...]:
        mine = jobs[turn:] + jobs[:turn]
        items = [world.again(dead, dedup_key=f"d{dead.id}") for dead in (mine if turn % 2 else mine[::-1])]
        return await who.reprocess(*items)

    async with asyncio.timeout(60):
        replies = await asyncio.gather(*(run((world, other)[turn % 2], 5 * turn) for turn in range(8)))
    answers = Counter(reply.answer for reply in sum(replies, ()))
    assert answers == {"reprocessed": 40, "already": 7 * 40}
    assert await world.states() == {State.DEAD: 40, State.READY: 40}
    runs = {reply.id: reply.job for reply in sum(replies, ())}
    for id in ids:
        letter = await world.letter(id)
        assert letter is not None
        assert letter.review.new_run is not None
        assert letter.review.new_run.job == runs[id]


async def test_prune_leaves_a_letter_about_which_somebody_decides(
    world: World, admin: psycopg.Connection, schema: str
) -> None:
    """S52: it waits for nobody; a later pass sees what was decided."""
    busy, free = await die(world, 2)
    world.advance(31 * DAY / SECOND)
    with deciding(admin, schema, busy):
        assert (await world.prune(**KEEP)).jobs == 1
    assert [letter.job.id for letter in await world.letters()] == [busy]
    assert await world.letter(free) is None
    assert (await world.prune(**KEEP)).jobs == 1


async def test_prune_leaves_a_letter_that_was_decided_since_it_looked(
    world: World, other: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S52, S75: the time of a letter that was resolved begins with the decision."""
    ids = await die(world, 2)
    world.advance(31 * DAY / SECOND)
    look = prune._over

    async def look_and_lose_time(*arguments: Any) -> Any:
        rows = await look(*arguments)
        await other.review("resolve", ids[0])
        return rows

    monkeypatch.setattr(prune, "_over", look_and_lose_time)
    assert (await world.prune(**KEEP)).jobs == 1
    assert [letter.job.id for letter in await world.letters()] == [ids[0]]


async def test_a_pass_leaves_letters_about_which_somebody_decides(
    world: World, admin: psycopg.Connection, schema: str
) -> None:
    """S75: how their new jobs have ended is noted by the next one, once."""
    busy, free = await die(world, 2)
    for id in (busy, free):
        await world.rerun(await world.get(id))
    await world.settle_reply(*(world.verdict(claim, SUCCEEDED) for claim in await world.claim(2)))
    with deciding(admin, schema, busy):
        assert [run.id for run in (await world.follow()).followed] == [free]
    assert [run.id for run in (await world.follow()).followed] == [busy]
    assert (await world.follow()).followed == ()


async def test_a_pass_notes_nothing_that_another_has_noted_since_it_looked(
    world: World, other: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S75, S76: one success is one entry, however many leaders there are."""
    ids = await die(world, 2)
    for id in ids:
        await world.rerun(await world.get(id))
    await world.settle_reply(*(world.verdict(claim, SUCCEEDED) for claim in await world.claim(2)))

    async def lock_too_late(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(follow, "locked_letters", locked_letters)
        assert len((await other.follow(limit=1)).followed) == 1
        return await locked_letters(*arguments, **options)

    monkeypatch.setattr(follow, "locked_letters", lock_too_late)
    assert len((await world.follow()).followed) == 1
    told = [entry.subject for entry in await world.appended("audit")]
    assert sorted(told) == sorted(map(str, ids))


async def test_a_pass_goes_on_behind_new_jobs_that_have_not_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S75: it looks at a bounded number; those behind have their turn, whatever those before do."""
    monkeypatch.setattr(follow, "MAX_ROWS_READ", 3)
    ids = await die(world, 7)
    runs = {}
    for id in ids:
        run = await world.rerun(await world.get(id))
        runs[run.id] = id
    last = max(runs)
    await world.cancel(last)
    replies = [await world.follow() for _ in range(3)]
    assert [len(reply.followed) for reply in replies] == [0, 0, 1]
    assert [reply.is_partial for reply in replies] == [True, True, False]
    assert replies[-1].followed[0].id == runs[last]
    await world.cancel(min(runs))
    assert [run.job for run in (await world.follow()).followed] == [min(runs)]
