"""At most one unfinished job per (tenant, task, de-duplication key) (S14)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane.model.instants import HOUR
from fairlane.model.lifecycle.states import FINISHED, HOT, State
from fairlane.model.retry.decision import Unknown
from tests.contract.world import HANDED_BACK, SNOOZED, World, failed

STARTED: dict[str, Any] = {"dedup_key": "sync", "dedup_until": "started"}


async def repeat(world: World, tenant: str = "acme", **values: Any) -> tuple[object, bool]:
    """Enqueue once more under the key; return the job that answers and whether it is new."""
    (answer,) = (await world.send(world.new(tenant, **{"dedup_key": "sync", **values}))).enqueued
    return answer.job, answer.is_created


@pytest.mark.parametrize("state", sorted(HOT))
async def test_a_repeat_gives_the_unfinished_job_and_changes_nothing(world: World, state: State) -> None:
    """S14: delayed, ready or running; neither priority, time, arguments nor tags of the repeat reach it."""
    claim = await world.bring_to(state, dedup_key="sync")
    first = await world.get(claim.job.id)
    world.advance(1)
    other: dict[str, Any] = {"priority": 50, "delay": HOUR, "payload": b'{"v":1,"arguments":{"n":2}}'}
    assert await repeat(world, tags=("again",), queue="bulk", max_attempts=1, **other) == (first, False)
    assert await world.find_all() == [first]


async def test_a_job_that_was_never_claimed_holds_its_key(world: World) -> None:
    """S14: ready at once, or delayed for long."""
    ready = await world.enqueue(dedup_key="sync")
    delayed = await world.enqueue(dedup_key="later", delay=HOUR)
    assert await repeat(world) == (ready, False)
    assert await repeat(world, dedup_key="later") == (delayed, False)


@pytest.mark.parametrize("until", ["settled", "started"])
@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_settling_frees_the_key(world: World, state: State, until: str) -> None:
    """S14: however the job ended, the next one is stored and takes the key."""
    claim = await world.bring_to(state, dedup_key="sync", dedup_until=until)
    assert (await world.census()).dedup_keys == 0
    second, is_created = await repeat(world)
    assert is_created
    assert await repeat(world) == (second, False)
    assert (await world.get(claim.job.id)).state is state


@pytest.mark.parametrize("end", ["cancel", "condemn", "expire", "lose"])
async def test_every_way_out_frees_the_key(world: World, end: str) -> None:
    """S14: also for jobs that no worker settled."""
    job = await world.enqueue(dedup_key="sync", expires_in=HOUR, at_most_once=True)
    if end == "cancel":
        await world.cancel(job.id)
    elif end == "condemn":
        await world.condemn(job.id)
    elif end == "expire":
        world.advance(3600)
        assert await world.expire() == 1
    else:
        await world.claim_one()
        await world.lose()
    assert (await world.get(job.id)).state in FINISHED
    assert (await world.census()).dedup_keys == 0
    assert (await repeat(world))[1]


@pytest.mark.parametrize("ending", [failed(), SNOOZED, HANDED_BACK, Unknown()])
async def test_an_attempt_that_is_not_the_last_keeps_the_key(world: World, ending: Any) -> None:
    """S14: a retried, snoozed or returned job is unfinished."""
    await world.enqueue(dedup_key="sync")
    job = await world.run(ending)
    assert await repeat(world) == (job, False)


async def test_a_lost_attempt_keeps_the_key(world: World) -> None:
    """S14: the job goes back to ready and is as unfinished as before."""
    job = await world.enqueue(dedup_key="sync")
    await world.claim_one()
    await world.lose()
    assert await repeat(world) == (await world.get(job.id), False)


async def test_a_key_belongs_to_one_task_of_one_tenant(world: World) -> None:
    """S14: another task or tenant has a key of its own; another queue does not."""
    first = await world.enqueue("acme", task="sync", dedup_key="k")
    assert (await repeat(world, "acme", task="other", dedup_key="k"))[1]
    assert (await repeat(world, "globex", task="sync", dedup_key="k"))[1]
    assert await repeat(world, "acme", task="sync", dedup_key="k", queue="bulk") == (first, False)
    assert (await world.census()).dedup_keys == 3


async def test_jobs_without_a_key_are_never_taken_for_each_other(world: World) -> None:
    """S14: the same task with the same arguments as often as one likes."""
    await world.enqueue_many(3)
    assert ((await world.states())[State.READY], (await world.census()).dedup_keys) == (3, 0)


async def test_a_key_until_started_is_free_from_the_first_claim_on(world: World) -> None:
    """S14: one runs and one waits; the second one's key holds for the third."""
    first = await world.enqueue(**STARTED)
    assert await repeat(world, **STARTED) == (first, False)
    await world.claim_one()
    assert (await world.census()).dedup_keys == 0
    second, is_created = await repeat(world, **STARTED)
    assert is_created
    assert await repeat(world, **STARTED) == (second, False)


