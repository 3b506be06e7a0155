"""Dead letters: stored by every road that ends there, read by filter, page and id (S25, S50)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias
from uuid import UUID

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.fingerprint import fingerprint
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import MAX_LOSSES, Unknown
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadCount, DeadCountRequest, DeadLetter, DeadPage, DeadRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from tests.contract.world import ALL, LEASE, SUCCEEDED, World, failed, payload, ruined


async def counts(world: World, scope: Scope = ALL, limit: int = MAX_PAGE_SIZE) -> tuple[DeadCount, ...]:
    """Read all pages of the counts."""
    page = await world.store.dead.count(DeadCountRequest(scope=scope, limit=limit))
    found = page.counts
    while page.cursor is not None:
        assert 0 < len(page.counts) <= limit
        assert len(found) < 100, "paging must end"
        page = await world.store.dead.count(DeadCountRequest(scope=scope, limit=limit, cursor=page.cursor))
        found += page.counts
    return found


def fingerprint_of(dead: JobRecord) -> str:
    """Compute the fingerprint of a job's last failure; none if it never failed."""
    failures = [attempt.failure for attempt in dead.attempts if attempt.failure is not None]
    return fingerprint(dead.task, failures[-1]) if failures else ""


Road: TypeAlias = Callable[[World, UUID], Awaitable[object]]


async def lose_it(world: World, _: UUID) -> None:
    """Claim the job and let the lease run out."""
    await world.claim_one()
    await world.lose()


async def crash_thrice(world: World, _: UUID) -> None:
    """Lose the job once, then let its own child die twice."""
    await lose_it(world, _)
    for _crash in range(2):
        world.advance(60)
        await world.run(failed(ErrorClass.CRASH))


async def lose_it_always(world: World, _: UUID) -> None:
    """Lose the job as often as it may be lost."""
    for _loss in range(MAX_LOSSES):
        await lose_it(world, _)


ROADS: Final[dict[str, tuple[dict[str, Any], Road, str, ErrorClass | None, int]]] = {
    "exhausted": ({"max_attempts": 1}, lambda w, _: w.run(failed()), "exhausted", ErrorClass.RETRYABLE, 1),
    "failed": ({}, lambda w, _: w.run(ruined()), "failed", ErrorClass.NON_RETRYABLE, 1),
    "not retried": ({}, lambda w, _: w.run(failed(ErrorClass.BUDGET)), "failed", ErrorClass.BUDGET, 1),
    "stuck": ({}, lambda w, _: w.run(failed(ErrorClass.STUCK)), "stuck", ErrorClass.STUCK, 1),
    "undecodable": (
        {"payload": b"\xff\x00{"},
        lambda w, _: w.run(ruined(ErrorClass.UNDECODABLE)),
        "failed",
        ErrorClass.UNDECODABLE,
        1,
    ),
    "unknown task": ({}, lambda w, _: w.run(Unknown(HOUR)), "failed", ErrorClass.UNKNOWN_TASK, 1),
    "too late to retry": (
        {"expires_in": SECOND},
        lambda w, _: w.run(failed(ErrorClass.TIMEOUT)),
        "expired",
        ErrorClass.TIMEOUT,
        1,
    ),
    "lost, at most once": ({"at_most_once": True}, lose_it, "lost", ErrorClass.CRASH, 1),
    "lost for good": ({}, lose_it_always, "exhausted", ErrorClass.CRASH, 5),
    "poison": ({}, crash_thrice, "exhausted", ErrorClass.CRASH, 3),
    "condemned": ({}, lambda w, id: w.condemn(id), "condemned", None, 0),
}
"""What a job must be, what befalls it, its because, its class, and how many attempts it had."""


@pytest.mark.parametrize("road", ROADS)
async def test_every_road_to_death_leaves_a_whole_letter(world: World, road: str) -> None:
    """S25, S33, S40, S50, S63: payload, attempts, class and fingerprint are there; the review is pending."""
    values, befall, word, error_class, attempts = ROADS[road]
    sent = await world.enqueue(**{"payload": payload(x=1), "tags": ("t",), "checksum": 9, **values})
    await befall(world, sent.id)
    letter = await world.letter(sent.id)
    assert letter is not None
    cause = fingerprint_of(letter.job)
    assert letter == DeadLetter(await world.get(sent.id), error_class, cause)
    assert (cause == "") == (error_class is None)
    assert letter.job.state is State.DEAD
    assert str(letter.job.because).partition(":")[0] == word
    assert letter.job.settled_at == world.now
    assert (letter.job.payload, letter.job.checksum, letter.job.tags) == (sent.payload, 9, ("t",))
    failures = [attempt.failure for attempt in letter.job.attempts]
    assert [failure and failure.error_class for failure in failures] == [error_class] * attempts
    assert await world.letters() == [letter]
    assert await counts(world) == (DeadCount("acme", "default", "pending", 1),)


@pytest.mark.parametrize("state", [state for state in State if state is not State.DEAD])
async def test_a_job_that_is_not_dead_has_no_letter(world: World, state: State) -> None:
    """S28, S50: cancelled and succeeded jobs leave none, living ones even less."""
    claim = await world.bring_to(state)
    assert await world.letter(claim.job.id) is None
    assert await world.letters() == []
    assert await counts(world) == ()


async def test_the_class_is_that_of_the_last_failure(world: World) -> None:
    """S27: earlier attempts may have failed otherwise."""
    await world.enqueue(max_attempts=2)
    await world.run(failed(ErrorClass.TRANSIENT))
    world.advance(1)
    dead = await world.run(failed(ErrorClass.RATE_LIMITED))
    assert await world.letters(error_class=ErrorClass.RATE_LIMITED) == [
        DeadLetter(dead, ErrorClass.RATE_LIMITED, fingerprint_of(dead))
    ]
    assert await world.letters(error_class=ErrorClass.TRANSIENT) == []


