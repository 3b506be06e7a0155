"""A repeat may replace a dead job: a new one takes over its idempotency key, linked to it (S13)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane.model.instants import DAY, SECOND
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.payload.encoding import fingerprint
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from tests.contract.world import SUCCEEDED, World, payload, ruined

WEEK = 7 * DAY / SECOND
A, B = fingerprint("noop", {"n": 1}), fingerprint("noop", {"n": 2})
KEY: dict[str, Any] = {"idempotency_key": "fax-7", "fingerprint": A}


def replacing(world: World, **values: Any) -> NewJob:
    """Return a repeat that replaces the job if it is dead."""
    return world.new(on_duplicate="replace_dead", **{**KEY, **values})


async def test_a_repeat_replaces_a_dead_job(world: World) -> None:
    """S13: with this item's own values; the dead one stays as it is, and the key is the new one's."""
    claim = await world.bring_to(State.DEAD, **KEY)
    dead = await world.get(claim.job.id)
    new = replacing(world, tags=("again",), payload=payload(n=1))
    (answer,) = (await world.send(new)).enqueued
    assert (answer.job.id, answer.is_created, answer.job.state) == (new.id, True, State.READY)
    assert (answer.job.tags, answer.job.attempt, answer.job.failures) == (("again",), 0, 0)
    assert await world.get(dead.id) == dead
    assert await world.get(new.id) == answer.job
    assert (await world.send(world.new(**KEY))).enqueued[0].job == answer.job
    assert (await world.census()).idempotency_keys == 1


@pytest.mark.parametrize("state", sorted(set(State) - {State.DEAD}))
async def test_a_job_that_is_not_dead_answers_as_ever(world: World, state: State) -> None:
    """S13: only a dead job is replaced; one that succeeded or was cancelled is not."""
    claim = await world.bring_to(state, **KEY)
    first = await world.get(claim.job.id)
    (answer,) = (await world.send(replacing(world))).enqueued
    assert (answer.job, answer.is_created) == (first, False)
    assert await world.find_all() == [first]


async def test_without_an_earlier_job_it_comes_in_like_any_other(world: World) -> None:
    """S13: the option speaks of repeats."""
    (answer,) = (await world.send(replacing(world))).enqueued
    assert answer.is_created
    assert answer.job.correlation_id == str(answer.job.id)


@pytest.mark.parametrize("correlation", [None, "order-7"])
async def test_the_two_are_found_together_by_their_correlation(world: World, correlation: str | None) -> None:
    """S13, S22: the new job keeps the dead one's, whatever the repeat brought: each leads to the other."""
    claim = await world.bring_to(State.DEAD, correlation_id=correlation, **KEY)
    dead = await world.get(claim.job.id)
    new = replacing(world, correlation_id="another")
    (answer,) = (await world.send(new)).enqueued
    assert answer.job.correlation_id == dead.correlation_id == (correlation or str(dead.id))
    assert await world.get(new.id) == answer.job
    found = await world.find_all(correlation_id=dead.correlation_id)
    assert [(job.id, job.idempotency_key) for job in found] == [(new.id, "fax-7"), (dead.id, "fax-7")]
    assert await world.find_all(correlation_id="another") == []


async def test_a_job_that_replaced_a_dead_one_is_itself_replaced_when_it_is_dead(world: World) -> None:
    """S13: as long as it lives it answers; a chain keeps one correlation."""
    ids = [(await world.bring_to(State.DEAD, **KEY)).job.id]
    for _ in range(2):
        new = replacing(world)
        await world.send(new)
        assert (await world.send(replacing(world))).enqueued[0].job.id == new.id
        await world.run(ruined())
        ids.append(new.id)
    found = await world.find_all(correlation_id=str(ids[0]))
    assert [job.id for job in found] == ids[::-1]
    assert {job.state for job in found} == {State.DEAD}


async def test_repeats_at_the_same_time_make_one_new_job(world: World) -> None:
    """S13: one of them replaces the dead job, all others get what it made, in every interleaving."""
    await world.bring_to(State.DEAD, **KEY)
    replies = await asyncio.gather(*(world.send(replacing(world)) for _ in range(12)))
    answers = [reply.enqueued[0] for reply in replies]
    assert len({answer.job.id for answer in answers}) == 1
    assert sum(answer.is_created for answer in answers) == 1
    assert await world.states() == {State.READY: 1, State.DEAD: 1}


async def test_batches_at_the_same_time_replace_each_dead_job_once(world: World) -> None:
    """S13, S12: overlapping batches sent in different orders, of dead and of new keys."""
    keys = [f"k{n}" for n in range(8)]
    for key in keys[::2]:
        await world.bring_to(State.DEAD, idempotency_key=key)
    orders = (keys, keys[::-1], keys[5:] + keys[:5])
    batches = [[replacing(world, idempotency_key=key, fingerprint=b"") for key in order] for order in orders]
    replies = await asyncio.gather(*(world.send(*batch) for batch in batches))
    for order, reply in zip(orders, replies, strict=True):
        assert [one.job.idempotency_key for one in reply.enqueued] == order
    assert sum(one.is_created for reply in replies for one in reply.enqueued) == len(keys)
    assert await world.states() == {State.READY: 8, State.DEAD: 4}


