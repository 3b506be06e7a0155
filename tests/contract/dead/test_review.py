"""People decide about dead letters: acknowledge, note, resolve, ignore, discard (S75)."""

from __future__ import annotations

import asyncio
from typing import Final, get_args
from uuid import UUID

import msgspec
import pytest

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.review import MAX_NOTES, Mark, Review, ReviewAction, ReviewNote, ReviewRecord
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadCount, DeadCountRequest, ReviewReply
from fairlane.store.contract.request import MAX_PAGE_SIZE
from tests.contract.world import ALL, World

ACTIONS: Final[tuple[ReviewAction, ...]] = get_args(ReviewAction)
REVIEWS: Final[tuple[Review, ...]] = get_args(Review)
DECISIONS: Final[dict[ReviewAction, Review]] = {
    "resolve": "resolved",
    "ignore": "ignored",
    "discard": "discarded",
}
OPEN: Final = {"pending", "resolved", "ignored"}
NOTE: Final = "nötig\n\tsagt 'ann' \u2028 \"00\" <b>"


async def review_of(world: World, id: UUID) -> ReviewRecord:
    """Read the review of a dead letter."""
    letter = await world.letter(id)
    assert letter is not None
    return letter.review


async def bring_to(world: World, review: Review) -> JobRecord:
    """Let a job die and decide so."""
    dead = await world.die()
    if review == "reprocessed":
        await world.rerun(dead, queue="elsewhere")
    for action, found in DECISIONS.items():
        if found == review:
            assert await world.review(action, dead.id) == (ReviewReply(dead.id, "done", review),)
    return dead


@pytest.mark.parametrize("action", ACTIONS)
async def test_an_action_is_remembered_with_who_when_and_why(world: World, action: ReviewAction) -> None:
    """S1, S75: by the store's clock; the job stays as it is; only a note acknowledges nothing."""
    dead = await world.die()
    now = world.advance(5)
    result = DECISIONS.get(action, "pending")
    assert await world.review(action, dead.id, who="bob", note=NOTE) == (
        ReviewReply(dead.id, "done", result),
    )
    mark = Mark("bob", now)
    letter = await world.letter(dead.id)
    assert letter is not None
    assert letter.job == dead
    assert letter.review == ReviewRecord(
        result,
        None if action == "note" else mark,
        mark if action in DECISIONS else None,
        (ReviewNote("bob", now, action, NOTE),),
    )
    assert await world.letters() == [letter]


@pytest.mark.parametrize("before", REVIEWS)
@pytest.mark.parametrize("action", ACTIONS)
async def test_what_runs_again_or_was_discarded_is_settled(
    world: World, before: Review, action: ReviewAction
) -> None:
    """S75: each action after each review; what may not follow changes nothing, a note may always follow."""
    dead = await bring_to(world, before)
    earlier = await review_of(world, dead.id)
    world.advance(1)
    sight = await world.sight()
    (reply,) = await world.review(action, dead.id, who="bob")
    if before not in OPEN and action != "note":
        assert reply == ReviewReply(dead.id, "not_allowed", before)
        assert await world.sight() == sight
        return
    after = await review_of(world, dead.id)
    assert reply == ReviewReply(dead.id, "done", DECISIONS.get(action, before))
    assert after.review == reply.review
    assert after.notes == (*earlier.notes, ReviewNote("bob", world.now, action, ""))
    assert after.new_run == earlier.new_run
    decided = Mark("bob", world.now) if action in DECISIONS else earlier.decided
    assert after.decided == decided


async def test_the_first_to_acknowledge_stays(world: World) -> None:
    """S75: who acknowledges or decides later is noted, and takes it from nobody."""
    dead = await world.die()
    first = Mark("ann", world.now)
    await world.review("acknowledge", dead.id, who="ann")
    for action in ("acknowledge", "resolve", "ignore"):
        world.advance(1)
        await world.review(action, dead.id, who="bob")
    record = await review_of(world, dead.id)
    assert (record.acknowledged, record.decided) == (first, Mark("bob", world.now))
    assert [(note.who, note.action) for note in record.notes] == [
        ("ann", "acknowledge"),
        ("bob", "acknowledge"),
        ("bob", "resolve"),
        ("bob", "ignore"),
    ]


async def test_the_newest_hundred_notes_stay(world: World) -> None:
    """S75: the oldest goes first, and nothing else does."""
    dead = await world.die()
    await world.review("acknowledge", dead.id)
    for number in range(MAX_NOTES + 1):
        await world.review("note", dead.id, note=f"{number}")
    record = await review_of(world, dead.id)
    assert [note.text for note in record.notes] == [str(number) for number in range(1, MAX_NOTES + 1)]
    assert record.acknowledged == Mark("ann", world.now)


async def test_each_id_gets_its_own_answer_in_order(world: World) -> None:
    """S75: unknown ids and jobs that are not dead are not found; an id twice is done twice."""
    first, second = await world.die(), await world.die()
    await world.review("discard", second.id)
    living = [(await world.bring_to(state, queue=state.value)).job.id for state in State if state != "dead"]
    never = world.new().id
    ids = (second.id, never, first.id, *living, first.id)
    assert await world.review("resolve", *ids) == (
        ReviewReply(second.id, "not_allowed", "discarded"),
        ReviewReply(never, "not_found"),
        ReviewReply(first.id, "done", "resolved"),
        *(ReviewReply(id, "not_found") for id in living),
        ReviewReply(first.id, "done", "resolved"),
    )
    assert len((await review_of(world, first.id)).notes) == 2


