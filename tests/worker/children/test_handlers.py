"""What a handler in a child has and can do: all that it has in the worker."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

import pytest

from fairlane import State
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import FindRequest
from tests.worker.children import jobs
from tests.worker.children.conftest import Place, descendants, is_alive, until


async def test_a_plain_and_an_async_handler_run_in_a_child(place: Place) -> None:
    """Arguments and results cross in the payload encoding."""
    async with place.working():
        assert await place.result(jobs.add.bind(1, 2)) == 3
        assert await place.result(jobs.aadd.bind(3, 4)) == 7


async def test_a_handler_in_a_child_knows_its_tenant_its_job_and_its_context(place: Place) -> None:
    """The hook around it, the ambient tenant and job, the log and the progress are there."""
    async with place.working():
        (job,) = await place.run(jobs.whoami.bind(), tenant="acme")
        found = await job.aresult()
        assert found["pid"] != os.getpid()
        assert (found["tenant"], found["hook"], found["job"]) == ("acme", "acme", str(job.id))
        assert (found["attempt"], found["thread"], found["cancelled"]) == (1, True, False)
        assert "hello from acme" in (job.attempts[0].log or "")


async def test_a_handler_in_a_child_knows_the_slot_of_its_schedule(place: Place) -> None:
    """As in the worker, and only of a job of a slot."""
    async with place.working():
        await place.app.schedules.aadd("tick", jobs.whoami.name, every=3600, tenant="acme")
        job = await place.app.schedules.arun("tick")
        assert job is not None
        found = await job.aresult(60)
        assert (found["schedule"], found["slot"]) == ("tick", job.slot)
        (plain,) = await place.run(jobs.whoami.bind())
        assert (await plain.aresult())["schedule"] is None


async def test_the_next_job_in_a_child_sees_no_context_of_the_last(place: Place) -> None:
    """One child serves many tenants, one after the other."""
    async with place.working():
        first = await place.result(jobs.whoami.bind(), tenant="acme")
        second = await place.result(jobs.whoami.bind(), tenant="umbrella")
        assert first["pid"] == second["pid"]
        assert (second["before"], second["tenant"], second["hook"]) == ("", "umbrella", "umbrella")


@pytest.mark.parametrize("task", [jobs.enqueue_child, jobs.aenqueue_child], ids=["plain", "async"])
async def test_a_job_enqueued_in_a_child_belongs_to_its_parent(place: Place, task: jobs.AnyTask) -> None:
    """Tenant, parent and correlation are inherited; the child has a store of its own."""
    async with place.working():
        (parent,) = await place.run(task.bind(4), tenant="acme")
        request = FindRequest(scope=Scope("acme"), task=jobs.add.name, limit=10)
        (found,) = (await place.app.client.store.jobs.find(request)).jobs
        assert (found.parent_id, found.correlation_id) == (parent.id, parent.correlation_id)
        assert found.tenant == "acme"


async def test_a_handler_in_a_child_succeeds_in_its_own_transaction(place: Place) -> None:
    """S63: what it raises after the commit changes nothing."""
    async with place.working():
        (job,) = await place.run(jobs.succeed_inside.bind(f"{place.folder}/fairlane.db"))
        assert (job.state.value, await job.aresult(), job.failures) == ("succeeded", "inside", 0)


async def test_code_without_a_tenant_is_refused_in_a_child(place: Place) -> None:
    """The walls of a worker stand in its children."""
    async with place.working():
        assert await place.result(jobs.without_tenant.bind()) == "OutsideTenant"


async def test_what_a_handler_raises_is_read_in_the_child(place: Place) -> None:
    """Outcomes, classifiers and tracebacks cross as results."""
    async with place.working():
        failed, final, mute = await place.run(jobs.fail.bind(), jobs.fail_for_good.bind(), jobs.mute.bind())
        assert (failed.attempts[0].error_type, failed.attempts[0].message) == ("ValueError", "it went wrong")
        assert "in fail" in (failed.attempts[0].traceback or "")
        assert (final.state.value, final.attempts[0].error_class) == ("dead", "non_retryable")
        assert mute.attempts[0].message == "<Mute without text>"
        snoozed, later = await place.enqueue(jobs.snooze.bind(), jobs.retry_later.bind())
        await place.reaches(snoozed, "delayed")
        await place.reaches(later, "delayed")
        assert (await later.arefresh()).attempts[0].message == "busy"


@pytest.mark.parametrize(
    ("ends", "outcomes", "before"),
    [
        ("raises", ["failed", "succeeded"], {"plan": "pro", "attempts": 1, "step": 99}),
        ("dies", ["failed", "succeeded"], {"plan": "pro", "attempts": 1, "step": 99}),
        ("returns", ["succeeded"], {"plan": "pro"}),
    ],
)
async def test_metadata_that_a_handler_in_a_child_writes_is_stored(
    place: Place, ends: str, outcomes: list[str], before: dict[str, Any]
) -> None:
    """S73: with its end, and with renewals, so that it outlives its process."""
    async with place.working():
        call = jobs.write_metadata.using(metadata={"plan": "pro"}).bind(ends)
        (job,) = await place.run(call)
        assert [one.outcome for one in job.attempts] == outcomes
        assert await job.aresult() == before
        assert dict(job.metadata) == {"plan": "pro", "attempts": len(outcomes), "step": 99}


async def test_a_child_that_sends_no_json_as_metadata_is_killed(place: Place) -> None:
    """S73: a job with such metadata could never be read again."""
    async with place.working():
        (job,) = await place.run(jobs.write_metadata.bind("lies"))
        assert [one.outcome for one in job.attempts] == ["failed", "succeeded"]
        assert job.attempts[0].error_class == "crash"
        assert dict(job.metadata) == {"attempts": 2, "step": 99}


async def test_a_task_s_own_function_for_its_retry_delay_runs_in_the_child(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """S26: where the exception is; what is wrong with it is logged by the worker."""
    async with place.working():
        known, odd = await place.enqueue(
            jobs.fail_for_hours.bind(is_known=True), jobs.fail_for_hours.bind(is_known=False)
        )
        for job, seconds in ((known, 3_600), (odd, 60)):
            await place.reaches(job, "delayed")
            after = await job.arefresh()
            ended_at = after.attempts[0].ended_at
            assert ended_at is not None
            assert (after.run_at - ended_at).total_seconds() == seconds
    (line,) = [one for one in caplog.records if one.__dict__.get("event") == "retry_delay_failed"]
    assert line.__dict__["job"] == str(odd.id)
    assert f"no idea in process {os.getpid()}" not in line.getMessage()
    assert "no idea in process" in line.getMessage()


async def test_a_result_that_cannot_be_stored_is_a_clear_failure(place: Place) -> None:
    """S34 in a child: the value never leaves it."""
    async with place.working():
        (job,) = await place.run(jobs.unencodable.bind())
        assert (job.state.value, job.attempts[0].error_type) == ("dead", "Unencodable")


async def test_children_end_with_their_worker(place: Place) -> None:
    """Neither a process nor a zombie is left."""
    before = set(descendants())
    async with place.working():
        pid = (await place.result(jobs.whoami.bind()))["pid"]
        await place.enqueue(jobs.wait_for_cancel.bind(place.file))
        ((busy,),) = await place.noted()
        assert is_alive(pid) or is_alive(int(busy))
    assert not is_alive(pid)
    assert not is_alive(int(busy))
    assert set(descendants()) <= before


RECYCLING = {
    "jobs": ({"child_max_jobs": 2}, 2),
    "memory": ({"child_max_memory": 2**20}, 4),
    "age": ({"child_max_age": 1}, 4),
}


@pytest.mark.parametrize("name", RECYCLING)
async def test_a_child_is_replaced_after_its_jobs_its_memory_and_its_age(place: Place, name: str) -> None:
    """`child_max_jobs`, `child_max_memory` and `child_max_age` have effect."""
    changes, processes = RECYCLING[name]
    async with place.working(**changes, children=1):
        pids = [(await place.result(jobs.whoami.bind()))["pid"] for _ in range(4)]
        assert len(set(pids)) == processes
        await until(lambda: not is_alive(pids[0]))


async def test_children_are_started_on_demand_up_to_their_number(place: Place) -> None:
    """Two long jobs have a child each; a third waits for one of them."""
    async with place.working(children=2):
        pids = {await one.aresult() for one in await place.run(*[jobs.linger.bind(1.0) for _ in range(3)])}
        assert len(pids) == 2


@pytest.mark.parametrize(("ends", "spent"), [("returns", "0.30"), ("dies", "0.60")])
async def test_what_a_handler_in_a_child_spends_is_counted(place: Place, ends: str, spent: str) -> None:
    """S113: also of a process that dies: the sum is sent with each call."""
    async with place.working():
        before = (await jobs.app.budgets.aget("children")).spent
        (job,) = await place.run(jobs.spend.bind(ends))
        assert job.state is State.SUCCEEDED
        after = (await jobs.app.budgets.aget("children")).spent
        assert after - before == Decimal(spent)


async def test_a_child_that_says_that_it_spent_less_than_nothing_is_killed(place: Place) -> None:
    """S113: the worker trusts no child."""
    async with place.working():
        (job,) = await place.run(jobs.spend.bind("lies"))
        assert [one.outcome for one in job.attempts] == ["failed", "succeeded"]
        assert job.attempts[0].error_class == "crash"
