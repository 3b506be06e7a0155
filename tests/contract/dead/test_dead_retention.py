"""How long dead letters are kept depends on their review (S52, S75)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest

from fairlane.model.instants import DAY, HOUR, MINUTE, SECOND, Micros
from fairlane.model.policy.retention import Retention
from fairlane.model.review import Review, ReviewAction
from fairlane.model.scope import Scope
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from tests.contract.dead.test_review import bring_to
from tests.contract.world import ALL, MICRO, World, numbers_of

ACTIONS: Final[dict[Review, ReviewAction]] = {
    "resolved": "resolve",
    "ignored": "ignore",
    "discarded": "discard",
}
LATE: Final = HOUR
"""How long after the death a decision comes."""


class Kept(NamedTuple):
    """What is set, and how long a letter of acme in the default queue is kept from its death, or decision."""

    times: dict[str, Any]
    kept: Micros
    from_decision: bool = False


UNDECIDED: Final = [
    Kept({}, 30 * DAY),
    Kept({"dead": DAY}, DAY),
    Kept({"dead": DAY, "dead_reviewed": 2 * HOUR}, DAY),
    Kept({"dead": DAY, "dead_reviewed": 0, "is_from_review": False}, DAY),
    Kept({"dead": DAY, "queues": {"default": 3 * HOUR}}, 3 * HOUR),
    Kept({"dead": DAY, "queues": {"other": 3 * HOUR}}, DAY),
    Kept({"dead": DAY, "queues": {"default": 3 * HOUR}, "tenants": {"acme": 9 * DAY}}, 9 * DAY),
]
REVIEWED: Final = [
    Kept({}, 7 * DAY, from_decision=True),
    Kept({"dead_reviewed": DAY}, DAY, from_decision=True),
    Kept({"dead_reviewed": DAY, "dead": 2 * HOUR}, DAY, from_decision=True),
    Kept({"dead_reviewed": DAY, "is_from_review": False}, DAY),
    Kept({"dead_reviewed": 0, "queues": {"default": 3 * HOUR}}, 3 * HOUR),
    Kept({"dead_reviewed": 0, "tenants": {"acme": 2 * DAY}, "is_from_review": False}, 2 * DAY),
    Kept({"dead_reviewed": 2 * DAY, "tenants": {"globex": 0}}, 2 * DAY, from_decision=True),
]


async def prune(world: World, limit: int = 1_000, scope: Scope = ALL, **times: Any) -> PruneReply:
    """Make one bounded pass."""
    request = PruneRequest(scope=scope, retention=Retention(**times), limit=limit)
    return numbers_of(await world.store.upkeep.prune(request))


async def decide_late(world: World, review: Review) -> None:
    """Let a job die, and decide so an hour later."""
    dead = await world.die()
    world.advance(LATE / SECOND)
    if review == "reprocessed":
        await world.rerun(dead, queue="elsewhere")
    elif review in ACTIONS:
        await world.review(ACTIONS[review], dead.id)


async def goes_at(world: World, kept: Kept) -> None:
    """Wait for its last microsecond, and see it go then and not before."""
    since = 0 if kept.from_decision else LATE
    world.advance((kept.kept - since) / SECOND - MICRO)
    before = await world.letters()
    assert await prune(world, **kept.times) == PruneReply()
    assert await world.letters() == before
    world.advance(MICRO)
    assert await prune(world, **kept.times) == PruneReply(jobs=1)
    assert await world.letters() == []
    assert await prune(world, **kept.times) == PruneReply()


@pytest.mark.parametrize("review", ["pending", "reprocessed"])
@pytest.mark.parametrize("kept", UNDECIDED, ids=str)
async def test_what_awaits_a_decision_or_runs_again_is_kept_from_its_death(
    world: World, review: Review, kept: Kept
) -> None:
    """S52, S75: by the time for dead letters; a tenant's or a queue's own time comes first."""
    await decide_late(world, review)
    await goes_at(world, kept)


@pytest.mark.parametrize("review", ACTIONS)
@pytest.mark.parametrize("kept", REVIEWED, ids=str)
async def test_what_was_decided_is_kept_from_the_decision_or_the_death(
    world: World, review: Review, kept: Kept
) -> None:
    """S52, S75: as the setting says; a tenant's or a queue's own time counts from the death always."""
    await decide_late(world, review)
    await goes_at(world, kept)


async def test_the_last_decision_counts_and_no_note_does(world: World) -> None:
    """S75: resolved, an hour later ignored, then only written about."""
    dead = await bring_to(world, "resolved")
    world.advance(3_600)
    await world.review("ignore", dead.id)
    world.advance(3_600 - MICRO)
    await world.review("note", dead.id)
    assert await prune(world, dead_reviewed=HOUR) == PruneReply()
    world.advance(MICRO)
    assert await prune(world, dead_reviewed=HOUR) == PruneReply(jobs=1)


async def test_an_acknowledgement_is_no_decision(world: World) -> None:
    """S75: a letter that somebody has seen still awaits one."""
    dead = await world.die()
    await world.review("acknowledge", dead.id)
    world.advance(100)
    assert await prune(world, dead_reviewed=0) == PruneReply()
    assert await world.letter(dead.id) is not None


async def test_a_small_pass_finds_what_is_over_among_what_is_not(world: World) -> None:
    """S52: those that died first await a decision; a few that died last are over."""
    jobs = await world.enqueue_many(40)
    await world.condemn(*(job.id for job in jobs))
    for job in await world.enqueue_many(3):
        await world.condemn(job.id)
        await world.review("resolve", job.id)
    world.advance(100)
    times: dict[str, Any] = {"dead_reviewed": MINUTE}
    replies = [await prune(world, limit=2, **times) for _ in range(3)]
    assert [reply.jobs for reply in replies] == [2, 1, 0]
    assert [reply.is_partial for reply in replies] == [True, False, False]
    assert len(await world.letters(review="pending")) == 40
    assert await world.letters(review="resolved") == []


async def test_each_goes_at_its_own_time(world: World) -> None:
    """S52, S75: one pass over all reviews, tenants and queues removes exactly what is over."""
    await world.die(queue="bulk")
    other = await world.die("globex")
    await world.review("resolve", other.id)
    reviews: tuple[Review, ...] = ("resolved", "discarded", "pending", "reprocessed")
    for review in reviews:
        await bring_to(world, review)
    world.advance(60)
    times: dict[str, Any] = {"dead_reviewed": MINUTE, "dead": HOUR, "queues": {"bulk": MINUTE}}
    assert await prune(world, **times, tenants={"globex": HOUR}) == PruneReply(jobs=3)
    left = {(letter.job.tenant, letter.review.review) for letter in await world.letters()}
    assert left == {("acme", "pending"), ("acme", "reprocessed"), ("globex", "resolved")}


async def test_a_scope_prunes_its_own_letters_alone(world: World) -> None:
    """S9, S52: another tenant's stay, decided or not."""
    for tenant in ("acme", "globex"):
        dead = await world.die(tenant)
        await world.review("discard", dead.id)
    world.advance(1)
    assert await prune(world, scope=Scope("acme"), dead_reviewed=0) == PruneReply(jobs=1)
    assert [letter.job.tenant for letter in await world.letters()] == ["globex"]


async def test_a_letter_that_goes_takes_its_review_along_and_leaves_its_new_job(world: World) -> None:
    """S52, S75: its id answers like one that never was; nothing is left to follow."""
    dead = await world.die()
    new = await world.rerun(dead)
    world.advance(1)
    assert await prune(world, dead=SECOND) == PruneReply(jobs=1)
    await world.run()
    assert (await world.follow()).followed == ()
    assert (await world.review("note", dead.id))[0].answer == "not_found"
    assert await world.is_known(new.id)
