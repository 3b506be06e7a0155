"""A dead letter learns how the job in its place has ended (S75)."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
import pytest

from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import fingerprint_of, reprocess_success
from fairlane.model.lifecycle.states import HOT, State
from fairlane.model.retry.decision import AttemptResult
from fairlane.model.review import NewRun, ReviewRecord
from fairlane.store.contract.dead import FollowedRun, FollowReply
from tests.contract.world import CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, World, failed, ruined

ENDINGS: Final[dict[State, AttemptResult]] = {
    State.SUCCEEDED: SUCCEEDED,
    State.DEAD: ruined(),
    State.CANCELLED: CANCELLED,
}


async def rerun(world: World, tenant: str = "acme") -> tuple[JobRecord, JobRecord]:
    """Let a job die and run again; return it and the new one."""
    dead = await world.die(tenant)
    return dead, await world.rerun(dead)


async def review_of(world: World, dead: JobRecord) -> ReviewRecord:
    """Read the review of a dead letter."""
    letter = await world.letter(dead.id)
    assert letter is not None
    assert letter.job == dead
    return letter.review


@pytest.mark.parametrize("state", ENDINGS)
async def test_the_letter_learns_how_the_new_job_ended(world: World, state: State) -> None:
    """S75: its state and when, by the store's clock; the rest of the review stays as it was."""
    dead, new = await rerun(world)
    before = await review_of(world, dead)
    ended_at = world.advance(5)
    await world.run(ENDINGS[state])
    world.advance(5)
    assert await world.follow() == FollowReply((FollowedRun(dead.id, "acme", new.id, state),))
    assert await review_of(world, dead) == msgspec.structs.replace(
        before, new_run=NewRun(new.id, state, ended_at)
    )
    told = await world.sight()
    assert await world.follow() == FollowReply()
    assert await world.sight() == told


@pytest.mark.parametrize("state", sorted(HOT))
async def test_of_a_job_that_lives_there_is_nothing_to_learn(world: World, state: State) -> None:
    """S75: waiting, running, or delayed after a failure."""
    await rerun(world)
    claim = await world.claim_one()
    if state is State.DELAYED:
        await world.settle(claim, SNOOZED)
    elif state is State.READY:
        await world.settle(claim, HANDED_BACK)
    before = await world.sight()
    assert await world.follow() == FollowReply()
    assert await world.sight() == before


async def test_a_job_that_is_gone_before_anybody_looked_is_said_to_be_gone(world: World) -> None:
    """S75: how it ended is not known, and is not asked again."""
    dead, new = await rerun(world)
    await world.run()
    await world.prune(succeeded=0)
    assert await world.follow() == FollowReply((FollowedRun(dead.id, "acme", new.id, None),))
    assert (await review_of(world, dead)).new_run == NewRun(new.id, is_gone=True)
    assert await world.follow() == FollowReply()
    assert [one.kind for one in await world.appended("audit")] == []


async def test_a_success_is_told_in_both_journals(world: World) -> None:
    """S60, S76: in the events as a fact, in the audit as what the duty saw; each once."""
    dead, new = await rerun(world)
    await world.run()
    events = await world.appended("events")
    await world.follow()
    await world.follow()
    body = f'{{"actor":"fairlane","after":{{"new_job":"{new.id}"}},"origin":"duty"}}'.encode()
    success = reprocess_success(dead, fingerprint_of(dead), new.id)
    assert (await world.appended("events"))[len(events) :] == [success]
    assert await world.appended("audit") == [
        NewEntry(kind="job_dlq_reprocess_success", tenant="acme", subject=str(dead.id), body=body)
    ]


@pytest.mark.parametrize("state", [State.DEAD, State.CANCELLED])
async def test_any_other_end_is_told_in_none(world: World, state: State) -> None:
    """S60, S76: its own death was an event already."""
    await rerun(world)
    await world.run(ENDINGS[state])
    events = await world.appended("events")
    assert len((await world.follow()).followed) == 1
    assert await world.appended("events") == events
    assert await world.appended("audit") == []


async def test_a_pass_follows_so_many_and_the_next_ones_the_others(world: World) -> None:
    """S61, S75: passes end, lose nothing and tell nothing twice, of all tenants."""
    dead = [await world.die(tenant) for tenant in ("acme", "globex") * 3]
    runs = {(await world.rerun(job)).id: job.id for job in dead}
    for _ in range(5):
        await world.run()
    seen: list[FollowedRun] = []
    for _ in range(10):
        reply = await world.follow(limit=2)
        assert len(reply.followed) <= 2
        seen += reply.followed
        if not reply.is_partial:
            break
    assert not reply.is_partial
    done = await world.find_all(states=frozenset({State.SUCCEEDED}))
    assert sorted((run.job, run.id, run.tenant) for run in seen) == sorted(
        (job.id, runs[job.id], job.tenant) for job in done
    )
    assert len(done) == 5


async def test_jobs_that_take_long_hide_none_that_have_ended(world: World) -> None:
    """S75: however many run on, repeated passes come to the one that is over."""
    dead, new = await rerun(world)
    await world.run()
    slow = [await world.die() for _ in range(7)]
    for one in slow:
        await world.rerun(one)
    seen: list[FollowedRun] = []
    for _ in range(20):
        seen += (await world.follow(limit=2)).followed
    assert seen == [FollowedRun(dead.id, "acme", new.id, State.SUCCEEDED)]


async def test_two_duties_at_once_tell_it_once(world: World) -> None:
    """S61, S76: correctness does not depend on there being one leader."""
    for _ in range(5):
        await rerun(world)
        await world.run()
    told = len(await world.appended("events"))
    replies = await asyncio.gather(world.follow(), world.follow())
    assert sum(len(reply.followed) for reply in replies) == 5
    assert len((await world.appended("events"))[told:]) == 5
    assert len(await world.appended("audit")) == 5


async def test_a_retry_of_the_new_job_is_no_end(world: World) -> None:
    """S75: it is followed to the end of its last attempt."""
    dead, _ = await rerun(world)
    await world.run(failed())
    assert await world.follow() == FollowReply()
    world.advance(1)
    await world.run()
    assert [run.state for run in (await world.follow()).followed] == [State.SUCCEEDED]
    record = await review_of(world, dead)
    assert record.new_run is not None
    assert record.new_run.settled_at == world.now


async def test_what_was_forgotten_is_followed_all_the_same(world: World) -> None:
    """S52, S75: that the new job ended is no content."""
    dead, new = await rerun(world)
    await world.run()
    await world.forget()
    (run,) = (await world.follow()).followed
    assert run == FollowedRun(dead.id, "acme", new.id, State.SUCCEEDED)
