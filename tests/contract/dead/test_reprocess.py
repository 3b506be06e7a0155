"""A dead letter runs again as a new, linked job, once however many ask (S53, S75)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from fairlane.model.instants import HOUR, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Mark, NewRun, ReviewNote, ReviewRecord
from fairlane.store.contract.dead import ReprocessReply
from tests.contract.world import KEPT_BY_A_NEW_RUN, World, failed, ruined

FULL: Final[dict[str, Any]] = {
    "task": "mail.send",
    "payload": '{"v":1,"arguments":{"to":"Zoë","n":1.50}}\x00'.encode(),
    "checksum": 2**32 - 1,
    "version": 3,
    "priority": 7,
    "idempotency_key": "order:4711",
    "fingerprint": b"f",
    "dedup_key": "zoë",
    "dedup_until": "started",
    "correlation_id": "c-1",
    "max_attempts": 2,
    "timeout": 60 * SECOND,
    "at_most_once": True,
    "tags": ("b", "a"),
    "metadata": b'{"ip":"::1"}',
    "created_by": "ann",
    "stuck_after": 90 * SECOND,
    "on_stuck": "requeue",
}
"""A job with a value of its own in every field that its new run keeps."""


async def review_of(world: World, dead: JobRecord) -> ReviewRecord:
    """Read the review of a dead letter."""
    letter = await world.letter(dead.id)
    assert letter is not None
    assert letter.job == dead
    return letter.review


# ── what comes of it ─────────────────────────────────────────────────────────


async def test_the_new_job_is_the_dead_one_byte_for_byte_and_fresh(world: World) -> None:
    """S53, S75: everything kept that is said to be; counters, history and expiry are new."""
    dead = await world.die(expires_in=HOUR, **FULL)
    assert all(getattr(dead, name) == value for name, value in FULL.items() if name != "fingerprint")
    now = world.advance(60)
    item = world.again(dead)
    assert await world.reprocess(item) == (
        ReprocessReply(dead.id, "reprocessed", item.job.id, "reprocessed"),
    )
    new = await world.get(item.job.id)
    assert {name: getattr(new, name) for name in KEPT_BY_A_NEW_RUN} == {
        name: getattr(dead, name) for name in KEPT_BY_A_NEW_RUN
    }
    assert (new.state, new.enqueued_at, new.run_at, new.expires_at) == (State.READY, now, now, None)
    assert (new.parent_id, new.idempotency_key) == (dead.id, "order:4711#r1")
    assert (new.attempt, new.failures, new.crashes, new.snoozes, new.fence, new.attempts) == (0,) * 5 + ((),)
    assert (await world.claim_one()).job.id == new.id


async def test_the_letter_names_the_new_job_and_who_decided(world: World) -> None:
    """S53, S75: linked both ways, acknowledged, noted; the dead job itself stays as it was."""
    dead = await world.die()
    now = world.advance(5)
    new = await world.rerun(dead)
    mark = Mark("ann", now)
    assert await review_of(world, dead) == ReviewRecord(
        "reprocessed", mark, mark, (ReviewNote("ann", now, "reprocess", ""),), NewRun(new.id)
    )
    assert [letter.job.id for letter in await world.letters(review="reprocessed")] == [dead.id]
    assert await world.letters(review="pending") == []


async def test_who_asked_and_why_is_noted_after_what_was_there(world: World) -> None:
    """S75: the first who acknowledged stays; each letter of a request gets the note."""
    dead = [await world.die() for _ in range(2)]
    await world.review("acknowledge", dead[0].id, who="ann", note="mine")
    world.advance(1)
    replies = await world.reprocess(*map(world.again, dead), who="bob", note="fixed in 4.2")
    assert [reply.answer for reply in replies] == ["reprocessed"] * 2
    first, second = [await review_of(world, one) for one in dead]
    assert [note.text for note in first.notes] == ["mine", "fixed in 4.2"]
    assert (first.acknowledged, first.decided) == (
        Mark("ann", world.now - SECOND),
        Mark("bob", world.now),
    )
    assert second.notes == (ReviewNote("bob", world.now, "reprocess", "fixed in 4.2"),)


@pytest.mark.parametrize(
    "values",
    [
        {"payload": b'{"v":1,"arguments":{"x":2}}', "checksum": 99, "version": 4},
        {"queue": "elsewhere"},
        {"idempotency_key": "my own key"},
        {"idempotency_key": None},
        {"delay": HOUR},
        {"priority": -5, "max_attempts": 1},
    ],
    ids=lambda values: next(iter(values)),
)
async def test_what_the_caller_gives_instead_is_taken(world: World, values: dict[str, Any]) -> None:
    """S53, S75: other arguments, another queue, a key of one's own, later."""
    dead = await world.die()
    new = await world.rerun(dead, **values)
    expected = {"idempotency_key": str(new.id)} if values == {"idempotency_key": None} else values
    expected = {"run_at": world.now + HOUR} if "delay" in values else expected
    assert {name: getattr(new, name) for name in expected} == expected
    assert new.parent_id == dead.id


