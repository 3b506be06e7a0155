"""Description A at work: slots of each queue, what is logged, and the identity that a job acts with."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from fairlane import (
    Backoff,
    Cancel,
    Context,
    ErrorClass,
    Fail,
    Fairlane,
    Job,
    JobNotFound,
    Lane,
    Queue,
    State,
    Task,
    TenantMismatch,
    current_tenant,
)
from tests.acceptance.presets import A_LANES, A_QUEUES, work
from tests.acceptance.working import Stage, at_work, burst, until
from tests.acceptance.world import World

SLOTS = {"critical": 4, "default": 8, "bulk": 2}


def staged(world: World, stage: Stage) -> dict[str, Task[..., Any]]:
    """Return the queues and lanes of description A with a task of each queue on the stage."""
    app = world.app(queues=[Queue(queue.name) for queue in A_QUEUES], lanes=A_LANES)
    return {name: app.task(name=name, queue=name)(stage.handler(name)) for name in SLOTS}


async def test_000_qc_3_each_queue_fills_its_slots_and_no_more(world: World, stage: Stage) -> None:
    """Four, eight and two at once, with plenty waiting."""
    tasks = staged(world, stage)
    for task in tasks.values():
        await world.fill(task, 20)
    async with at_work(world.apps[-1]):
        await until(lambda: stage.present.total() == 14)
        for name in SLOTS:
            stage.let_go(name)
        await until(lambda: len(stage.ended) == 60)
    assert stage.most == SLOTS


async def test_000_tm_7_critical_jobs_start_whatever_the_other_queues_do(world: World, stage: Stage) -> None:
    """Bulk and default are full to the last slot, with a backlog; four critical jobs start at once."""
    tasks = staged(world, stage)
    await world.fill(tasks["default"], 30)
    await world.fill(tasks["bulk"], 30)
    async with at_work(world.apps[-1]):
        await until(lambda: (stage.present["default"], stage.present["bulk"]) == (8, 2))
        await world.fill(tasks["critical"], 4)
        await until(lambda: stage.present["critical"] == 4)
        for name in SLOTS:
            stage.let_go(name)
        await until(lambda: len(stage.ended) == 64)


async def test_000_tm_7_critical_jobs_go_on_when_their_own_queue_is_full(world: World, stage: Stage) -> None:
    """As one ends the next begins."""
    critical = staged(world, stage)["critical"]
    await world.apps[-1].aenqueue_many([critical.bind(number) for number in range(10)])
    async with at_work(world.apps[-1]):
        for number in range(6):
            await until(lambda: stage.present["critical"] == 4)
            stage.let_go("critical", number)
            await until(partial(stage.has_ended, "critical", number))
        stage.let_go("critical")
        await until(lambda: stage.count("critical") == 10)


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    """Return the log records of one kind."""
    return [record for record in caplog.records if vars(record).get("event") == event]


async def test_000_rt_2_a_retry_is_logged_as_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """With the job, its attempt, how many there may be, and the delay."""
    app = world.app()
    job = await app.task(name="bad", retry=Backoff.delays(10, 30))(lambda: 1 / 0).aenqueue()
    await burst(app)
    world.advance(10)
    await burst(app)
    records = told(caplog, "job_failed")
    assert [record.levelno for record in records] == [logging.WARNING] * 2
    assert [(vars(one)["job"], vars(one)["attempt"], vars(one)["delay_s"]) for one in records] == [
        (str(job.id), 1, 10),
        (str(job.id), 2, 30),
    ]
    assert [(vars(one)["failures"], vars(one)["max_attempts"]) for one in records] == [(1, 3), (2, 3)]
    assert "now delayed for 30.0 s, failure 2 of 3, retry: " in records[-1].getMessage()


async def test_000_dl_8_a_dead_job_is_logged_as_an_error_with_its_id(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Once."""
    app = world.app()
    job = await app.task(name="bad", max_attempts=1)(lambda: 1 / 0).aenqueue()
    await burst(app)
    (record,) = told(caplog, "job_dead")
    assert record.levelno == logging.ERROR
    assert str(job.id) in record.getMessage()


