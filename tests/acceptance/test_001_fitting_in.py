"""Description B, apart from the worker: enqueue by name, tests' own stores, what ends a stuck job, memory."""

from __future__ import annotations

import compileall
from pathlib import Path
from typing import Any

import pytest

import fairlane
from fairlane import (
    CancelReply,
    Fail,
    Fairlane,
    InvalidJob,
    Job,
    State,
    StoreError,
    UnknownTask,
    _public,
)
from fairlane.app.worker_settings import WorkerSettings
from fairlane.testing import NotForTests, Trial
from tests.acceptance.crew import Crew
from tests.acceptance.presets import work
from tests.acceptance.working import QUICK, Stage, at_work, burst, until
from tests.acceptance.world import World
from tests.seconds import counted
from tools.coverage_floors import FLOORS, lines
from tools.doc_examples import all_pages, without_example


async def test_001_ex_26_a_producer_without_the_handler_enqueues_by_name(world: World) -> None:
    """The task is known from the worker that published it; it goes to its home and runs there."""
    app = world.app()
    seen: list[Any] = []

    async def send(to: str, copies: int = 1) -> None:
        seen.append((to, copies))

    app.task(name="mail.send", queue="mail")(send)
    await burst(app)
    producer = world.app()
    job = await producer.aenqueue_by_name("mail.send", {"to": "ada", "copies": 2}, tenant="acme")
    assert (job.queue, job.task, job.tenant) == ("mail", "mail.send", "acme")
    await burst(app)
    assert seen == [("ada", 2)]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"copies": 1}, "to"), ({"to": 7}, "to"), ({"to": "ada", "colour": "red"}, "colour")],
)
async def test_001_ex_26_its_arguments_are_checked_against_the_published_schema(
    world: World, arguments: dict[str, Any], field: str
) -> None:
    """Missing, of another type, unknown: refused by name, and nothing is stored."""
    app = world.app()

    async def send(to: str, copies: int = 1) -> None:
        """Take a text and a number."""

    app.task(name="mail.send")(send)
    await burst(app)
    producer = world.app()
    with pytest.raises(InvalidJob) as refused:
        await producer.aenqueue_by_name("mail.send", arguments, tenant="acme")
    assert field in str([problem.field for problem in refused.value.problems])
    with pytest.raises(UnknownTask, match=r"mail\.send"):
        await producer.aenqueue_by_name("mail.sent", {"to": "ada"}, tenant="acme")
    assert sum((await producer.jobs.acount()).values()) == 0


async def test_001_ex_27_without_its_store_an_enqueue_fails_fast(tmp_path: Path) -> None:
    """With one clear error that names the place; nothing is buffered, so nothing arrives afterwards."""
    folder = tmp_path / "not-mounted"
    async with Fairlane(f"sqlite:///{folder}/fairlane.db") as app:
        task = app.task(name="work")(work)
        async with counted() as seconds:
            with pytest.raises(StoreError, match="not-mounted"):
                await task.aenqueue(1)
        assert seconds() < 5
        folder.mkdir()
        job = await task.aenqueue(2)
        assert [one.id for one in await app.jobs.afind()] == [job.id]


async def test_001_dg_14_the_test_helpers_refuse_a_store_that_is_not_for_tests(world: World) -> None:
    """And leave it as it is; one of their own they take."""
    app = world.app()
    job = await app.task(name="work")(work).aenqueue(1)
    production = Fairlane(world.url)
    production.task(name="work")(work)
    with pytest.raises(NotForTests):
        async with Trial(production, url=world.place):
            pytest.fail("it was let in")
    assert (await job.arefresh()).state is State.READY
    async with Trial(production) as trial:
        await trial.app.aenqueue_by_name("work", {"number": 3}, tenant="acme")
        assert await trial.arun() == 1