async def test_the_word_of_the_job_that_holds_the_key_decides(world: World) -> None:
    """S14: a repeat cannot make a key free that its holder keeps until settled."""
    first = await world.enqueue(dedup_key="sync", dedup_until="settled")
    await world.claim_one()
    assert (await repeat(world, **STARTED))[1] is False
    assert (await world.get(first.id)).dedup_until == "settled"


@pytest.mark.parametrize("ending", [failed(), SNOOZED, HANDED_BACK, Unknown()])
async def test_a_key_until_started_is_not_taken_again_by_a_retry(world: World, ending: Any) -> None:
    """S14: the job waits again, and still another one may come in and hold the key."""
    await world.enqueue(**STARTED)
    await world.run(ending)
    assert (await world.census()).dedup_keys == 0
    second, is_created = await repeat(world, **STARTED)
    assert is_created
    assert await repeat(world, **STARTED) == (second, False)


async def test_a_key_until_started_is_not_taken_again_after_a_lost_claim(world: World) -> None:
    """S14: nor is the key of the next job freed when the first one runs again and ends."""
    first = await world.enqueue(**STARTED)
    await world.claim_one()
    await world.lose()
    second, is_created = await repeat(world, **STARTED)
    assert is_created
    claim = await world.claim_one()
    assert claim.job.id == first.id
    assert await repeat(world, **STARTED) == (second, False)
    await world.settle(claim)
    assert await repeat(world, **STARTED) == (second, False)


async def test_two_equal_keys_in_a_batch_make_one_job(world: World) -> None:
    """S14, S15: the later item is answered by the earlier one."""
    items = [world.new(dedup_key="sync"), world.new(), world.new(dedup_key="sync")]
    reply = await world.send(*items)
    answers = [(one.job.id, one.is_created) for one in reply.enqueued]
    assert answers == [(items[0].id, True), (items[1].id, True), (items[0].id, False)]


async def test_a_de_duplicated_enqueue_does_not_take_its_idempotency_key(world: World) -> None:
    """S14, S13: a key is stored with a job, and no job was; later the same key makes one."""
    first = await world.enqueue(dedup_key="sync")
    assert await repeat(world, idempotency_key="fax-7") == (first, False)
    assert (await world.census()).idempotency_keys == 0
    await world.cancel(first.id)
    second, is_created = await repeat(world, idempotency_key="fax-7")
    assert is_created
    assert getattr(second, "idempotency_key", None) == "fax-7"


async def test_repeats_at_the_same_time_make_one_job(world: World) -> None:
    """S14: in every interleaving."""
    replies = await asyncio.gather(*(world.send(world.new(dedup_key="sync")) for _ in range(12)))
    answers = [reply.enqueued[0] for reply in replies]
    assert len({answer.job.id for answer in answers}) == 1
    assert sum(answer.is_created for answer in answers) == 1
    assert (await world.states()) == {State.READY: 1}


async def test_a_repeat_at_the_time_of_the_settling_gets_the_first_or_makes_the_next(world: World) -> None:
    """S14: before the settling the first job answers, after it exactly one new one comes in."""
    await world.enqueue(dedup_key="sync")
    claim = await world.claim_one()
    sends = [world.send(world.new(dedup_key="sync")) for _ in range(8)]
    _, replies = await asyncio.gather(world.settle(claim), asyncio.gather(*sends))
    answers = [reply.enqueued[0] for reply in replies]
    assert sum(answer.is_created for answer in answers) <= 1
    assert len({answer.job.id for answer in answers} - {claim.job.id}) <= 1
    job, _ = await repeat(world)
    assert (await world.states()) == {State.SUCCEEDED: 1, State.READY: 1}
    assert job == (await world.find_all(states=frozenset({State.READY})))[0]


async def test_a_repeat_at_the_time_of_the_first_claim_gets_the_first_or_makes_the_next(world: World) -> None:
    """S14: with `started`, never two that wait under one key."""
    first = await world.enqueue(**STARTED)
    sends = [world.send(world.new(queue="other", **STARTED)) for _ in range(8)]
    claim, replies = await asyncio.gather(world.claim_one(), asyncio.gather(*sends))
    answers = [reply.enqueued[0] for reply in replies]
    assert claim.job.id == first.id
    assert sum(answer.is_created for answer in answers) <= 1
    assert len({answer.job.id for answer in answers} - {first.id}) <= 1
