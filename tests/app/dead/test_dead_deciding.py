"""`app.dead`: acknowledge, note, resolve, ignore, discard, delete; what is kept, refused and audited."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from fairlane import DeadNote, Fairlane, JobNotFound, Task, WrongState
from fairlane.model.instants import to_datetime
from fairlane.model.journal.entries import NewEntry
from tests.app.dead.conftest import Die
from tests.app.world import World

NOBODY = UUID(int=9)


def audited(world: World) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what waits in the audit: action, subject and body."""
    book = world.oracle.journal._core.books.journals["audit"]
    return [_shown(one.entry) for one in book.pending]


def _shown(entry: NewEntry) -> tuple[str, str, dict[str, Any]]:
    return entry.kind, entry.subject, msgspec.json.decode(entry.body)


@pytest.mark.parametrize(
    ("verb", "review"), [("resolve", "resolved"), ("ignore", "ignored"), ("discard", "discarded")]
)
async def test_a_decision_is_kept_with_who_when_and_why(
    world: World, app: Fairlane, die: Die, verb: str, review: str
) -> None:
    """It acknowledges as well, and is in the audit."""
    job = await die()
    now = to_datetime(world.clock.now())
    with app.acting_as("ann@example.org"):
        letter = await getattr(app.dead, f"a{verb}")(job.id, note="bank is back")
    assert (letter.review, letter.decided_by, letter.decided_at) == (review, "ann@example.org", now)
    assert (letter.acknowledged_by, letter.acknowledged_at) == ("ann@example.org", now)
    assert letter.notes == (DeadNote("ann@example.org", now, verb, "bank is back"),)
    assert letter == await app.dead.aget(job.id)
    assert "bank is back" not in repr(letter.notes)
    ((action, subject, body),) = audited(world)
    assert (action, subject) == (f"dead.{verb}", str(job.id))
    assert (body["actor"], body["origin"], body["note"]) == ("ann@example.org", "python", "bank is back")
    assert (body["before"]["review"], body["after"]["review"]) == ("pending", review)


async def test_the_first_to_acknowledge_stays_and_notes_add_up(app: Fairlane, die: Die) -> None:
    """The letter is still pending."""
    job = await die()
    with app.acting_as("ann"):
        await app.dead.aacknowledge(job.id, note="I look at it")
    with app.acting_as("ben"):
        await app.dead.aacknowledge(job.id)
        letter = await app.dead.anote(job.id, "the bank says tomorrow")
    assert (letter.acknowledged_by, letter.review) == ("ann", "pending")
    assert [(one.who, one.action, one.text) for one in letter.notes] == [
        ("ann", "acknowledge", "I look at it"),
        ("ben", "acknowledge", ""),
        ("ben", "note", "the bank says tomorrow"),
    ]


async def test_what_is_resolved_may_be_decided_otherwise_and_what_is_discarded_may_not(
    app: Fairlane, die: Die
) -> None:
    """A note is always possible."""
    job = await die()
    await app.dead.aresolve(job.id)
    assert (await app.dead.aignore(job.id)).review == "ignored"
    await app.dead.adiscard(job.id)
    for verb in ("aacknowledge", "aresolve", "aignore", "adiscard", "areprocess"):
        with pytest.raises(WrongState) as caught:
            await getattr(app.dead, verb)(job.id)
        assert (caught.value.id, caught.value.state) == (job.id, "discarded")
        assert "what was decided about a discarded dead letter stands" in str(caught.value)
    assert (await app.dead.anote(job.id, "we know")).review == "discarded"


async def test_a_letter_is_deleted_with_its_job(world: World, app: Fairlane, die: Die) -> None:
    """Whatever was decided; for good."""
    job = await die()
    await app.dead.adiscard(job.id)
    await app.dead.adelete(job.id, note="they asked")
    assert world.stored() == []
    assert audited(world)[-1][0] == "dead.delete"
    with pytest.raises(JobNotFound):
        await app.dead.adelete(job.id)


@pytest.mark.parametrize("verb", ["aacknowledge", "aresolve", "aignore", "adiscard", "areprocess", "adelete"])
async def test_what_has_no_letter_is_refused(
    world: World, app: Fairlane, billing: Task[..., None], verb: str
) -> None:
    """A job in another state says so; nothing changes."""
    job = await billing.aenqueue(7)
    before = world.stored()
    with pytest.raises(WrongState, match="is ready: only a dead job has a dead letter"):
        await getattr(app.dead, verb)(job.id)
    with pytest.raises(JobNotFound):
        await getattr(app.dead, verb)(NOBODY)
    assert world.stored() == before
    assert audited(world) == []


@pytest.mark.parametrize("text", ["", "  ", "x" * 2_001])
async def test_a_note_must_say_something_that_can_be_kept(
    world: World, app: Fairlane, die: Die, text: str
) -> None:
    """Before the store is asked."""
    job = await die()
    world.asked.clear()
    with pytest.raises(ValueError, match="note"):
        await app.dead.anote(job.id, text)
    assert world.asked == []


def test_plain_callers_decide_the_same(app: Fairlane, billing: Task[..., None]) -> None:
    """Each method has a twin."""
    one, two, three = (billing.enqueue(n) for n in range(3))
    app.jobs.condemn(one.id, two.id, three.id, reason="wrong list")
    assert app.dead.acknowledge(one.id).acknowledged_by is not None
    assert app.dead.note(one.id, "look").notes[-1].text == "look"
    assert app.dead.resolve(one.id).review == "resolved"
    assert app.dead.ignore(two.id).review == "ignored"
    assert app.dead.discard(two.id).review == "discarded"
    app.dead.delete(two.id)
    assert app.dead.reprocess(three.id).parent_id == three.id
