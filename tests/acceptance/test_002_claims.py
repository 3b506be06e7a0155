"""Description C, running and failing: one worker at a time, order, error classes, dead letters."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from fairlane import Backoff, Context, ErrorClass, Fail, Job, Retry, State
from fairlane.model.instants import SECOND, to_datetime
from fairlane.store.contract.dead import DeadGetRequest
from tests.acceptance.presets import C_RETRY, Preset, strict
from tests.acceptance.working import burst
from tests.acceptance.world import ALL, World

BOOM = RuntimeError("boom")


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description C, in force."""
    return await world.open(strict(world.url))


async def enqueued(preset: Preset, number: int = 0, **options: Any) -> Job[Any]:
    """Enqueue a job with all that strict mode requires."""
    task = preset["fetch"].using(tenant="firm-1", correlation_id="c0ffee", idempotency_key=f"key-{number}")
    return await task.using(**options).aenqueue(1, number)


def of_class(error_class: ErrorClass) -> Retry:
    """Return what a handler raises to fail with a class."""
    return Retry("no luck", error_class=error_class)


async def test_002_cm_4_a_job_is_run_by_one_worker_at_a_time(world: World, preset: Preset) -> None:
    """While it is held nobody else gets it; handed on, it has exactly one holder again."""
    job = await enqueued(preset)
    claims = await asyncio.gather(*(world.claim(1, worker=f"w{number}") for number in range(10)))
    holders = [claim for one in claims for claim in one]
    assert [claim.job.id for claim in holders] == [job.id]
    assert await world.claim(1, worker="late") == []


async def test_002_tr_5_a_claim_skips_what_others_hold(world: World, preset: Preset) -> None:
    """It does not wait for them: it gets the next."""
    first, second = await enqueued(preset, 1), await enqueued(preset, 2)
    held = await world.take(worker="w1")
    reply = await asyncio.wait_for(world.claim(5, worker="w2"), timeout=60)
    assert (held.job.id, [claim.job.id for claim in reply]) == (first.id, [second.id])


async def test_002_tr_7_several_workers_claim_different_jobs(world: World, preset: Preset) -> None:
    """All that there are, each once."""
    jobs = {(await enqueued(preset, number)).id for number in range(20)}
    rounds = await asyncio.gather(*(world.claim(4, worker=f"w{number}") for number in range(5)))
    taken = [claim.job.id for claims in rounds for claim in claims]
    assert len(taken) == 20
    assert set(taken) == jobs


async def test_002_tr_8_the_same_job_is_never_claimed_twice(world: World, preset: Preset) -> None:
    """Neither while it runs nor after it has ended."""
    await enqueued(preset)
    assert len(await world.claim(10, worker="w1") + await world.claim(10, worker="w2")) == 1
    await enqueued(preset, 1)
    await world.succeed()
    assert await world.claim(10, worker="w3") == []


async def test_002_cm_6_what_cannot_succeed_goes_to_the_dead_letters(world: World, preset: Preset) -> None:
    """What is not to be retried, and what is exhausted."""
    hopeless = await enqueued(preset, 1)
    assert await world.fail(Fail("no such connection")) is State.DEAD
    tired = await enqueued(preset, 2, max_attempts=2)
    await world.fail_until_dead(BOOM)
    letters = [await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id)) for job in (hopeless, tired)]
    assert [letter and letter.error_class for letter in letters] == ["non_retryable", "retryable"]


async def test_002_tr_9_non_retryable_is_dead_at_once(world: World, preset: Preset) -> None:
    """One attempt, four of five left."""
    job = await enqueued(preset)
    assert await world.fail(of_class(ErrorClass.NON_RETRYABLE)) is State.DEAD
    ended = await job.arefresh()
    assert (ended.attempt, ended.max_attempts) == (1, 5)


async def test_002_tr_10_a_job_is_dead_at_the_fifth_failed_attempt(world: World, preset: Preset) -> None:
    """Five are the default; the fourth is retried."""
    job = await enqueued(preset)
    assert len(await world.fail_until_dead(BOOM)) == 4
    ended = await job.arefresh()
    assert (ended.state, ended.attempt, ended.failures) == (State.DEAD, 5, 5)


def test_002_cm_11_the_four_error_classes_are_there() -> None:
    """Together with ours; the set is closed."""
    theirs = {"transient", "retryable", "non_retryable", "rate_limited"}
    ours = {"timeout", "crash", "stuck", "budget", "undecodable", "unknown_task"}
    assert {one.value for one in ErrorClass} == theirs | ours


