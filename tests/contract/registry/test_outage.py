"""The newest heartbeats of all workers, and the pause of reclaiming after an outage of the store (S38)."""

from __future__ import annotations

import pytest

from fairlane.model.instants import HOUR, SECOND
from fairlane.model.lifecycle.outage import rests_until
from fairlane.store.contract.claims import ReclaimReply
from fairlane.store.contract.registry import StoreStatus
from tests.contract.world import LEASE, MICRO, World

RENEW = 4 * SECOND


async def test_before_the_first_heartbeat_there_is_no_pulse(world: World) -> None:
    """S38: nobody was ever heard of, and an unknown worker's word does not count."""
    assert await world.status() == StoreStatus(world.now, None, None)
    assert await world.beat("stranger") is False
    assert await world.status() == StoreStatus(world.now, None, None)


async def test_the_pulse_follows_the_newest_heartbeat_of_any_worker(world: World) -> None:
    """S38: one worker that lives is enough; then the others are dead, not the store away."""
    start = world.now
    await world.register("w1")
    await world.register("w2")
    assert await world.status() == StoreStatus(start, start, start)
    for _ in range(4):
        now = world.advance(4)
        await world.beat("w2")
        assert await world.status() == StoreStatus(now, now, start)
    world.advance(1)
    assert await world.status() == StoreStatus(now + SECOND, now, start)


@pytest.mark.parametrize(
    ("silence", "renew_every", "is_gap"),
    [(6, RENEW, False), (6 + MICRO, RENEW, True), (60, RENEW, True), (60, 58 * SECOND, False)],
    ids=["a renewal and 2 s", "a microsecond longer", "an outage", "a slow worker"],
)
async def test_a_heartbeat_after_a_silence_of_all_begins_a_new_pulse(
    world: World, silence: float, renew_every: int, *, is_gap: bool
) -> None:
    """S38: longer than its renew interval and two seconds, whether it registers or beats."""
    start = world.now
    await world.register("w1", renew_every=renew_every)
    second = world.advance(silence)
    await world.beat("w1", renew_every)
    assert await world.status() == StoreStatus(second, second, second if is_gap else start)
    third = world.advance(silence)
    await world.register("w2", renew_every=renew_every)
    assert await world.status() == StoreStatus(third, third, third if is_gap else start)


async def _rests_until(world: World) -> int | None:
    status = await world.status()
    return rests_until(status.now, status.beat_at, status.resumed_at, RENEW)


async def test_a_killed_workers_job_runs_elsewhere_within_eighteen_seconds(world: World) -> None:
    """S38: the other worker's heartbeats go on, so that nothing rests. A second a step."""
    await world.register("w1")
    await world.register("w2")
    await world.enqueue()
    claim = await world.claim_one(worker="w1")
    for second in range(1, 19):
        world.advance(1)
        if second % 4 == 0:
            await world.beat("w2")
        if await _rests_until(world) is None and (await world.reclaim()).lost:
            break
    again = await world.claim_one(worker="w2")
    assert (again.job.id, again.job.attempt) == (claim.job.id, 2)
    assert world.now - claim.job.started_at <= 18 * SECOND  # type: ignore[operator]


async def test_an_outage_reruns_nothing_whose_worker_reports_back_in_time(world: World) -> None:
    """S38: all were silent, so reclaiming rests until each had the time to renew."""
    await world.register("w1")
    await world.register("w2")
    await world.enqueue_many(2)
    (first,) = await world.claim(1, worker="w1")
    (second,) = await world.claim(1, worker="w2")
    world.advance(HOUR / SECOND)
    assert await _rests_until(world) is not None
    back = world.now
    await world.beat("w1")
    await world.renew(first, worker="w1")
    assert await _rests_until(world) == back + RENEW + SECOND
    world.advance(4)
    await world.beat("w2")
    await world.renew(second, worker="w2")
    world.advance(1)
    assert await _rests_until(world) is None
    assert await world.reclaim() == ReclaimReply()
    world.advance(LEASE / SECOND)
    assert len((await world.reclaim()).lost) == 2
