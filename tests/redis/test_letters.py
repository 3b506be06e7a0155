"""What is noted of dead letters: found page by page, gone with them, made up for old ones (S75)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

import pytest
from redis import Redis

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import DAY
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Review
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import (
    DeadCount,
    DeadCountRequest,
    DeadTally,
    DeadTallyRequest,
    FollowReply,
    ReprocessReply,
    ReviewReply,
)
from fairlane.store.redis.dead import follow as following
from fairlane.store.redis.dead import reading
from fairlane.store.redis.records.stored_jobs import JobUpdate
from tests.contract.world import ALL, OPERATION, World, ruined
from tests.redis.test_keys import kinds

NOTED: Final = {"letters", "reviews", "letter_counts", "decided", "decided_by_death", "new_runs"}


async def reviewed(world: World) -> dict[Review, UUID]:
    """Let jobs die, and bring each letter to another review."""
    found: dict[Review, UUID] = {}
    for action, review in (
        ("note", "pending"),
        ("resolve", "resolved"),
        ("ignore", "ignored"),
        ("discard", "discarded"),
    ):
        dead = await world.die()
        await world.review(action, dead.id)  # type: ignore[arg-type]
        found[review] = dead.id  # type: ignore[index]
    dead = await world.die()
    await world.rerun(dead)
    return found | {"reprocessed": dead.id}


async def counts(world: World) -> tuple[DeadCount, ...]:
    """Count all letters by their review."""
    return (await world.store.dead.count(DeadCountRequest(scope=ALL))).counts


async def tallies(world: World, scope: Scope = ALL, limit: int = 10_000) -> set[DeadTally]:
    """Read one page of what letters have in common."""
    return set((await world.store.dead.tally(DeadTallyRequest(scope=scope, limit=limit))).tallies)


async def delete(world: World) -> None:
    """Delete all letters."""
    await world.delete(*(letter.job.id for letter in await world.letters()))


async def prune(world: World) -> None:
    """Let all letters grow old."""
    world.advance(40 * DAY / 1e6)
    await world.prune(dead=1, dead_reviewed=1)


async def follow_and_delete(world: World) -> None:
    """Let the new job end, note it, and delete all letters."""
    await world.run()
    await world.follow()
    await delete(world)


@pytest.mark.parametrize("remove", [delete, prune, follow_and_delete])
async def test_a_letter_takes_all_that_was_noted_of_it_with_it(
    world: World, client: Redis, remove: Callable[[World], Awaitable[None]]
) -> None:
    """S52: whatever its review was."""
    await reviewed(world)
    assert kinds(client.keys()) >= NOTED
    await remove(world)
    assert await world.letters() == []
    assert kinds(client.keys()) & NOTED == set()


async def test_a_decision_that_is_changed_leaves_no_trace_in_sets_and_counts(
    world: World, client: Redis
) -> None:
    """A resolved letter that runs again is not pruned as a resolved one, and is counted once."""
    dead = await world.die()
    await world.review("resolve", dead.id)
    await world.review("ignore", dead.id)
    await world.rerun(dead)
    assert kinds(client.keys()) & {"decided", "decided_by_death"} == set()
    assert await counts(world) == (DeadCount("acme", "default", "reprocessed", 1),)
    world.advance(8 * 86_400)
    await world.prune()
    assert await world.letter(dead.id) is not None


async def test_a_tenant_reads_and_counts_its_own_letters_only(world: World) -> None:
    """S9, S51: also how many were looked at, and where a page ends, tells nothing of others."""
    own = [await world.die(tenant) for tenant in ("acme", "globex", "acme", "globex")][::2]
    page = await world.store.dead.tally(DeadTallyRequest(scope=Scope("acme"), limit=2))
    assert [(one.tenant, one.letters) for one in page.tallies] == [("acme", 2)]
    assert (page.looked_at, page.cursor) == (2, None)
    assert [letter.job for letter in await world.letters(Scope("acme"), page=1)] == own[::-1]


async def forget_what_is_noted(world: World, client: Redis) -> None:
    """Leave letters as an older version did, which knew of no review."""
    client.delete(*(world.store.dead._client.keys(name) for name in NOTED))  # type: ignore[attr-defined]


async def test_letters_of_an_older_version_are_found_and_counted(world: World, client: Redis) -> None:
    """S67: the first who reads them notes what filters compare; they are pending."""
    for number in range(5):
        await world.enqueue(f"t{number % 2}")
        await world.run(ruined(ErrorClass.BUDGET))
        world.advance(1)
    found, tallied = await world.letters(), await tallies(world)
    questions: tuple[dict[str, Any], ...] = (
        {"error_class": ErrorClass.BUDGET, "review": "pending"},
        {"fingerprint": found[0].fingerprint},
    )
    for filters in questions:
        await forget_what_is_noted(world, client)
        assert await world.letters(**filters) == found
    await forget_what_is_noted(world, client)
    assert await tallies(world) == tallied
    await forget_what_is_noted(world, client)
    assert {one.tenant for one in await tallies(world, Scope("t1"))} == {"t1"}
    await forget_what_is_noted(world, client)
    assert sum(one.letters for one in await counts(world)) == 5


async def test_letters_of_an_older_version_are_reviewed_and_run_again(world: World, client: Redis) -> None:
    """S67, S75: nobody needs to have read them before."""
    ended, again, gone = [await world.die() for _ in range(3)]
    await forget_what_is_noted(world, client)
    await world.review("resolve", ended.id)
    await world.rerun(again)
    assert await world.delete(gone.id) == (gone.id,)
    assert await counts(world) == (
        DeadCount("acme", "default", "reprocessed", 1),
        DeadCount("acme", "default", "resolved", 1),
    )
    assert {letter.job.id for letter in await world.letters(is_acknowledged=True)} == {ended.id, again.id}


@pytest.mark.parametrize("page", [1, 2, 3, 7])
async def test_pages_of_scripts_change_nothing_in_what_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """S51: letters of two tenants in turn, some of one instant; a call takes as many scripts as it needs."""
    for number in range(12):
        await world.enqueue(f"t{number % 2}", task=f"task{number % 3}")
        dead = await world.run(ruined())
        if number % 4 == 1:
            await world.review("acknowledge", dead.id)
        world.advance(number % 2)
    tallied = [await tallies(world, scope, limit) for scope in (ALL, Scope("t1")) for limit in (3, 5, 100)]
    listed = [await world.letters(scope, size) for scope in (ALL, Scope("t1")) for size in (1, 4, 50)]
    monkeypatch.setattr(reading, "_PAGE", page)
    assert tallied == [
        await tallies(world, scope, limit) for scope in (ALL, Scope("t1")) for limit in (3, 5, 100)
    ]
    assert listed == [await world.letters(scope, size) for scope in (ALL, Scope("t1")) for size in (1, 4, 50)]
    assert [letter.job.id for letter in listed[0]] == [letter.job.id for letter in listed[2]]


async def test_a_pass_over_many_new_jobs_goes_on_where_the_one_before_stopped(
    world: World, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S61, S75: those that still run do not hide the ones behind them; at the end it begins anew."""
    monkeypatch.setattr(following, "_PAGE", 2)
    monkeypatch.setattr(following, "MAX_ROWS_READ", 4)
    letters = [await world.die() for _ in range(9)]
    for letter in letters:
        await world.rerun(letter)
    for _ in letters[:-1]:
        await world.claim_one()
    last = await world.run()  # the others have only begun
    assert last.parent_id == letters[-1].id
    replies = [await world.follow() for _ in range(4)]
    assert [(len(reply.followed), reply.is_partial) for reply in replies] == [
        (0, True),
        (0, True),
        (1, False),
        (0, True),
    ]
    assert replies[2].followed[0].job == last.id
    await world.lose()
    await world.condemn(*(job.id for job in await world.find_all(states=frozenset({State.READY}))))
    followed = [await world.follow() for _ in range(4)]
    assert sum(len(reply.followed) for reply in followed) == 8
    assert await world.follow() == FollowReply()
    assert client.hget("{fairlane}:meta", "followed") is None