async def test_002_pl_5_smaller_priorities_go_first_then_the_scheduled_time(
    world: World, preset: Preset
) -> None:
    """Two is normal; equal priorities go by their time."""
    late = await enqueued(preset, 1, priority=3)
    normal = await enqueued(preset, 2)
    normal_later = await enqueued(preset, 3, run_at=to_datetime(world.now + 2 * SECOND))
    urgent = await enqueued(preset, 4, priority=1)
    world.advance(3)
    assert normal.priority == 2
    order = [claim.job.id for claim in await world.claim(4)]
    assert order == [urgent.id, normal.id, normal_later.id, late.id]


async def test_002_pl_6_a_job_does_not_start_before_its_scheduled_time(world: World, preset: Preset) -> None:
    """At its time it does."""
    at: datetime = to_datetime(world.now) + timedelta(minutes=10)
    job = await enqueued(preset, run_at=at)
    world.advance(599.999999)
    assert await world.claim(1) == []
    world.advance(0.000001)
    assert (await world.take()).job.id == job.id


async def test_002_pl_7_the_result_is_stored(world: World, preset: Preset) -> None:
    """As the handler returned it."""
    job = await enqueued(preset)
    await world.succeed({"fetched_count": 10})
    assert await (await job.arefresh()).aresult() == {"fetched_count": 10}


def spread(backoff: Backoff, failures: int) -> tuple[float, float]:
    """Return the shortest and the longest delay."""
    return backoff.delay(failures, 0.0).total_seconds(), backoff.delay(failures, 1.0).total_seconds()


@pytest.mark.parametrize("error_class", [ErrorClass.TRANSIENT, ErrorClass.RETRYABLE])
async def test_002_rt_1_transient_and_retryable_wait_2_4_8_16_seconds(
    world: World, preset: Preset, error_class: ErrorClass
) -> None:
    """As they are met in the store; the fifth would be 32; each spread by a fifth either way."""
    await enqueued(preset)
    assert await world.fail_until_dead(of_class(error_class)) == [2, 4, 8, 16]
    for failures, middle in enumerate([2, 4, 8, 16, 32], start=1):
        assert spread(C_RETRY[error_class], failures) == pytest.approx((0.8 * middle, 1.2 * middle))


async def test_002_rt_2_rate_limited_waits_60_120_240_seconds(world: World, preset: Preset) -> None:
    """Doubling from a minute, up to the cap; the middle of the last is what the cap leaves of its jitter."""
    await enqueued(preset)
    waits = await world.fail_until_dead(of_class(ErrorClass.RATE_LIMITED))
    assert waits[:2] == [60, 120]
    assert waits[2:] == [pytest.approx(wait) for wait in ((0.8 * 240 + 288) / 2, (0.8 * 300 + 300) / 2)]


@pytest.mark.parametrize("error_class", C_RETRY)
def test_002_rt_3_no_delay_is_above_300_seconds(error_class: ErrorClass) -> None:
    """However many failures there were."""
    for failures in range(1, 60):
        assert spread(C_RETRY[error_class], failures)[1] <= 300


async def test_002_rt_4_non_retryable_has_no_delay_and_no_second_attempt(
    world: World, preset: Preset
) -> None:
    """It is never handed out again."""
    await enqueued(preset)
    assert await world.fail_until_dead(of_class(ErrorClass.NON_RETRYABLE)) == []
    world.advance(86_400)
    assert await world.claim(1) == []


async def test_002_dl_1_a_dead_letter_keeps_payload_history_creation_and_correlation(
    world: World, preset: Preset
) -> None:
    """Byte for byte what was enqueued."""
    job = await enqueued(preset, max_attempts=2)
    payload = (await world.record(job)).payload
    world.advance(5)
    await world.fail_until_dead(BOOM)
    letter = await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id))
    assert letter is not None
    assert letter.job.payload == payload
    assert to_datetime(letter.job.enqueued_at) == job.enqueued_at
    assert letter.job.correlation_id == "c0ffee"
    assert [one.number for one in letter.job.attempts] == [1, 2]


async def test_002_cm_3_the_version_of_a_payload_is_stored_and_older_ones_are_upcast(world: World) -> None:
    """What is stored keeps its version, which the handler sees, with the arguments of its own."""
    old = world.app()

    async def first(message_id: int) -> None:
        """Version one."""

    job = await old.task(name="fetch", version=1)(first).aenqueue(789)
    new = world.app()
    seen: list[tuple[int, int]] = []

    async def second(ctx: Context, message: int) -> None:
        seen.append((ctx.version, message))

    fetch = new.task(name="fetch", version=2)(second)
    fetch.upcast(1)(lambda arguments: {"message": arguments["message_id"]})
    newer = await fetch.aenqueue(790)
    await burst(new)
    assert seen == [(1, 789), (2, 790)]
    assert [(await world.record(one)).version for one in (job, newer)] == [1, 2]
