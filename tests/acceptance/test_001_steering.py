"""Description B, what an operator sees and changes: queues, settings, the command line, the doctor."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

from fairlane import Fairlane, Limits, Queue, Rate, State, WaitingLimitReached
from fairlane.app.worker_settings import WorkerSettings
from fairlane.cli.main import cli
from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.runtime.clock import MachineClock
from tests.acceptance.presets import work
from tests.acceptance.working import QUICK, Stage, at_work, burst, until
from tests.acceptance.world import ON_A_FILE, World


async def command(world: World, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Run one command on the world's store; return its exit code and its answer, an object a line."""
    ran = await asyncio.to_thread(CliRunner().invoke, cli, ["--url", world.place, "--json", *words])
    return ran.exit_code, [json.loads(line) for line in ran.stdout.splitlines()]


async def test_001_qm_4_the_queues_are_listed(world: World) -> None:
    """Those that were declared, and those that have jobs; there are no others inside."""
    app = world.app(queues=[Queue("default"), Queue("bulk", max_waiting=5)])
    await world.declare()
    await world.fill(app.task(name="work", queue="bulk")(work), 2)
    views = {view.name: view for view in await app.queues.alist()}
    assert sorted(views) == ["bulk", "default"]
    assert (views["bulk"].max_waiting, views["bulk"].counts[State.READY]) == (5, 2)


async def test_001_ex_10_a_queue_is_changed_while_it_is_used(world: World) -> None:
    """Its limits hold at the next enqueue, its rate at the next claim; a reset takes the change off."""
    app = world.app(queues=[Queue("default")])
    task = app.task(name="work")(work).using(tenant="acme")
    await world.declare()
    await world.fill(task, 3)
    await app.queues.aset("default", limits=Limits(waiting=3, on_full="reject"), note="flood")
    with pytest.raises(WaitingLimitReached):
        await task.aenqueue()
    await app.queues.areset("default")
    await task.aenqueue()
    assert len(await world.claim(4)) == 4


async def test_001_ex_10_a_queue_is_added_by_a_newer_application_without_a_restart(world: World) -> None:
    """What the newest start declares holds; the older application goes on."""
    old = world.app(queues=[Queue("default")])
    older_task = old.task(name="old")(work)
    await world.declare()
    new = world.app(queues=[Queue("default"), Queue("added", rate=Rate(1, "hour"))])
    await world.declare()
    await world.fill(new.task(name="new", queue="added")(work), 2)
    assert len(await world.claim(2, "added")) == 1
    job = await older_task.aenqueue(7)
    await burst(old)
    assert await job.aresult(1) == 7


def test_001_nf_14_an_application_starts_with_no_setting_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The store is a file in the working directory, as start-up says; workers and commands find it, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRLANE_URL", raising=False)
    with caplog.at_level(logging.INFO, "fairlane"), Fairlane() as app:
        job = app.task(name="work")(work).enqueue()
        asyncio.run(burst(app))
        assert job.refresh().state is State.SUCCEEDED
    assert f"no store is configured; creating {tmp_path}/fairlane.db" in caplog.text
    counted = CliRunner().invoke(cli, ["jobs", "count", "--json"])
    assert json.loads(counted.stdout)["succeeded"] == 1


async def test_001_dg_1_the_command_line_shows_the_next_ten_jobs_of_a_queue(world: World) -> None:
    """In the order in which they would be claimed."""
    app = world.app()
    jobs = await world.fill(app.task(name="work")(work), 12)
    code, shown = await command(world, "jobs", "peek", "default")
    assert code == 0
    assert [one["id"] for one in shown] == [str(job.id) for job in jobs[:10]]