async def test_a_decision_counts_from_the_death_if_retention_says_so(world: World) -> None:
    """S52: only letters whose review has ended are looked at; the others wait for `dead`."""
    old, young = await world.die(), await world.die()
    world.advance(8 * 86_400)
    await world.review("resolve", old.id)
    assert (await world.prune()).jobs == 0
    assert (await world.prune(is_from_review=False)).jobs == 1
    assert [letter.job.id for letter in await world.letters()] == [young.id]


async def test_a_decision_that_came_in_between_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S60, S75: who discards it while another resolves it is not overwritten, and alone in the audit."""
    dead = await world.die()
    stored_jobs = world.store.dead._stored_jobs  # type: ignore[attr-defined]
    write = stored_jobs.write

    async def discard_first(updates: list[JobUpdate], now: int) -> object:
        monkeypatch.undo()
        reply = await world.review("discard", dead.id, operation=OPERATION)
        assert [one.answer for one in reply] == ["done"]
        return await write(updates, now)

    monkeypatch.setattr(stored_jobs, "write", discard_first)
    replies = await world.review("resolve", dead.id, operation=OPERATION)
    assert replies == (ReviewReply(dead.id, "not_allowed", "discarded"),)
    assert len(await world.appended("audit")) == 1
    letter = await world.letter(dead.id)
    assert letter is not None
    assert letter.review.review == "discarded"


async def test_a_job_that_came_in_between_is_the_one_that_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S75: two have read the letter, and the second to write finds that a job runs already."""
    dead = await world.die()
    store_client = world.store.dead._client  # type: ignore[attr-defined]
    run = store_client.run
    others: list[UUID] = []

    async def reprocess_first(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "dead/reprocess" and not others:
            item = world.again(dead)
            others.append(item.job.id)
            assert [one.answer for one in await world.reprocess(item)] == ["reprocessed"]
        return await run(name, *arguments, **options)

    monkeypatch.setattr(store_client, "run", reprocess_first)
    replies = await world.reprocess(world.again(dead), operation=OPERATION)
    assert replies == (ReprocessReply(dead.id, "already", others[0], "reprocessed"),)
    assert [job.id for job in await world.find_all() if job.parent_id == dead.id] == others
    assert await world.appended("audit") == []
