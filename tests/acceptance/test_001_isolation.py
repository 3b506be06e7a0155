"""Description B, isolation in processes: chosen for each task, and a crash harms nobody else."""

from __future__ import annotations

import os

from fairlane import Job
from tests.acceptance.working import QUICK, at_work, until, until_ended
from tests.acceptance.world import World
from tests.worker.children import jobs


async def test_001_wk_5_isolation_is_chosen_per_task_and_a_crash_harms_no_other(world: World) -> None:
    """One task ends its process; its neighbours, in children and in the worker, lose no attempt."""
    app = jobs.app
    app.configuration.use(options={"--url": ("app.url", world.url)})
    try:
        async with at_work(app, settings=QUICK):
            with app.tenant("acme"):
                poison = await jobs.exit_now.aenqueue()
            with app.tenant("neighbour"):
                neighbours = await app.aenqueue_many(
                    [task.bind(n, 1) for n in range(10) for task in (jobs.add, jobs.aadd, jobs.add_here)]
                )
                isolated = await jobs.whoami.aenqueue()

            async def has_crashed() -> bool:
                return (await poison.arefresh()).failures > 0

            await until(has_crashed)
            for job in (*neighbours, isolated):
                await until_ended(job)
            ended: list[Job[object]] = [await job.arefresh() for job in neighbours]
            assert {(job.state.value, job.attempt) for job in ended} == {("succeeded", 1)}
            assert (await (await isolated.arefresh()).aresult())["pid"] != os.getpid()
            crashed = await poison.arefresh()
            assert [one.error_class for one in crashed.attempts] == ["crash"] * crashed.failures
    finally:
        await app.aclose()