async def test_000_tm_6_a_job_cannot_reach_for_another_organisation(world: World) -> None:
    """Naming it is refused, its job is as unknown as one that never was, and the attempt fails."""
    app = world.app()
    mail = app.task(name="mail", queue="elsewhere")(work)
    foreign = await mail.using(tenant="globex").aenqueue()
    hidden: list[object] = []

    async def reach() -> None:
        with pytest.raises(JobNotFound):
            await app.jobs.aget(foreign.id)
        with pytest.raises(TenantMismatch):
            await app.jobs.afind(tenant="globex")
        hidden.append(await app.jobs.acancel(foreign.id))
        await mail.using(tenant="globex").aenqueue()

    job = await app.task(name="reach", max_attempts=1)(reach).using(tenant="acme").aenqueue()
    await burst(app, lanes=[Lane("main", 2, ["default"])])
    (attempt,) = (await job.arefresh()).attempts
    assert attempt.error_type is not None
    assert attempt.error_type.endswith("TenantMismatch")
    assert hidden == [{}]
    assert (await app.jobs.acount(tenant="globex"))[State.READY] == 1


# ── the identity that a job acts with ─────────────────────────────────────────

USERS = {
    "acme": [("bob", "admin", False), ("eve", "clerk", True), ("ann", "admin", True)],
    "globex": [("sam", "clerk", True)],
}
"""Name, role and whether active, by organisation."""

acting: ContextVar[str] = ContextVar("acting", default="nobody")


def with_identities(app: Fairlane) -> None:
    """Let each attempt act as the active admin of its organisation; without one it is refused."""

    @app.tenant_context
    @contextmanager
    def enter(ctx: Context) -> Iterator[None]:
        users = USERS[ctx.tenant]
        admin = next((name for name, role, active in users if role == "admin" and active), None)
        if admin is None:
            raise Fail(f"{ctx.tenant} has no active admin")
        before = acting.set(admin)
        try:
            yield
        finally:
            acting.reset(before)
            left.append(acting.get())


left: list[str] = []


async def ran(
    world: World, ending: BaseException | None, tenant: str = "acme"
) -> tuple[Job[Any], list[object]]:
    """Run one job that ends so; return it, and who it acted as."""
    app = world.app()
    left.clear()
    with_identities(app)
    seen: list[object] = []

    async def handler() -> None:
        seen.append((acting.get(), current_tenant()))
        if ending is not None:
            raise ending

    task = app.task(name="handler", max_attempts=1)(handler)
    job = await task.using(tenant=tenant).aenqueue()
    await burst(app)
    return await job.arefresh(), seen


async def test_000_pc_1_a_job_acts_as_the_active_admin_of_its_organisation(world: World) -> None:
    """And its organisation is the current one."""
    job, seen = await ran(world, None)
    assert job.state is State.SUCCEEDED
    assert seen == [("ann", "acme")]


@pytest.mark.parametrize(
    "ending", [None, ValueError("no"), Cancel("never mind"), TimeoutError(), SystemExit(1)]
)
async def test_000_pc_2_the_identity_is_given_back_whatever_happens(
    world: World, ending: BaseException | None
) -> None:
    """The hook is left in every case, and nothing of it is seen outside."""
    _, seen = await ran(world, ending)
    assert seen == [("ann", "acme")]
    assert left == ["nobody"]
    assert acting.get() == "nobody"
    with pytest.raises(LookupError):
        current_tenant()


async def test_000_pc_2_a_timeout_gives_the_identity_back(world: World, stage: Stage) -> None:
    """The handler was still at work."""
    app = world.app()
    left.clear()
    with_identities(app)
    task = app.task(name="hold", timeout=1, max_attempts=1)(stage.handler("hold"))
    job = await task.using(tenant="acme").aenqueue()
    await burst(app)
    assert (await job.arefresh()).attempts[0].error_class is ErrorClass.TIMEOUT
    assert left == ["nobody"]


async def test_000_pc_3_without_an_active_admin_the_attempt_is_refused(world: World) -> None:
    """Neither clerks nor inactive admins are chosen; the handler is not entered."""
    job, seen = await ran(world, None, "globex")
    assert (job.state, seen) == (State.DEAD, [])
    assert job.because == "failed: globex has no active admin"
