"""What SQLite promises of dead letters beyond the contract: indexes, bounds, several processes (S75)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import DAY, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadFiltered, DeadRequest, FollowReply
from fairlane.store.contract.request import MAX_ROWS_READ
from fairlane.store.sqlite.dead import follow
from fairlane.store.sqlite.dead.walk import LetterWalk
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.store import SqliteStore
from fairlane.store.sqlite.transaction import Transaction
from tests.contract.world import ALL, World

WALKS: Final[list[tuple[dict[str, Any], str]]] = [
    ({}, "letter_settled"),
    ({"queue": "mail", "task": "send", "error_class": ErrorClass.CRASH}, "letter_settled"),
    ({"is_acknowledged": True, "since": 5, "until": 9}, "letter_settled"),
    ({"review": "pending", "queue": "mail"}, "letter_review"),
    ({"fingerprint": "f", "review": "pending"}, "letter_fingerprint"),
    ({"scope": Scope("acme"), "fingerprint": "f", "review": "pending"}, "letter_tenant"),
]
"""Filters, and the index that answers them."""


@pytest.fixture
async def other(world: World, file: Path) -> AsyncIterator[World]:
    """A second store on the same file, as another process has one."""
    store = SqliteStore(f"sqlite:///{file}", world.clock.now)
    other = World(store, world.clock)
    other._ids = IdMaker(random.Random(8).getrandbits)
    yield other
    await store.upkeep.aclose()


async def condemned(world: World, number: int, queue: str = "default") -> list[JobRecord]:
    """Make dead letters, a second after the ones before."""
    world.advance(1)
    found: list[JobRecord] = []
    while len(found) < number:
        jobs = await world.enqueue_many(min(1_000, number - len(found)), queue=queue)
        await world.condemn(*(job.id for job in jobs))
        found += jobs
    return found


# ── indexes ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("filters", "index"), WALKS, ids=str)
@pytest.mark.parametrize("name", ["edge", "length", "page", "tally"])
async def test_letters_are_walked_in_an_index(
    world: World, filters: dict[str, Any], index: str, name: str
) -> None:
    """No call reads all letters, and none sorts them: only a tally sorts its groups."""
    request = DeadFiltered(**{"scope": ALL, **filters})
    statement = f"EXPLAIN QUERY PLAN {getattr(load('dead'), name)}"

    def explain(tx: Transaction) -> list[tuple[Any, ...]]:
        return LetterWalk(request, None).rows(tx, statement, limit=50)

    assert isinstance(world.store, SqliteStore)
    plan = [row[3] for row in await world.store._reader.run(explain)]
    assert plan[0].startswith("SEARCH letter USING ")
    assert f"INDEX {index} (" in plan[0]
    assert "(settled_at,id)>(?,?) AND (settled_at,id)<(?,?)" in plan[0]
    assert not [step for step in plan if "ORDER BY" in step or step.startswith("SCAN")]


async def test_a_page_of_few_letters_is_short_and_says_where_to_continue(world: World) -> None:
    """S51: a call reads 10,000 letters, and those that match may be behind them."""
    (rare,) = await condemned(world, 1, "rare")
    await condemned(world, MAX_ROWS_READ)
    page = await world.store.dead.find(DeadRequest(scope=ALL, queue="rare"))
    assert page.letters == ()
    assert page.cursor is not None
    page = await world.store.dead.find(DeadRequest(scope=ALL, queue="rare", cursor=page.cursor))
    assert [letter.job.id for letter in page.letters] == [rare.id]
    assert page.cursor is None


# ── several processes ────────────────────────────────────────────────────────


async def test_of_two_processes_one_runs_a_letter_again(world: World, other: World) -> None:
    """S75: both get the same job, and each letter has one."""
    dead = await condemned(world, 20)
    items = [[one.again(job) for job in dead] for one in (world, other)]
    answers = await asyncio.gather(world.reprocess(*items[0]), other.reprocess(*items[1]))
    assert sorted({reply.answer for replies in answers for reply in replies}) == ["already", "reprocessed"]
    first, second = answers
    assert [reply.job for reply in first] == [reply.job for reply in second]
    assert {job.parent_id for job in await world.find_all(states=frozenset({State.READY}))} == {
        job.id for job in dead
    }
    assert len(await world.appended("events")) == 1 + len(dead)


async def test_a_new_run_is_seen_by_a_store_that_had_the_counts_in_memory(world: World, other: World) -> None:
    """The counts of the queue are exact although another process has added a job."""
    (dead,) = await condemned(world, 1)
    await other.enqueue()
    new = await world.rerun(dead)
    assert {job.id for job in await other.find_all(states=frozenset({State.READY}))} >= {new.id}
    assert len(await other.claim(5)) == 2


# ── following ────────────────────────────────────────────────────────────────


async def test_new_runs_that_go_on_do_not_hide_those_that_have_ended(world: World) -> None:
    """S75: a pass is bounded, and the next one continues where it stopped, and begins again at the end."""
    dead = await condemned(world, 6)
    runs = [await world.rerun(job) for job in dead]
    ended = [runs[1], runs[3], runs[5]]
    await world.cancel(*(job.id for job in ended))
    seen = []
    for _ in range(3):
        reply = await world.follow(limit=1)
        seen += [run.job for run in reply.followed]
    assert sorted(seen) == sorted(job.id for job in ended)
    assert not (await world.follow(limit=1)).followed
    await world.cancel(runs[0].id)
    assert [run.job for run in (await world.follow()).followed] == [runs[0].id]


async def test_a_pass_looks_at_no_more_runs_than_it_may(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S75: nothing has ended among the first ones, and the next pass looks at the others."""
    monkeypatch.setattr(follow, "MAX_ROWS_READ", 3)
    dead = await condemned(world, 5)
    runs = [await world.rerun(job) for job in dead]
    await world.cancel(runs[4].id)
    assert await world.follow() == FollowReply((), is_partial=True)
    last = await world.follow()
    assert ([run.job for run in last.followed], last.is_partial) == ([runs[4].id], False)
    assert await world.follow() == FollowReply((), is_partial=True)


# ── retention ────────────────────────────────────────────────────────────────


async def test_a_note_on_an_erased_letter_is_erased_too(world: World) -> None:
    """S52: a note that was written after a tenant was forgotten is erased when it is forgotten again."""
    (dead,) = await condemned(world, 1)
    for text in ("Ann Smith called", "Ann Smith called again"):
        await world.review("note", dead.id, note=text)
        await world.forget("acme")
        letter = await world.letter(dead.id)
        assert letter is not None
        assert letter.review.notes == ()


async def test_letters_go_by_their_decision_and_take_their_rows_along(world: World) -> None:
    """S75: seven days after a decision, thirty after a death; nothing is left in any table."""
    dead = await condemned(world, 2)
    await world.review("resolve", dead[0].id)
    world.advance(8 * DAY / SECOND)
    await world.prune()
    assert [letter.job.id for letter in await world.letters()] == [dead[1].id]
    world.advance(23 * DAY / SECOND)
    await world.prune()

    def rows(tx: Transaction) -> list[tuple[Any, ...]]:
        return all_rows(tx.db, "SELECT seq FROM body UNION SELECT seq FROM dead UNION SELECT seq FROM letter")

    assert isinstance(world.store, SqliteStore)
    assert await world.store._reader.run(rows) == []