async def test_inside_a_batch_each_item_sees_those_before_it(world: World) -> None:
    """S13, S15: the first that asks replaces the dead job; those before get that one, those after the new."""
    claim = await world.bring_to(State.DEAD, **KEY)
    batch = [world.new(**KEY), replacing(world), replacing(world), world.new(**KEY)]
    reply = await world.send(*batch)
    answers = [(one.job.id, one.is_created) for one in reply.enqueued]
    new = batch[1].id
    assert answers == [(claim.job.id, False), (new, True), (new, False), (new, False)]


async def test_another_task_or_other_arguments_are_a_mismatch(world: World) -> None:
    """S13: what is replaced must mean the same."""
    claim = await world.bring_to(State.DEAD, **KEY)
    (refusal,) = (await world.send(replacing(world, fingerprint=B))).refused
    assert (refusal.kind, refusal.existing) == (RefusalKind.IDEMPOTENCY_MISMATCH, claim.job.id)
    assert (await world.send(world.new(**KEY))).enqueued[0].job.id == claim.job.id


@pytest.mark.parametrize("others", [0, 90])
async def test_a_refused_batch_leaves_the_key_with_the_dead_job(world: World, others: int) -> None:
    """S12, S15: a new job is a new job for limits; nothing of the batch stays, however large it is."""
    claim = await world.bring_to(State.DEAD, **KEY)
    await world.enqueue(queue="full")
    await world.declare(SubjectKind.QUEUE, "full", QueueRules(max_waiting=1))
    before = await world.find_all()
    more = [world.new(idempotency_key=f"more-{n}") for n in range(others)]
    reply = await world.send(replacing(world), *more, world.new(queue="full"))
    assert [one.kind for one in reply.refused] == [RefusalKind.QUEUE_FULL]
    (refusal,) = (await world.send(replacing(world, queue="full"))).refused
    assert refusal.kind is RefusalKind.QUEUE_FULL
    assert await world.find_all() == before
    assert (await world.census()).idempotency_keys == 1
    assert (await world.send(world.new(**KEY))).enqueued[0].job.id == claim.job.id
    world.advance(WEEK)
    assert (await world.prune(dead=DAY)).keys == 1


async def test_a_large_batch_replaces_dead_jobs_like_a_small_one(world: World) -> None:
    """S12, S13: with its correlation, and each once."""
    claim = await world.bring_to(State.DEAD, correlation_id="order-7", **KEY)
    batch = [*(world.new() for _ in range(200)), replacing(world), world.new(**KEY)]
    reply = await world.send(*batch)
    (*_, new, again) = reply.enqueued
    assert (new.is_created, again.is_created, new.job.id) == (True, False, again.job.id)
    assert new.job == await world.get(batch[-2].id)
    assert new.job.correlation_id == "order-7"
    assert await world.is_known(claim.job.id)


async def test_a_dead_job_that_is_no_longer_kept_is_replaced_too(world: World) -> None:
    """S13: its key says that it was dead; there is nothing to link to."""
    await world.bring_to(State.DEAD, correlation_id="order-7", **KEY)
    world.advance(DAY / SECOND)
    assert (await world.prune(dead=DAY)).jobs == 1
    (answer,) = (await world.send(replacing(world))).enqueued
    assert (answer.is_created, answer.job.correlation_id) == (True, str(answer.job.id))


async def test_the_key_lives_as_long_as_the_new_job_wants(world: World) -> None:
    """S13, S52: the dead job's time is over long before, and takes nothing from the new one."""
    await world.bring_to(State.DEAD, **KEY)
    new = replacing(world, delay=100 * DAY)
    await world.send(new)
    world.advance(2 * WEEK)
    reply = await world.prune(succeeded=DAY, dead=DAY)
    assert (reply.jobs, reply.keys) == (1, 0)
    assert (await world.send(world.new(**KEY))).enqueued[0].job.id == new.id
    world.advance(100 * DAY / SECOND)
    await world.promote()
    assert (await world.run(SUCCEEDED)).id == new.id
    world.advance(WEEK)
    assert (await world.prune(succeeded=DAY)).keys == 1


async def test_a_replacing_enqueue_that_is_repeated_is_answered_by_its_own_job(world: World) -> None:
    """S15: also when that one is dead by then."""
    await world.bring_to(State.DEAD, **KEY)
    new = replacing(world)
    await world.send(new)
    await world.run(ruined())
    (answer,) = (await world.send(new, is_repeated=True)).enqueued
    assert (answer.job.id, answer.is_created, answer.job.state) == (new.id, True, State.DEAD)
    assert await world.states() == {State.DEAD: 2}


async def test_a_job_under_the_same_dedup_key_answers_and_replaces_nothing(world: World) -> None:
    """S15, S14: de-duplication is asked after the key, and the key stays where it is."""
    claim = await world.bring_to(State.DEAD, **KEY)
    other = await world.enqueue(dedup_key="sync")
    (answer,) = (await world.send(replacing(world, dedup_key="sync"))).enqueued
    assert (answer.job, answer.is_created) == (other, False)
    assert (await world.send(world.new(**KEY))).enqueued[0].job.id == claim.job.id


async def test_the_dead_job_of_another_tenant_is_not_touched(world: World) -> None:
    """S9: the same key of another tenant is another key."""
    await world.bring_to(State.DEAD, "globex", **KEY)
    (answer,) = (await world.send(replacing(world))).enqueued
    assert answer.is_created
    assert answer.job.correlation_id == str(answer.job.id)
    assert (await world.send(world.new("globex", **KEY))).enqueued[0].job.state is State.DEAD
