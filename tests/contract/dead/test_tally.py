"""What dead letters have in common is counted inside the store, page by page (S51, S75)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.fingerprint import fingerprint
from fairlane.model.instants import SECOND
from fairlane.model.retry.decision import AttemptResult
from fairlane.model.review import ReviewAction
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadLetter, DeadTally, DeadTallyPage, DeadTallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ
from tests.contract.world import ALL, World, failed, ruined

USER: Final = "no user 'ann' (request {})"
BUDGET: Final = ErrorClass.BUDGET

DEATHS: Final[list[tuple[dict[str, Any], AttemptResult | None, ReviewAction | None]]] = [
    ({}, ruined(message=USER.format(4711)), None),
    ({}, ruined(message=USER.format(4712)), None),
    ({"tenant": "globex"}, ruined(message=USER.format(9)), "resolve"),
    ({"queue": "bulk"}, ruined(message=USER.format(10)), None),
    ({"task": "sort"}, ruined(message=USER.format(11)), None),
    ({}, ruined(BUDGET, USER.format(12)), "acknowledge"),
    ({"max_attempts": 1}, failed(message="other"), None),
    ({}, None, None),
    ({"tenant": "globex"}, None, "ignore"),
    ({}, ruined(message=USER.format(13)), None),
]
"""Ten jobs, how each dies a second after the one before (condemned, if nothing is said), and its review."""

CAUSE: Final = fingerprint("noop", ruined(message=USER.format(0)).failure)

FILTERS: Final[list[dict[str, Any]]] = [
    {},
    {"scope": Scope("acme")},
    {"scope": Scope("globex")},
    {"scope": Scope("initech")},
    {"queue": "bulk"},
    {"queue": "nowhere"},
    {"task": "sort"},
    {"error_class": BUDGET},
    {"error_class": ErrorClass.CRASH},
    {"fingerprint": CAUSE},
    {"fingerprint": ""},
    {"fingerprint": "0" * 16},
    {"review": "pending"},
    {"review": "resolved"},
    {"review": "discarded"},
    {"is_acknowledged": True},
    {"is_acknowledged": False},
    {"is_acknowledged": True, "review": "pending"},
    {"since": 3 * SECOND},
    {"until": 3 * SECOND},
    {"since": 2 * SECOND, "until": 7 * SECOND, "task": "noop"},
    {"fingerprint": CAUSE, "review": "pending", "queue": "default", "scope": Scope("acme")},
    {"fingerprint": CAUSE, "review": "resolved", "scope": Scope("acme")},
]


async def die_all(world: World) -> None:
    """Let the ten die."""
    for values, ending, action in DEATHS:
        job = await world.enqueue(**values)
        if ending is None:
            await world.condemn(job.id)
        else:
            await world.run(ending, job.queue)
        if action is not None:
            await world.review(action, job.id)
        world.advance(1)


def count(letters: list[DeadLetter]) -> list[DeadTally]:
    """Count letters that are sorted, latest death first, by everything that a tally has in common."""
    groups: dict[tuple[Any, ...], list[DeadLetter]] = {}
    for one in letters:
        job = one.job
        cause = one.fingerprint, one.error_class, job.tenant, job.queue, job.task, one.review.review
        groups.setdefault(cause, []).append(one)
    found = []
    for (cause, error_class, tenant, queue, task, review), group in groups.items():
        tally = DeadTally(
            fingerprint=cause,
            error_class=error_class,
            tenant=tenant,
            queue=queue,
            task=task,
            review=review,
            letters=len(group),
            first_at=group[-1].job.settled_at or 0,
            last_at=group[0].job.settled_at or 0,
            sample=group[0].job.id,
        )
        found.append(tally)
    return sorted(found, key=repr)


def merge(tallies: list[DeadTally]) -> list[DeadTally]:
    """Add up tallies of several pages."""
    found: dict[tuple[Any, ...], DeadTally] = {}
    for one in tallies:
        key = one.fingerprint, one.error_class, one.tenant, one.queue, one.task, one.review
        seen = found.setdefault(key, msgspec.structs.replace(one, letters=0))
        last_at, sample = max((seen.last_at, seen.sample), (one.last_at, one.sample))
        found[key] = msgspec.structs.replace(
            seen,
            letters=seen.letters + one.letters,
            first_at=min(seen.first_at, one.first_at),
            last_at=last_at,
            sample=sample,
        )
    return sorted(found.values(), key=repr)


async def tally_all(world: World, **filters: Any) -> list[DeadTally]:
    """Count to the end, and add up the pages."""
    request = DeadTallyRequest(**{"scope": ALL, **filters})
    found: list[DeadTally] = []
    for _ in range(40):
        page = await world.store.dead.tally(request)
        assert sum(one.letters for one in page.tallies) <= page.looked_at <= request.limit
        assert len(merge(list(page.tallies))) == len(page.tallies), "each tally comes once on a page"
        found += page.tallies
        if page.cursor is None:
            return merge(found)
        assert page.cursor != request.cursor
        request = msgspec.structs.replace(request, cursor=page.cursor)
    message = "this cursor leads nowhere"
    raise AssertionError(message)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("limit", [1, 3, MAX_ROWS_READ])
async def test_pages_of_any_size_add_up_to_what_is_found(
    world: World, filters: dict[str, Any], limit: int
) -> None:
    """S51, S75: a tally counts exactly the letters that `find` gives for the same filters."""
    dawn = world.now
    await die_all(world)
    times = {key: dawn + value for key, value in filters.items() if key in {"since", "until"}}
    asked = {**filters, **times}
    assert await tally_all(world, limit=limit, **asked) == count(await world.letters(**asked))


async def test_ten_letters_read_as_their_causes(world: World) -> None:
    """S75: messages that differ in numbers have one fingerprint; without a failure there is none."""
    await die_all(world)
    tallies = await tally_all(world)
    assert sum(one.letters for one in tallies) == len(DEATHS)
    assert len({one.fingerprint for one in tallies}) == 5
    (mine,) = [
        one for one in tallies if (one.fingerprint, one.tenant, one.queue) == (CAUSE, "acme", "default")
    ]
    assert (mine.letters, mine.last_at - mine.first_at) == (3, 9 * SECOND)
    assert (mine.task, mine.error_class, mine.review) == ("noop", ErrorClass.NON_RETRYABLE, "pending")
    nameless = [one for one in tallies if one.fingerprint == ""]
    assert {(one.tenant, one.error_class, one.review) for one in nameless} == {
        ("acme", None, "pending"),
        ("globex", None, "ignored"),
    }


async def test_the_sample_is_the_last_to_die_and_of_one_instant_the_greatest_id(world: World) -> None:
    """S75: whatever the order in which they were named, and wherever a page ends."""
    jobs = await world.enqueue_many(5)
    ids = [job.id for job in jobs]
    await world.condemn(ids[4])
    world.advance(1)
    await world.condemn(ids[2], ids[0], ids[3])
    await world.condemn(ids[1])
    for limit in (1, 2, 10):
        (tally,) = await tally_all(world, limit=limit)
        assert (tally.letters, tally.sample) == (5, ids[3])


async def test_a_decision_moves_letters_to_another_tally(world: World) -> None:
    """S75: a letter is counted by the review it has now."""
    jobs = await world.enqueue_many(3)
    ids = [job.id for job in jobs]
    await world.condemn(*ids)
    await world.review("resolve", *ids[:2])
    await world.rerun((await world.letters(review="pending"))[0].job)
    await world.review("note", ids[0])
    assert {(one.review, one.letters) for one in await tally_all(world)} == {
        ("resolved", 2),
        ("reprocessed", 1),
    }
    await world.delete(ids[0])
    assert {(one.review, one.letters) for one in await tally_all(world)} == {
        ("resolved", 1),
        ("reprocessed", 1),
    }


async def test_what_was_forgotten_has_no_cause_any_more(world: World) -> None:
    """S52, S75: its class stays; it is found without a fingerprint, and no longer by the old one."""
    await die_all(world)
    await world.forget()
    mine = await tally_all(world, scope=Scope("acme"))
    assert {one.fingerprint for one in mine} == {""}
    assert {one.error_class for one in mine} == {None, ErrorClass.NON_RETRYABLE, BUDGET, ErrorClass.RETRYABLE}
    assert await tally_all(world, scope=Scope("acme"), fingerprint=CAUSE) == []
    assert len(await tally_all(world, scope=Scope("globex"), fingerprint=CAUSE)) == 1


async def test_no_letter_is_counted_twice_while_others_die(world: World) -> None:
    """S51, S75: new deaths come before the first page and disturb no later one."""
    jobs = await world.enqueue_many(6)
    for job in jobs:
        await world.condemn(job.id)
        world.advance(1)
    request = DeadTallyRequest(scope=ALL, limit=2)
    samples: list[UUID] = []
    letters = 0
    for _ in range(6):
        page = await world.store.dead.tally(request)
        letters += sum(one.letters for one in page.tallies)
        samples += [one.sample for one in page.tallies]
        if page.cursor is None:
            break
        await world.condemn((await world.enqueue()).id)
        world.advance(1)
        request = msgspec.structs.replace(request, cursor=page.cursor)
    assert (letters, page.cursor) == (6, None)
    assert samples[0] == jobs[-1].id


async def test_nothing_to_count_is_the_end(world: World) -> None:
    """S51: no letters, nothing looked at, no cursor."""
    assert await world.store.dead.tally(DeadTallyRequest(scope=ALL)) == DeadTallyPage((), 0, None)


@pytest.mark.parametrize("limit", [0, -1, MAX_ROWS_READ + 1])
async def test_a_call_reads_one_letter_at_least_and_no_more_than_it_may(world: World, limit: int) -> None:
    """S51: what is out of bounds is refused."""
    with pytest.raises(ValueError, match="looks at 1 to 10000"):
        await world.store.dead.tally(DeadTallyRequest(scope=ALL, limit=limit))


@pytest.mark.parametrize("cursor", ["", "nonsense", "WzEsMl0"])
async def test_a_foreign_cursor_is_refused(world: World, cursor: str) -> None:
    """S51: as in every reading."""
    with pytest.raises(ValueError, match="cursor"):
        await world.store.dead.tally(DeadTallyRequest(scope=ALL, cursor=cursor))


async def test_more_letters_than_a_call_reads_are_counted_by_two(world: World) -> None:
    """S51, S75: exactly, and the first call says where it stopped."""
    total = MAX_ROWS_READ + 1
    for start in range(0, total, 1_000):
        jobs = await world.enqueue_many(min(1_000, total - start))
        await world.condemn(*(job.id for job in jobs))
    page = await world.store.dead.tally(DeadTallyRequest(scope=ALL))
    assert 0 < sum(one.letters for one in page.tallies) <= MAX_ROWS_READ
    assert page.cursor is not None
    (tally,) = await tally_all(world)
    assert tally.letters == total
