"""A dead letter is deleted for good, with its job and nothing else (S75)."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest

from fairlane.model.instants import HOUR, SECOND
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.review import Review
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeadCount, DeadCountRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.upkeep import PruneReply
from tests.contract.dead.test_review import bring_to
from tests.contract.world import ALL, World


@pytest.mark.parametrize("review", get_args(Review))
async def test_a_deleted_letter_is_gone_whatever_was_decided(world: World, review: Review) -> None:
    """S50, S75: from every reading and every count; a second call finds nothing."""
    kept = await world.die()
    dead = await bring_to(world, review)
    assert await world.delete(dead.id) == (dead.id,)
    assert await world.letter(dead.id) is None
    assert not await world.is_known(dead.id)
    assert [letter.job.id for letter in await world.letters()] == [kept.id]
    assert dead.id not in {job.id for job in await world.find_all()}
    page = await world.store.dead.count(DeadCountRequest(scope=ALL))
    assert page.counts == (DeadCount("acme", "default", "pending", 1),)
    assert (await world.states())[State.DEAD] == 1
    before = await world.sight()
    assert await world.delete(dead.id) == ()
    assert await world.sight() == before


async def test_only_dead_letters_are_deleted(world: World) -> None:
    """S75: jobs that live or ended otherwise, and unknown ids, are left out of the reply and alone."""
    jobs = [(await world.bring_to(state, queue=state.value)).job for state in State if state != "dead"]
    first, second = await world.die(), await world.die()
    others = await world.find_all(states=frozenset(State) - {State.DEAD})
    ids = [world.new().id, second.id, *(job.id for job in jobs), first.id, second.id]
    assert await world.delete(*ids) == (second.id, first.id)
    assert await world.find_all() == others


async def test_its_idempotency_key_stays_for_as_long_as_it_would_have(world: World) -> None:
    """S13, S75: a repeat gets a tombstone of the deleted job, until the key's own time is over."""
    dead = await world.die(idempotency_key="k", fingerprint=b"f")
    world.advance(10)
    await world.delete(dead.id)
    assert (await world.census()).idempotency_keys == 1
    (again,) = (await world.send(world.new(idempotency_key="k", fingerprint=b"f"))).enqueued
    told = again.job.id, again.job.state, again.job.settled_at, again.is_created
    assert told == (dead.id, State.DEAD, dead.settled_at, False)
    (other,) = (await world.send(world.new(idempotency_key="k", fingerprint=b"g"))).refused
    assert other.kind is RefusalKind.IDEMPOTENCY_MISMATCH
    world.advance(3_590 - 0.000_001)
    assert await world.prune(keys=HOUR) == PruneReply()
    world.advance(0.000_001)
    assert await world.prune(keys=HOUR) == PruneReply(keys=1)
    assert (await world.send(world.new(idempotency_key="k", fingerprint=b"g"))).enqueued[0].is_created


async def test_the_job_in_its_place_goes_on(world: World) -> None:
    """S75: its parent's id stays with it; nobody is told how it ends."""
    dead = await world.die()
    new = await world.rerun(dead)
    await world.delete(dead.id)
    assert await world.get(new.id) == new
    assert (await world.run()).parent_id == dead.id
    told = await world.appended("events")
    assert (await world.follow()).followed == ()
    assert await world.appended("events") == told


async def test_a_letter_whose_new_job_was_deleted_in_turn_learns_it(world: World) -> None:
    """S75: the new job died, and its own letter was deleted before anybody looked."""
    dead = await world.die()
    new = await world.rerun(dead)
    await world.condemn(new.id)
    await world.delete(new.id)
    (run,) = (await world.follow()).followed
    assert (run.id, run.job, run.state) == (dead.id, new.id, None)


async def test_another_tenants_letter_stays(world: World) -> None:
    """S9, S75: its id is not answered, among own ones that are deleted."""
    mine, other = await world.die(), await world.die("globex")
    assert await world.delete(other.id, mine.id, scope=Scope("acme")) == (mine.id,)
    assert [letter.job for letter in await world.letters()] == [other]


async def test_of_two_who_delete_at_once_one_did_it(world: World) -> None:
    """S75: each letter is deleted by one call."""
    dead = [(await world.die()).id for _ in range(10)]
    replies = await asyncio.gather(world.delete(*dead), world.delete(*dead[::-1]))
    assert sorted(id for reply in replies for id in reply) == sorted(dead)
    assert await world.letters() == []


async def test_deleting_and_running_again_at_once_leaves_both_true(world: World) -> None:
    """S53, S75: whichever comes first, no job is made for a letter that was gone."""
    dead = [await world.die() for _ in range(10)]
    items = [world.again(job) for job in dead]
    gone, replies = await asyncio.gather(
        world.delete(*(job.id for job in dead[::-1])), world.reprocess(*items)
    )
    assert sorted(gone) == sorted(job.id for job in dead)
    made = {reply.job for reply in replies if reply.answer == "reprocessed"}
    assert {reply.answer for reply in replies} <= {"reprocessed", "not_found"}
    assert {job.id for job in await world.find_all()} == made


async def test_a_request_names_so_many_and_no_more(world: World) -> None:
    """S75: one more is refused, and nothing is deleted; none at all is no error."""
    jobs = await world.enqueue_many(MAX_PAGE_SIZE)
    ids = [job.id for job in jobs]
    await world.condemn(*ids)
    with pytest.raises(ValueError, match="at most 1000 dead letters, not 1001"):
        await world.delete(*ids, world.new().id)
    assert len(await world.letters(page=500)) == MAX_PAGE_SIZE
    assert await world.delete(*ids) == tuple(ids)
    assert await world.counts() == {}
    assert await world.delete() == ()


async def test_a_dead_job_whose_key_another_one_took_leaves_it_there(world: World) -> None:
    """S13, S75: the key is that of the job that replaced it."""
    dead = await world.die(idempotency_key="k", fingerprint=b"f")
    new = await world.enqueue(idempotency_key="k", fingerprint=b"f", on_duplicate="replace_dead")
    await world.delete(dead.id)
    world.advance(SECOND)
    assert await world.prune(keys=0) == PruneReply()
    (again,) = (await world.send(world.new(idempotency_key="k", fingerprint=b"f"))).enqueued
    assert (again.job.id, again.is_created) == (new.id, False)
