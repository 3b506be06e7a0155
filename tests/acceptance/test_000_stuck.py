"""Stuck jobs of descriptions A, B and D: thresholds, how often, what is recorded, dead or put back."""

from __future__ import annotations

import logging

import pytest

from fairlane import Fairlane, Queue, State
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.stuck import EVERY, TakeStuck
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.job import Claim
from fairlane.model.policy.retention import Retention
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract.claims import Renewal, RenewRequest, StuckRequest
from fairlane.store.contract.dead import DeadGetRequest
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from tests.acceptance.presets import isolation, work
from tests.acceptance.world import ALL, World


async def renew(world: World, claim: Claim) -> bool:
    """Renew as the job's worker does; say whether the claim still stands."""
    renewals = (Renewal(claim.job.id, claim.fence),)
    request = RenewRequest(scope=ALL, worker=str(claim.job.worker), lease=12 * SECOND, renewals=renewals)
    return not (await world.store.claims.renew(request)).stale


async def look(world: World) -> None:
    """Do the duty once, five seconds later: it rests until workers have reported for that long (S38)."""
    record = WorkerRecord(id="w1", host="here", pid=7, version="1", queues=("default",), slots=4)
    for seconds in (4, 1):
        await world.store.registry.register(RegisterRequest(scope=ALL, record=record, renew_every=4 * SECOND))
        world.advance(seconds)
    await TakeStuck(MachineClock(), WorkerSettings(), Retention())(world.store)


@pytest.mark.parametrize(
    ("task", "queue", "threshold"),
    [("send_fax", "critical", 120), ("email.send", "default", 600), ("full_export", "bulk", 1_200)],
)
async def test_000_st_1_a_job_is_stuck_at_its_threshold_and_not_at_nineteen_tenths(
    world: World, task: str, queue: str, threshold: int
) -> None:
    """Twice the timeout of its queue."""
    preset = await world.open(isolation(world.url))
    job = await preset[task].aenqueue()
    claim = await world.take(queue)
    world.advance(0.95 * threshold)
    assert await renew(world, claim)
    assert (await world.store.claims.take_stuck(StuckRequest(scope=ALL))).stuck == ()
    world.advance(0.05 * threshold)
    assert await renew(world, claim)
    await world.store.claims.take_stuck(StuckRequest(scope=ALL))
    assert (await job.arefresh()).state is State.DEAD


async def test_000_tm_5_a_job_at_twice_its_timeout_is_fenced_off_dead_and_critical(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Its worker is told at its next renewal, and stops the handler."""
    preset = await world.open(isolation(world.url))
    job = await preset["send_fax"].aenqueue()
    claim = await world.take("critical")
    world.advance(120)
    assert await renew(world, claim)
    await look(world)
    assert (await job.arefresh()).state is State.DEAD
    assert not await renew(world, claim)
    (told,) = [one for one in caplog.records if one.__dict__.get("event") == "job_stuck"]
    assert (told.levelno, told.__dict__["job"]) == (logging.CRITICAL, str(job.id))


def test_000_st_2_the_check_runs_at_least_every_fifteen_minutes() -> None:
    """Every thirty seconds."""
    assert EVERY <= 15 * MINUTE


async def test_000_st_3_a_stuck_job_is_recorded_once_with_its_reason(world: World) -> None:
    """One attempt, one dead letter, however often it is looked at."""
    preset = await world.open(isolation(world.url))
    job = await preset["send_fax"].aenqueue()
    claim = await world.take("critical")
    world.advance(120)
    await renew(world, claim)
    for _ in range(3):
        await look(world)
    letter = await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id))
    assert letter is not None
    assert letter.error_class is ErrorClass.STUCK
    assert "exceeded timeout threshold" in str(letter.job.because)
    assert len(letter.job.attempts) == 1


@pytest.mark.parametrize(("on_stuck", "state"), [("dead", State.DEAD), ("requeue", State.DELAYED)])
async def test_001_ec_7_a_job_at_twice_its_timeout_is_put_back_or_dead_by_setting(
    world: World, on_stuck: str, state: State
) -> None:
    """As the queue says."""
    app = Fairlane(world.url, queues=[Queue("default", timeout=60, on_stuck=on_stuck)])  # type: ignore[arg-type]
    world.apps.append(app)
    job = await app.task(name="usual")(work).aenqueue()
    claim = await world.take()
    world.advance(120)
    await renew(world, claim)
    await look(world)
    assert (await job.arefresh()).state is state


async def test_003_op_7_a_job_that_runs_for_an_hour_returns_to_pending(world: World) -> None:
    """Without any timeout."""
    app = Fairlane(world.url)
    world.apps.append(app)
    task = app.task(name="slow", timeout=None, stuck_after=3_600, on_stuck="requeue")(work)
    job = await task.aenqueue()
    claim = await world.take()
    world.advance(3_600)
    await renew(world, claim)
    await look(world)
    assert (await job.arefresh()).state is State.DELAYED
    world.advance(15)
    assert (await world.take()).job.id == job.id
