"""`app.jobs.fail` and `take_back`: what becomes of a running job, what they refuse, and how (S72)."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import pytest

from fairlane import Backoff, ErrorClass, Fairlane, Job, JobNotFound, Queue, State, WrongState
from fairlane.model.instants import SECOND
from fairlane.store.contract.claims import RevokeRequest
from tests.app.world import World, note

NOBODY = UUID(int=7)


async def running(world: World, app: Fairlane, **options: Any) -> Job[Any]:
    """Enqueue a job of a new task, and claim it."""
    task = app.task(name="bill", **options)(note).using(tenant="acme")
    await task.aenqueue()
    claim = await world.claim()
    return await app.jobs.aget(claim.job.id)


def asked(world: World) -> RevokeRequest:
    """Return the one request of that kind."""
    (request,) = [one[1] for one in world.asked if one[0] == "revoke"]
    return request  # type: ignore[no-any-return]


# ── fail ─────────────────────────────────────────────────────────────────────


async def test_a_failed_job_is_tried_again_after_the_delay_of_its_task(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """S26, S72: as its worker would delay it; who did it and why is logged."""
    job = await running(world, app, retry=Backoff.delays(90))
    with caplog.at_level(logging.INFO, "fairlane"):
        assert await app.jobs.afail(job.id, retry=True, reason="the bank is closed") is State.DELAYED
    stored = world.one()
    assert (stored.run_at, stored.failures) == (world.clock.now() + 90 * SECOND, 1)
    shown = await job.arefresh()
    assert (shown.attempts[-1].outcome, shown.attempts[-1].message) == ("failed", "the bank is closed")
    (line,) = [record for record in caplog.records if getattr(record, "event", "") == "job_steered"]
    assert (line.verb, line.note) == ("failed", "the bank is closed")  # type: ignore[attr-defined]
    assert asked(world).who == line.who != ""  # type: ignore[attr-defined]


async def test_the_configuration_overrules_the_delay_of_a_task(world: World) -> None:
    """As for its worker."""
    config = {"tasks": {"bill": {"retry": {"kind": "delays", "delays": [40]}}}}
    app = world.app(config=config)
    job = await running(world, app, retry=Backoff.delays(90))
    await app.jobs.afail(job.id, retry=True, reason="x")
    assert asked(world).delay == 40 * SECOND


async def test_the_delay_of_an_unknown_task_is_that_of_its_queue(world: World) -> None:
    """A command line without the application knows the file alone."""
    app = world.app(queues=[Queue("default", retry={ErrorClass.RETRYABLE: Backoff.delays(50)})])
    job = await running(world, world.app())
    await app.jobs.afail(job.id, retry=True, reason="x")
    assert asked(world).delay == 50 * SECOND


async def test_without_any_policy_the_delay_is_the_default_and_grows(world: World, app: Fairlane) -> None:
    """S26: preset C, for the failures so far and this one."""
    job = await running(world, app)
    await app.jobs.afail(job.id, retry=True, reason="x")
    assert 1.6 * SECOND <= asked(world).delay <= 2.4 * SECOND
    world.clock.advance(3)
    await world.claim()
    world.asked.clear()
    await app.jobs.afail(job.id, retry=True, reason="x")
    assert 3.2 * SECOND <= asked(world).delay <= 4.8 * SECOND


async def test_a_failed_job_may_be_dead_at_once(world: World, app: Fairlane) -> None:
    """Also while it waits: then it is condemned."""
    job = await running(world, app)
    assert await app.jobs.afail(job.id, retry=False, reason="no such bank") is State.DEAD
    assert world.one().because == "failed: no such bank"
    second = await app.task(name="wait")(note).using(tenant="acme").aenqueue()
    assert await app.jobs.afail(second.id, retry=False, reason="no such bank") is State.DEAD
    assert (await second.arefresh()).because == "condemned: no such bank"


@pytest.mark.parametrize(
    ("state", "retry", "words"),
    [
        (State.READY, True, "is ready: only a running job can be tried again; wait, or fail it with retry=F"),
        (State.SUCCEEDED, True, "is succeeded: it has ended; enqueue a new job, or run it again"),
        (State.DEAD, False, "is dead: it has ended"),
    ],
)
async def test_only_a_running_job_can_fail(
    world: World, app: Fairlane, state: State, *, retry: bool, words: str
) -> None:
    """The error says what to do instead, and nothing changes."""
    job = await app.task(name="bill")(note).using(tenant="acme").aenqueue()
    if state is State.SUCCEEDED:
        await world.succeed()
    elif state is State.DEAD:
        await app.jobs.acondemn(job.id, reason="x")
    before = world.one()
    with pytest.raises(WrongState) as caught:
        await app.jobs.afail(job.id, retry=retry, reason="x")
    assert words in str(caught.value)
    assert (caught.value.state, world.one()) == (state.value, before)


# ── take back ────────────────────────────────────────────────────────────────


async def test_a_job_that_is_taken_back_is_ready(
    world: World, app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """No failure is counted; who did it and why is logged."""
    job = await running(world, app)
    with caplog.at_level(logging.INFO, "fairlane"):
        assert await app.jobs.atake_back(job.id, reason="wrong host") is State.READY
    shown = await job.arefresh()
    assert (shown.failures, shown.attempts[-1].outcome, shown.attempts[-1].message) == (
        0,
        "returned",
        "wrong host",
    )
    (line,) = [record for record in caplog.records if getattr(record, "event", "") == "job_steered"]
    assert (line.verb, line.note) == ("taken back", "wrong host")  # type: ignore[attr-defined]


async def test_what_waits_is_not_taken_back(world: World, app: Fairlane) -> None:
    """It is where it would go."""
    job = await app.task(name="bill")(note).using(tenant="acme").aenqueue()
    with pytest.raises(
        WrongState, match="is ready: only a running job can be taken back; wait until it runs"
    ):
        await app.jobs.atake_back(job.id, reason="x")
    assert world.one().attempts == ()


# ── both ─────────────────────────────────────────────────────────────────────


async def test_what_runs_at_most_once_does_not_run_again(world: World, app: Fairlane) -> None:
    """S63: dead is all that it can be."""
    job = await running(world, app, at_most_once=True)
    words = "is running: its task runs at most once; let it run, or fail it with retry=False"
    with pytest.raises(WrongState, match=words):
        await app.jobs.afail(job.id, retry=True, reason="x")
    with pytest.raises(WrongState, match=words):
        await app.jobs.atake_back(job.id, reason="x")
    assert await app.jobs.afail(job.id, retry=False, reason="x") is State.DEAD


async def test_a_job_of_nobody_or_of_another_tenant_is_not_found(world: World, app: Fairlane) -> None:
    """S9: both answer alike, and the job runs on."""
    job = await running(world, app)
    with app.tenant("globex"):
        for id in (NOBODY, job.id):
            for call in (
                app.jobs.afail(id, retry=True, reason="x"),
                app.jobs.afail(id, retry=False, reason="x"),
                app.jobs.atake_back(id, reason="x"),
            ):
                with pytest.raises(JobNotFound):
                    await call
    assert world.one().state is State.RUNNING


def test_wrong_values_are_refused_before_the_store_is_asked(world: World, app: Fairlane) -> None:
    """A blank reason, and what is neither True nor False."""
    with pytest.raises(ValueError, match="reason is empty"):
        app.jobs.fail(NOBODY, retry=True, reason=" ")
    with pytest.raises(ValueError, match="reason is empty"):
        app.jobs.take_back(NOBODY, reason="")
    with pytest.raises(ValueError, match="retry: is of type str; use True or False"):
        app.jobs.fail(NOBODY, retry="no", reason="x")  # type: ignore[arg-type]
    assert world.asked == []