DEATHS: Final[dict[str, dict[str, Any]]] = {
    "a": {"queue": "mail", "task": "send", "end": ruined(ErrorClass.NON_RETRYABLE)},
    "b": {"queue": "bulk", "task": "send", "end": ruined(ErrorClass.BUDGET)},
    "c": {"queue": "mail", "task": "sort", "end": ruined(ErrorClass.BUDGET)},
    "d": {"queue": "mail", "task": "send", "end": ruined(ErrorClass.BUDGET), "tenant": "globex"},
}
"""Four jobs, enqueued in this order, that die in the opposite one, a second apart; `d` dies first."""

FOUND: Final[list[tuple[dict[str, Any], str]]] = [
    ({}, "abcd"),
    ({"scope": Scope("acme")}, "abc"),
    ({"scope": Scope("globex")}, "d"),
    ({"scope": Scope("initech")}, ""),
    ({"queue": "mail"}, "acd"),
    ({"queue": "mai"}, ""),
    ({"task": "send"}, "abd"),
    ({"error_class": ErrorClass.BUDGET}, "bcd"),
    ({"error_class": ErrorClass.CRASH}, ""),
    ({"review": "pending"}, "abcd"),
    ({"review": "resolved"}, ""),
    ({"since": 0}, "abcd"),
    ({"since": SECOND}, "abc"),
    ({"since": SECOND + 1}, "ab"),
    ({"until": SECOND}, "d"),
    ({"until": SECOND + 1}, "cd"),
    ({"since": SECOND, "until": 3 * SECOND}, "bc"),
    ({"queue": "mail", "task": "send", "error_class": ErrorClass.BUDGET}, "d"),
    ({"queue": "mail", "since": SECOND, "scope": Scope("acme")}, "ac"),
]


async def die(world: World) -> dict[UUID, str]:
    """Let the four die and return their names by id."""
    names = {}
    for name, values in DEATHS.items():
        sent = {key: value for key, value in values.items() if key != "end"}
        names[(await world.enqueue(**sent)).id] = name
    claims = {names[one.job.id]: one for queue in ("mail", "bulk") for one in await world.claim(4, queue)}
    for name in reversed(DEATHS):
        await world.settle(claims[name], DEATHS[name]["end"])
        world.advance(1)
    return names


@pytest.mark.parametrize(("filters", "found"), FOUND, ids=str)
@pytest.mark.parametrize("page", [1, 2, 50])
async def test_letters_are_found_by_every_filter_latest_death_first(
    world: World, filters: dict[str, Any], found: str, page: int
) -> None:
    """S50, S51: all filters must hold; times are those of death, from `since` and before `until`."""
    dawn = world.now
    names = await die(world)
    times = {key: dawn + value for key, value in filters.items() if key in {"since", "until"}}
    letters = await world.letters(page=page, **{**filters, **times})
    assert "".join(names[letter.job.id] for letter in letters) == found


async def test_letters_of_one_instant_come_by_id(world: World) -> None:
    """S50, S51: the greater id first, so that pages cannot lose one of them."""
    jobs = await world.enqueue_many(5)
    await world.condemn(*(job.id for job in jobs))
    ids = [job.id for job in jobs][::-1]
    for page in (1, 2, 3, 5):
        assert [letter.job.id for letter in await world.letters(page=page)] == ids


async def test_paging_meets_every_letter_once_while_others_die(world: World) -> None:
    """S51: new deaths come before the first page and disturb no later one."""
    jobs = await world.enqueue_many(6)
    for job in jobs:
        await world.condemn(job.id)
        world.advance(1)
    found: list[UUID] = []
    cursor: str | None = None
    while True:
        page = await world.store.dead.find(DeadRequest(scope=ALL, limit=2, cursor=cursor))
        assert len(page.letters) <= 2
        found += [letter.job.id for letter in page.letters]
        assert page.cursor is None or page.cursor != cursor
        assert len(found) <= len(jobs)
        cursor = page.cursor
        if cursor is None:
            break
        await world.enqueue()
        await world.run(ruined())
        world.advance(1)
    assert found == [job.id for job in jobs][::-1]


@pytest.mark.parametrize("cursor", ["", "nonsense", "WzEsMl0"])
async def test_a_foreign_cursor_is_refused(world: World, cursor: str) -> None:
    """S51: as in every reading."""
    with pytest.raises(ValueError, match="cursor"):
        await world.store.dead.find(DeadRequest(scope=ALL, cursor=cursor))


async def test_no_letters_are_the_end(world: World) -> None:
    """S51: no letters, no cursor."""
    assert await world.store.dead.find(DeadRequest(scope=ALL)) == DeadPage((), None)


async def test_letters_are_counted_per_tenant_queue_and_review(world: World) -> None:
    """S50, S51: exactly, sorted, without zeros, within the scope."""
    await die(world)
    mine = (DeadCount("acme", "bulk", "pending", 1), DeadCount("acme", "mail", "pending", 2))
    other = (DeadCount("globex", "mail", "pending", 1),)
    for limit in (1, 2, 3, 1_000):
        assert await counts(world, ALL, limit) == mine + other
        assert await counts(world, Scope("acme"), limit) == mine
        assert await counts(world, Scope("globex"), limit) == other


async def test_a_late_settlement_raises_no_one_from_the_dead(world: World) -> None:
    """S23, S36: the letter stays as it was."""
    await world.enqueue(at_most_once=True)
    claim = await world.claim_one(lease=LEASE)
    await world.lose()
    before = await world.sight()
    assert (await world.settle_reply(world.verdict(claim, SUCCEEDED))).stale == (claim.job.id,)
    assert await world.sight() == before