async def test_no_ids_get_no_answers(world: World) -> None:
    """S75: asking about nothing is no error."""
    assert await world.review("resolve") == ()


async def test_too_many_ids_are_refused(world: World) -> None:
    """S75: and nothing has changed; as many as one request may have are done."""
    dead = await world.die()
    strange = [world.new().id for _ in range(MAX_PAGE_SIZE)]
    sight = await world.sight()
    with pytest.raises(ValueError, match="at most 1000 dead letters, not 1001"):
        await world.review("resolve", dead.id, *strange)
    assert await world.sight() == sight
    replies = await world.review("resolve", *strange[1:], dead.id)
    assert [reply.answer for reply in replies] == ["not_found"] * (MAX_PAGE_SIZE - 1) + ["done"]


async def test_a_letter_is_found_and_counted_by_its_review(world: World) -> None:
    """S51, S75: the old review has it no longer; acknowledged ones are found apart."""
    letters = {review: (await bring_to(world, review)).id for review in REVIEWS}
    await world.review("acknowledge", letters["pending"])
    untouched = await world.die()
    await world.review("note", untouched.id)
    for review, id in letters.items():
        found = {letter.job.id for letter in await world.letters(review=review)}
        assert found == {id, untouched.id} if review == "pending" else found == {id}
    seen = {letter.job.id for letter in await world.letters(is_acknowledged=True)}
    assert seen == set(letters.values())
    assert [one.job.id for one in await world.letters(is_acknowledged=False)] == [untouched.id]
    pending = await world.letters(is_acknowledged=True, review="pending")
    assert [one.job.id for one in pending] == [letters["pending"]]
    page = await world.store.dead.count(DeadCountRequest(scope=ALL))
    assert page.counts == tuple(
        DeadCount("acme", "default", review, 2 if review == "pending" else 1) for review in sorted(REVIEWS)
    )


async def test_a_decision_moves_the_letter_between_counts(world: World) -> None:
    """S51, S75: per tenant and queue, back and forth, without zeros."""
    first, second = await world.die(), await world.die("globex", queue="bulk")
    for action in ("resolve", "ignore", "ignore"):
        await world.review(action, first.id, second.id)
    page = await world.store.dead.count(DeadCountRequest(scope=ALL))
    assert page.counts == (
        DeadCount("acme", "default", "ignored", 1),
        DeadCount("globex", "bulk", "ignored", 1),
    )
    page = await world.store.dead.count(DeadCountRequest(scope=Scope("globex")))
    assert page.counts == (DeadCount("globex", "bulk", "ignored", 1),)


async def test_another_tenants_letter_is_not_found(world: World) -> None:
    """S9, S75: among own ones it answers like an id that never was, and stays as it is."""
    mine, other = await world.die(), await world.die("globex")
    before = await world.letter(other.id)
    assert await world.review("discard", mine.id, other.id, scope=Scope("acme")) == (
        ReviewReply(mine.id, "done", "discarded"),
        ReviewReply(other.id, "not_found"),
    )
    assert await world.letter(other.id) == before


async def test_a_review_leaves_the_job_and_its_place_alone(world: World) -> None:
    """S50, S75: order, counters and keys are those of its death."""
    jobs = [await world.die() for _ in range(3)]
    world.advance(60)
    census, counts = await world.census(), await world.counts()
    await world.review("resolve", jobs[0].id)
    assert [letter.job for letter in await world.letters()] == jobs[::-1]
    assert (await world.census(), await world.counts()) == (census, counts)


async def test_people_who_write_at_once_lose_no_note(world: World) -> None:
    """S75: each step sees the one before it."""
    dead = await world.die()
    await asyncio.gather(*(world.review("note", dead.id, who=f"w{n}", note=f"{n}") for n in range(8)))
    record = await review_of(world, dead.id)
    assert sorted((note.who, note.text) for note in record.notes) == [(f"w{n}", f"{n}") for n in range(8)]


async def test_of_a_discard_and_other_decisions_at_once_the_letter_keeps_one_story(world: World) -> None:
    """S75: once discarded it is settled, whoever was on the way."""
    dead = await world.die()
    actions: tuple[ReviewAction, ...] = ("resolve", "discard", "ignore", "resolve")
    replies = await asyncio.gather(*(world.review(action, dead.id, who=action) for action in actions))
    record = await review_of(world, dead.id)
    done = [action for action, (reply,) in zip(actions, replies, strict=True) if reply.answer == "done"]
    assert record.review == "discarded"
    assert record.decided == Mark("discard", world.now)
    assert sorted(note.action for note in record.notes) == sorted(done)
    assert record.notes[-1].action == "discard"


async def test_a_review_is_erased_with_its_tenant_but_for_the_decision(world: World) -> None:
    """S52, S75: the texts of notes go; what was decided, when, and by whom stays."""
    dead = await world.die()
    await world.review("resolve", dead.id, note="Zoe called")
    before = await review_of(world, dead.id)
    await world.forget()
    assert await review_of(world, dead.id) == msgspec.structs.replace(before, notes=())
    letter = await world.letter(dead.id)
    assert letter is not None
    assert letter.fingerprint == ""
    assert "zoe" not in repr(letter).lower()