async def test_001_dg_11_a_job_that_hangs_ends_by_its_timeout(world: World, stage: Stage) -> None:
    """Nobody has to do anything."""
    app = world.app()
    task = app.task(name="hang", timeout=1, max_attempts=1)(stage.handler("hang"))
    job = await task.aenqueue()
    await burst(app)
    assert (await job.arefresh()).state is State.DEAD


async def test_001_dg_11_a_job_that_hangs_ends_by_hand(world: World, stage: Stage) -> None:
    """It is cancelled while it runs."""
    app = world.one_lane(2)
    job: Job[Any] = await app.task(name="hang")(stage.handler("hang")).aenqueue()
    async with at_work(app, settings=QUICK):
        await until(lambda: stage.present["hang"] == 1)
        assert await job.acancel("hangs") is CancelReply.REQUESTED

        async def is_cancelled() -> bool:
            return (await job.arefresh()).state is State.CANCELLED

        await until(is_cancelled)
    assert (await job.arefresh()).because == "asked: hangs"


async def test_001_dg_11_a_jump_to_dead_is_explained(world: World) -> None:
    """With attempts left, the job says why there will be none."""
    app = world.app()

    async def hopeless() -> None:
        raise Fail("the account is closed")

    job = await app.task(name="hopeless", max_attempts=5)(hopeless).aenqueue()
    await burst(app)
    why = await app.jobs.aexplain(job.id)
    assert (why.reason, why.subject) == ("finished", "failed: the account is closed")


async def test_001_wk_10_a_worker_ends_itself_after_so_many_jobs(world: World) -> None:
    """In good order, with the rest waiting for its successor."""
    app = world.one_lane(1)
    task = app.task(name="work")(work)
    await world.fill(task, 20)
    async with at_work(app, settings=WorkerSettings(max_jobs=5)) as worker:
        await until(lambda: worker.settled >= 5)
    counts = await app.jobs.acount()
    assert (counts[State.SUCCEEDED], counts[State.READY], counts[State.RUNNING]) == (5, 15, 0)


def resident(pid: int) -> int:
    """Return the bytes of memory that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    (kilobytes,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")]
    return kilobytes * 1_024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read as Linux shows it")
async def test_001_nf_4_a_worker_at_rest_takes_at_most_50_mb(crew: Crew) -> None:
    """After it has started and run a job; on Redis 60 MB, since its client library alone takes 25."""
    # A process that compiles what it imports, as the first one after an installation, takes 10 MB for that.
    compileall.compile_dir(str(Path(fairlane.__file__).parent), quiet=2)
    worker = await crew.join()
    (job,) = await crew.enqueue("note", 1)
    await job.aresult(60)
    most = 60 if crew.place.startswith(("redis", "unix")) else 50
    assert resident(worker.pid) <= most * 2**20


def test_001_nf_15_every_public_name_has_an_executed_example() -> None:
    """On a page whose code the tests run."""
    assert without_example(_public.__all__, all_pages()) == []


@pytest.mark.parametrize(
    ("part", "statements", "branches"),
    [
        ("model", 100, 100),
        ("queue", 95, 90),
        ("worker", 90, 85),
        ("retry", 95, 90),
        ("scheduler", 90, 85),
        ("API", 85, 80),
    ],
)
def test_001_nf_21_coverage_has_a_floor_below_which_the_gate_fails(
    part: str, statements: int, branches: int
) -> None:
    """Of statements and of branches: exactly so much is enough, and one less of either is not."""
    (floor,) = [one for one in FLOORS if one.part == part]
    name = floor.files[0].replace("*", "some.py")

    def is_met(less: int, fewer: int) -> bool:
        covered = {"covered_lines": statements - less, "covered_branches": branches - fewer}
        files = {name: {"summary": {"num_statements": 100, "num_branches": 100, **covered}}}
        return all(met for _, met in lines(files, [floor]))

    assert (is_met(0, 0), is_met(1, 0), is_met(0, 1)) == (True, False, False)
