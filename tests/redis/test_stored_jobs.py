"""What is decided between two calls is written only if nothing has changed in between."""

from __future__ import annotations

from fairlane.model.lifecycle.record_changes import stopped
from fairlane.model.lifecycle.states import State
from fairlane.store.redis.records.job import StoredJob
from fairlane.store.redis.records.stored_jobs import JobUpdate, StoredJobs
from tests.contract.world import ALL, World


def stored_jobs_of(world: World) -> StoredJobs:
    """Return what rare verbs read and write jobs with."""
    return world.store.jobs._stored_jobs  # type: ignore[attr-defined,no-any-return]


async def test_a_job_that_was_claimed_meanwhile_is_left_alone(world: World) -> None:
    """S30, S36: a cancel that was decided about a ready job changes nothing in a running one."""
    job = await world.enqueue()
    stored_jobs = stored_jobs_of(world)
    now, found = await stored_jobs.get((job.id,))
    claim = await world.claim_one()
    cancelled = stopped(job, State.CANCELLED, "asked", now)
    assert await stored_jobs.write([JobUpdate(found[job.id], cancelled)], now) == []
    assert await world.settle(claim) is State.SUCCEEDED


async def test_a_job_that_changed_meanwhile_is_decided_anew(world: World) -> None:
    """S30: until what was read is still so when it is written."""
    job = await world.enqueue()
    stored_jobs = stored_jobs_of(world)
    seen: list[State] = []
    real = stored_jobs.write

    async def claimed_first(changes: list[JobUpdate], now: int) -> object:
        if len(seen) == 1:
            await world.claim_one()
        return await real(changes, now)

    stored_jobs.write = claimed_first  # type: ignore[assignment,method-assign]

    def decide(now: int, stored: StoredJob) -> JobUpdate | None:
        seen.append(stored.job.state)
        return (
            JobUpdate(stored, stopped(stored.job, State.CANCELLED, "asked", now)) if len(seen) == 1 else None
        )

    assert await stored_jobs.update(ALL, (job.id,), decide) == ()
    assert seen == [State.READY, State.RUNNING]
