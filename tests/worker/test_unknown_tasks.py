"""Jobs that a worker cannot run: tasks it does not know, payloads it cannot read (S33)."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from fairlane import ErrorClass, Fairlane, Job, State
from fairlane.app.enqueue.call import Call, Options
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import WakeRequest
from tests.worker.world import LONG, LeapingClock, World


@pytest.fixture
def stranger(world: World) -> Fairlane:
    """Another application on the same file, with a task that this worker does not know."""
    other = world.app()

    @other.task(name="strange")
    async def strange() -> None: ...

    return other


async def test_a_job_of_an_unknown_task_is_delayed_and_the_jobs_beside_it_go_on(
    world: World, app: Fairlane, stranger: Fairlane
) -> None:
    """Five seconds, then ten: another worker may know it, and no failure is counted."""

    @app.task(name="known")
    async def known() -> None: ...

    job = await _enqueue(stranger)
    run_with_background = await known.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert (await run_with_background.arefresh()).state is State.SUCCEEDED
    waits: list[int] = []
    for _ in range(3):
        back = await job.arefresh()
        assert (back.state, back.because, back.failures) == (State.DELAYED, "unknown_task", 0)
        record = await world.record(app, job.id)
        waits.append(round((record.run_at - record.attempts[-1].ended_at) / SECOND))
        world.ahead += (waits[-1] + 1) * SECOND
        await world.burst(app, duties=False)
    assert waits == [5, 10, 20]


async def test_a_worker_that_knows_the_task_runs_what_another_handed_back(
    world: World, app: Fairlane, stranger: Fairlane
) -> None:
    """A rolling deploy: old and new workers run at the same time."""
    job = await _enqueue(stranger)
    await world.burst(app)
    world.ahead += 6 * SECOND
    await world.burst(stranger)
    assert (await job.arefresh()).state is State.SUCCEEDED


async def test_a_task_that_no_live_worker_has_known_for_an_hour_makes_its_jobs_dead(
    world: World, app: Fairlane, stranger: Fairlane
) -> None:
    """But only after a worker has itself waited for that long."""
    clock = LeapingClock()
    job = await _enqueue(stranger)
    world.ahead += 3_601 * SECOND
    await world.burst(app)
    assert (await job.arefresh()).state is State.DELAYED
    async with world.working(app, clock=clock, settings=LONG, duties=False):
        clock.leap(3_600)
        world.ahead += 60 * SECOND
        await app.client.store.registry.wake(WakeRequest(scope=Scope.all(), queues=("default",)))
        dead = await world.ended(job)
    assert (dead.state, dead.attempts[-1].error_class) == (State.DEAD, ErrorClass.UNKNOWN_TASK)


async def test_a_payload_that_has_rotted_is_dead_at_once_with_its_bytes_kept(
    world: World, app: Fairlane
) -> None:
    """The checksum finds it; other jobs are not affected."""

    @app.task(name="note")
    async def note(text: str) -> str:
        return text

    bad = await note.using(tenant="acme").aenqueue("good")
    good = await note.using(tenant="acme").aenqueue("good")
    path = world.url.removeprefix("sqlite:///")
    db = apsw.Connection(path)
    rot = "update body set payload = cast(replace(payload, 'good', 'evil') as blob) where id = ?"
    db.execute(rot, (bad.id.bytes,))
    assert db.changes() == 1
    db.close()
    await world.burst(app)
    dead = await bad.arefresh()
    assert (dead.state, dead.attempts[-1].error_class) == (State.DEAD, ErrorClass.UNDECODABLE)
    assert b"evil" in (await world.record(app, bad.id)).payload
    assert await (await good.arefresh()).aresult() == "good"


async def test_arguments_of_an_older_version_are_upcast(world: World) -> None:
    """What cannot be brought up to date is dead at once."""
    old, new = world.app(), world.app()

    @old.task(name="mail")
    async def mail(recipient: str) -> list[str]:
        return [recipient]

    @new.task(name="mail", version=2)
    async def newer(to: list[str]) -> list[str]:
        return to

    @newer.upcast(1)
    def raised(arguments: dict[str, object]) -> dict[str, object]:
        if arguments["recipient"] == "nobody":
            raise ValueError
        return {"to": [arguments["recipient"]]}

    fine = await mail.using(tenant="acme").aenqueue("ann")
    broken = await mail.using(tenant="acme").aenqueue("nobody")
    await world.burst(new)
    assert await (await fine.arefresh()).aresult() == ["ann"]
    assert (await broken.arefresh()).attempts[-1].error_class is ErrorClass.UNDECODABLE


async def _enqueue(app: Fairlane) -> Job[Any]:
    declared = app.client.registry.find("strange")
    assert declared is not None
    (job,) = await app.aenqueue_many([Call(declared, Options(tenant="acme"), {})])
    return job
