"""Results are stored with the job that succeeded, and with no other (S34)."""

from __future__ import annotations

import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import Succeeded
from tests.contract.world import World, failed, payload, ruined


@pytest.mark.parametrize("result", [None, b'{"v":1,"result":0}', payload(text="é" * 32_000)])
async def test_a_result_is_kept_with_the_job(world: World, result: bytes | None) -> None:
    """S34: byte for byte, up to 64 KB; None is not stored."""
    await world.enqueue()
    job = await world.run(Succeeded(result))
    assert (job.state, job.result, job.because) == (State.SUCCEEDED, result, None)
    assert await world.find_all() == [job]


async def test_a_result_that_cannot_be_kept_makes_the_job_dead_if_asked(world: World) -> None:
    """S34: `non_retryable`; the letter says that the work itself ran, and there is no result."""
    await world.enqueue(max_attempts=9)
    job = await world.run(ruined(message="the work ran; its result takes 70,000 bytes"))
    letter = await world.letter(job.id)
    assert letter is not None
    assert (letter.error_class, job.result) == (ErrorClass.NON_RETRYABLE, None)
    assert job.because == "failed: the work ran; its result takes 70,000 bytes"


async def test_a_result_that_was_dropped_leaves_its_job_succeeded(world: World) -> None:
    """S34: like a result whose retention is over; the attempt says why, wherever the job is found."""
    await world.enqueue(max_attempts=9)
    why = Failure(ErrorClass.NON_RETRYABLE, "ResultDropped", "result takes 70,000 bytes")
    job = await world.run(Succeeded(None, why))
    assert (job.state, job.result, job.failures, job.because) == (State.SUCCEEDED, b"", 0, None)
    assert (job.attempts[-1].outcome, job.attempts[-1].failure) == ("succeeded", why)
    assert await world.find_all() == [job]


async def test_a_result_outlives_its_retries(world: World) -> None:
    """S34: only the attempt that succeeded has one, and the history still tells of the others."""
    await world.enqueue()
    assert (await world.run(failed())).result is None
    world.advance(1)
    job = await world.run(Succeeded(b'{"v":1,"result":2}'))
    assert [one.outcome for one in job.attempts] == ["failed", "succeeded"]
    assert job.result == b'{"v":1,"result":2}'