@ON_A_FILE
async def test_001_dg_13_the_doctor_finds_a_planted_inconsistency_and_changes_nothing(world: World) -> None:
    """On a store in use: the books are compared with a recount."""
    app = world.app()
    await world.fill(app.task(name="work")(work), 3)
    _, before = await command(world, "doctor")
    assert {one["level"] for one in before if one["check"] == "counters"} == {"ok"}
    file = str(world.folder / "fairlane.db")
    with closing(apsw.Connection(file)) as db:
        db.execute("UPDATE tenant_queue SET ready = ready + 4")
    code, after = await command(world, "doctor")
    assert code == 1
    found = [one for one in after if one["check"] == "counters"]
    assert {one["level"] for one in found} == {"bad"}
    assert "counted 7 ready in queue default, there are 3" in str(found)
    with closing(apsw.Connection(file)) as db:
        assert db.execute("SELECT ready FROM tenant_queue").fetchall() == [(7,)]
        db.execute("UPDATE tenant_queue SET ready = ready - 4")


class JumpingClock(MachineClock):
    """A machine whose wall clock can be set."""

    offset = 0

    def wall(self) -> int:
        """Say what time people have."""
        return super().wall() + self.offset


@pytest.mark.parametrize("hours", [1, -1])
async def test_001_ec_2_a_jump_of_the_stores_clock_takes_no_job_from_its_worker(
    world: World, stage: Stage, hours: int
) -> None:
    """Its lease is renewed by the new time and it ends in its first attempt, timeout or not (S38)."""
    app = world.one_lane(2)
    hold = app.task(name="hold", timeout=600)(stage.handler("hold"))
    job = await hold.aenqueue(1)
    settings = WorkerSettings(renew_every=SECOND // 10)

    async def is_renewed() -> bool:
        lease_until = (await world.record(job)).lease_until or 0
        return world.now < lease_until <= world.now + MINUTE

    async with at_work(app, settings=settings):
        await until(lambda: stage.present["hold"] == 1)
        world.advance(hours * HOUR / SECOND)
        await until(is_renewed)
        stage.let_go("hold")
        assert await job.aresult(60) == 1
    assert [one.outcome for one in (await job.arefresh()).attempts] == ["succeeded"]


@pytest.mark.parametrize("hours", [1, -1])
async def test_001_ec_2_a_jump_of_the_machines_clock_changes_neither_timeouts_nor_leases(
    world: World, stage: Stage, hours: int
) -> None:
    """They are counted by a clock that does not jump."""
    app = world.one_lane(2)
    job = await app.task(name="hold", timeout=600)(stage.handler("hold")).aenqueue(1)
    clock = JumpingClock()
    async with at_work(app, settings=QUICK, clock=clock):
        await until(lambda: stage.present["hold"] == 1)
        clock.offset = hours * HOUR
        beats = (await world.record(job)).lease_until or 0
        world.advance(1)

        async def is_renewed() -> bool:
            return ((await world.record(job)).lease_until or 0) > beats

        await until(is_renewed)
        stage.let_go("hold")
        assert await job.aresult(60) == 1
    assert (await job.arefresh()).attempt == 1


async def test_001_dg_8_every_record_of_an_attempt_names_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Event, level, time, tenant, job, attempt, worker, queue, task; the correlation through all retries."""
    app = world.app()

    def bad() -> None:
        raise RuntimeError

    task = app.task(name="bad", max_attempts=2)(bad)
    job = await task.using(tenant="acme", correlation_id="user-action-123").aenqueue()
    workers = [await burst(app)]
    world.advance(60)
    workers.append(await burst(app))
    records = [one for one in caplog.records if vars(one).get("job") == str(job.id)]
    assert [vars(one)["event"] for one in records] == ["job_failed", "job_dead"]
    assert [vars(one)["attempt"] for one in records] == [1, 2]
    assert [vars(one)["worker"] for one in records] == [worker.id for worker in workers]
    for record in records:
        fields = vars(record)
        assert (fields["tenant"], fields["queue"], fields["task"]) == ("acme", "default", "bad")
        assert fields["correlation"] == "user-action-123"
        assert (record.name, record.levelno >= logging.WARNING) == ("fairlane.worker", True)