async def test_a_key_of_the_new_job_answers_for_it_from_then_on(world: World) -> None:
    """S13, S53: as after any enqueue."""
    dead = await world.die()
    item = world.again(dead, idempotency_key="k#r1", fingerprint=b"f")
    await world.reprocess(item)
    (again,) = (await world.send(world.new(idempotency_key="k#r1", fingerprint=b"f"))).enqueued
    assert (again.job.id, again.is_created) == (item.job.id, False)


async def test_a_job_whose_dead_letter_ran_again_is_only_one_that_died_when_it_dies(world: World) -> None:
    """S53, S75: it has a letter of its own, which may run again as well."""
    first = await world.die()
    second = await world.rerun(first)
    died = await world.run(ruined())
    assert died.id == second.id
    third = await world.rerun(died)
    assert third.parent_id == second.id
    assert await world.letters(review="pending") == []
    assert (await review_of(world, first)).new_run == NewRun(second.id)


async def test_it_counts_as_waiting_like_any_other(world: World) -> None:
    """S16, S75: counters and places are those of an enqueue, in whatever queue it went."""
    dead = await world.die()
    await world.enqueue("globex")
    await world.rerun(dead)
    await world.rerun(await world.die(queue="bulk"), queue="mail")
    assert {(one.queue, one.tenant): one.waiting for one in (await world.census()).tenants} == {
        ("default", "acme"): 1,
        ("default", "globex"): 1,
        ("mail", "acme"): 1,
    }
    assert await world.tenants_served(9) == ["globex", "acme"]


# ── once ─────────────────────────────────────────────────────────────────────


async def test_who_comes_second_is_told_of_the_job_that_runs(world: World) -> None:
    """S53, S75: whatever has become of that job, and nothing changes."""
    dead = await world.die()
    new = await world.rerun(dead)
    already = ReprocessReply(dead.id, "already", new.id, "reprocessed")
    for befall in (lambda: world.run(failed()), lambda: world.cancel(new.id), world.follow):
        await befall()
        before = await world.sight()
        assert await world.reprocess(world.again(dead)) == (already,)
        assert await world.sight() == before


async def test_of_several_at_once_one_makes_a_job_and_all_get_it(world: World) -> None:
    """S53, S75: also when each has chosen a key of its own."""
    dead = await world.die()
    items = [world.again(dead, idempotency_key=f"mine-{n}") for n in range(6)]
    replies = [one for (one,) in await asyncio.gather(*map(world.reprocess, items))]
    answers = sorted(reply.answer for reply in replies)
    assert answers == ["already"] * 5 + ["reprocessed"]
    (job,) = {reply.job for reply in replies}
    (waiting,) = await world.find_all(states=frozenset({State.READY}))
    assert waiting.id == job
    record = await review_of(world, dead)
    assert record.new_run == NewRun(waiting.id)
    assert len(record.notes) == 1


async def test_many_letters_asked_for_by_two_at_once_make_one_job_each(world: World) -> None:
    """S53, S75: in opposite orders, so that they meet."""
    dead = [await world.die() for _ in range(20)]
    one, other = [world.again(job) for job in dead], [world.again(job) for job in dead[::-1]]
    first, second = await asyncio.gather(world.reprocess(*one), world.reprocess(*other))
    assert [reply.id for reply in second] == [job.id for job in dead[::-1]]
    told = {reply.id: reply.job for reply in first}
    assert {reply.id: reply.job for reply in second} == told
    assert sum(reply.answer == "reprocessed" for reply in (*first, *second)) == 20
    assert {job.id for job in await world.find_all(states=frozenset({State.READY}))} == set(told.values())


async def test_a_letter_twice_in_one_request_makes_one_job(world: World) -> None:
    """S53, S75: the second item is told of the first one's."""
    dead = await world.die()
    items = [world.again(dead, idempotency_key=key) for key in ("a", "b")]
    replies = await world.reprocess(*items)
    assert replies == (
        ReprocessReply(dead.id, "reprocessed", items[0].job.id, "reprocessed"),
        ReprocessReply(dead.id, "already", items[0].job.id, "reprocessed"),
    )
