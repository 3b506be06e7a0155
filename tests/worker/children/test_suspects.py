"""Suspects run alone, one at a time, in a child reserved for them, and take no slot (S39)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Fairlane, Job
from fairlane.model.errors import ConfigError
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ClaimRequest, QueueRequest, ReclaimRequest
from fairlane.worker.worker import WorkerRuntime
from tests.worker.children import jobs
from tests.worker.children.conftest import QUICK, Place, is_alive


async def lose(place: Place, *calls: Any, tenant: str = "acme") -> list[Job[Any]]:
    """Enqueue calls and lose their first claims, as if their worker had died."""
    stored = await place.enqueue(*calls, tenant=tenant)
    claims = place.app.client.store.claims
    request = ClaimRequest(
        scope=Scope.all(),
        worker="lost",
        lease=1,
        queue_requests=(QueueRequest("default", len(calls)),),
        total=len(calls),
    )
    assert len((await claims.claim(request)).claims) == len(calls)
    lost = 0
    while lost < len(calls):
        lost += len((await claims.reclaim(ReclaimRequest(scope=Scope.all(), limit=500))).lost)
    return stored


async def test_a_suspect_runs_in_a_child_whatever_its_isolation(place: Place) -> None:
    """And its death harms nobody: the worker here is the test itself."""
    (job,) = await lose(place, jobs.exit_here.bind())
    async with place.working():
        job = await place.reaches(job, "delayed")
        last = job.attempts[-1]
        assert (last.error_class, last.error_type) == ("crash", "fairlane.ProcessDied")
        assert await place.result(jobs.add_here.bind(1, 2)) == 3


async def test_suspects_run_one_at_a_time_and_take_no_slot(place: Place) -> None:
    """While one runs, the others wait; the healthy go on."""
    suspects = await lose(place, *[jobs.wait_for_cancel.bind(place.file) for _ in range(40)])
    async with place.working():
        await place.noted()
        for number in range(20):
            assert await place.result(jobs.add_here.bind(number, 1)) == number + 1
        assert len(place.notes()) == 1
        states = [(await one.arefresh()).state.value for one in suspects]
        assert "running" in states
    back = [await one.arefresh() for one in suspects]
    assert sorted({one.state.value for one in back}) == ["delayed", "ready"]
    records = [await place.record(one) for one in back if one.state.value == "ready"]
    assert len(records) == 39
    assert all(one.is_suspect and one.attempt == 1 for one in records), "they went back unstarted"


async def test_five_hundred_short_suspects_take_seconds(place: Place) -> None:
    """One process serves them all, one after the other."""
    suspects = await lose(place, *[jobs.brief.bind(place.file) for _ in range(500)])
    async with place.working():
        for one in suspects:
            await place.app.client.afinished(one, 20 * SECOND)
    assert len({words[0] for words in place.notes()}) == 1
    assert len(place.notes()) == 500


async def test_a_suspect_that_ends_well_is_none_any_more(place: Place) -> None:
    """It runs where it belongs the next time."""
    (job,) = await lose(place, jobs.add_here.bind(1, 2))
    async with place.working():
        await place.reaches(job, "succeeded")
    assert not (await place.record(job)).is_suspect


async def test_an_application_that_no_child_can_import_runs_suspects_in_place(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """With one warning."""
    app = Fairlane(f"sqlite:////{place.folder}/fairlane.db")
    app.task(name=jobs.add_here.name)(jobs.add_here.func)
    first, second = await lose(place, jobs.add_here.bind(1, 2), jobs.add_here.bind(3, 4))
    worker = WorkerRuntime(app, settings=QUICK, burst=True)
    await worker.run()
    assert [await one.aresult() for one in (first, second)] == [3, 7]
    warnings = [one for one in caplog.records if getattr(one, "event", "") == "suspects_in_place"]
    assert len(warnings) == 1
    await app.aclose()


async def test_a_task_that_needs_a_process_is_refused_where_no_child_can_import_it(place: Place) -> None:
    """At the start of the worker, with what to do."""
    app = Fairlane(f"sqlite:////{place.folder}/fairlane.db")
    app.task(name="isolated", isolation="process")(jobs.add.func)
    with pytest.raises(ConfigError, match="define it at the top of a module"):
        await WorkerRuntime(app, settings=QUICK).run()
    await app.aclose()


async def test_the_reserved_child_is_replaced_when_it_dies(place: Place) -> None:
    """The next suspect has another one."""
    crash, fine = await lose(place, jobs.exit_here.bind(), jobs.whoami.bind())
    async with place.working():
        await place.reaches(crash, "delayed")
        found = await (await place.reaches(fine, "succeeded")).aresult()
        assert is_alive(found["pid"])
