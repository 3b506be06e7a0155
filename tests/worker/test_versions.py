"""Workers with different versions of a task side by side: on no store does a deploy kill a job (S33)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairlane import ConfigError, Context, ErrorClass, Fairlane, Lane, State, Task
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import WakeRequest, WorkersRequest
from fairlane.store.opening import open_store
from fairlane.testing import Trial, dedicate
from fairlane.worker.startup.version_check import refuse_unreadable_versions
from tests.acceptance.conftest import PLACES
from tests.acceptance.working import QUICK, at_work, burst, until
from tests.acceptance.world import World
from tests.stores import MEMORY
from tests.worker.world import LONG, LeapingClock, events, until_async

JOBS = 100


@pytest.fixture(params=sorted(PLACES))
async def place(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """An empty store of each kind, with a clock that the test drives."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as url:
            made = World(url, Path(folder))
            yield made
            await made.aclose()


def old_mail(app: Fairlane, **options: Any) -> Task[[str], list[str]]:
    """Declare the task as it was."""

    async def mail(recipient: str) -> list[str]:
        return [recipient]

    return app.task(name="mail", **options)(mail)


def new_mail(app: Fairlane, version: int = 2, **options: Any) -> Task[[list[str]], list[str]]:
    """Declare the task as it is now, without a step from what it was."""

    async def mail(to: list[str]) -> list[str]:
        return to

    return app.task(name="mail", version=version, **options)(mail)


def raised(arguments: dict[str, Any]) -> dict[str, Any]:
    """Bring arguments of version 1 up to version 2."""
    return {"to": [arguments["recipient"]]}


async def wake(app: Fairlane) -> None:
    """Wake waiting workers: they do not notice by themselves that the clock was moved."""
    await app.client.store.registry.wake(WakeRequest(scope=Scope.all(), queues=("default",)))


# ── a newer version ───────────────────────────────────────────────────────────


async def test_old_and_new_workers_side_by_side_kill_no_job(
    place: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A rolling deploy: the old worker hands back what it claims, and the new one runs it a little later."""
    caplog.set_level("INFO", "fairlane.worker")
    old, new = place.app(), place.app()
    old_mail(old)
    mail = new_mail(new)
    mail.upcast(1)(raised)
    jobs = await new.aenqueue_many([mail.using(tenant="acme").bind([str(n)]) for n in range(JOBS)])
    await burst(old, settings=QUICK)
    records = [await place.record(job) for job in jobs]
    assert {(one.state, one.failures) for one in records} == {(State.DELAYED, 0)}
    assert events(caplog).count("version_unknown") == 1
    async with at_work(old, settings=QUICK), at_work(new, settings=QUICK):

        async def are_done() -> bool:
            place.advance(1)
            await wake(new)
            return all([(await job.arefresh()).is_finished for job in jobs])

        await until(are_done)
    ended = [await job.arefresh() for job in jobs]
    assert {job.state for job in ended} == {State.SUCCEEDED}
    assert [await job.aresult() for job in ended] == [[str(n)] for n in range(JOBS)]


@pytest.mark.parametrize("name", ["mail", "post"])
async def test_a_newer_version_waits_and_explain_says_why(place: World, name: str) -> None:
    """Five seconds, then ten; under an alias as well. No attempt that counts was used."""
    old, new = place.app(), place.app()
    old_mail(old, aliases=("post",))

    async def now(to: list[str]) -> None: ...

    mail = new.task(name=name, version=2, max_attempts=1)(now)
    job = await mail.using(tenant="acme").aenqueue(["bob"])
    waits: list[int] = []
    for _ in range(3):
        await burst(old, settings=QUICK)
        back = await place.record(job)
        assert (back.state, back.failures) == (State.DELAYED, 0)
        waits.append(round((back.run_at - place.now) / SECOND))
        why = await old.jobs.aexplain(job.id)
        assert why.reason == "unknown_version"
        assert why.subject == "unknown_version: it is of version 2, and the worker knows 1"
        assert "deploy" in why.advice
        place.advance(waits[-1])
    assert waits == [5, 10, 20]


async def test_a_newer_version_that_a_live_worker_knows_waits_no_longer_each_time(place: World) -> None:
    """The wrong worker claimed it first, the right one will: a rolling deploy delays it by seconds."""
    old, new = place.app(), place.app()
    old_mail(old)
    mail = new_mail(new)
    mail.upcast(1)(dict)
    await burst(new, settings=QUICK)  # it has published what it knows
    job = await mail.using(tenant="acme").aenqueue(["bob"])
    for _ in range(2):
        await burst(old, settings=QUICK)
        back = await place.record(job)
        assert (back.state, round((back.run_at - place.now) / SECOND)) == (State.DELAYED, 5)
        place.advance(5)


async def test_a_version_is_dead_an_hour_after_the_last_worker_that_knew_it(place: World) -> None:
    """A worker with an older version, which lives all the time, does not count and hides nothing."""
    old, new = place.app(), place.app()
    old_mail(old)
    mail = new_mail(new)
    mail.upcast(1)(raised)
    elsewhere = [Lane("side", 1, ("side",))]
    clock = LeapingClock()

    async def pass_by(seconds: float) -> State:
        before = (await place.record(job)).attempt
        clock.leap(seconds)
        place.advance(seconds)
        await until_async(has_beaten, wanted=True)
        await wake(old)
        await until_async(lambda: has_ended_after(before), wanted=True)
        return (await place.record(job)).state

    async def has_beaten() -> bool:
        views = await place.store.registry.workers(WorkersRequest(scope=Scope.all(), seen_within=0))
        return len(views) == 1

    async def has_ended_after(attempt: int) -> bool:
        found = await place.record(job)
        return found.attempt > attempt and found.state is not State.RUNNING

    job = await mail.using(tenant="acme").aenqueue(["bob"])
    async with at_work(old, settings=LONG, clock=clock, duties=False):
        await until_async(lambda: has_ended_after(0), wanted=True)
        await pass_by(3_000)
        await burst(new, lanes=elsewhere, settings=QUICK)
        assert await pass_by(1_000) is State.DELAYED
        assert await pass_by(2_500) is State.DELAYED
        assert await pass_by(200) is State.DEAD
    dead = await job.arefresh()
    assert (dead.because, dead.failures) == ("failed: no worker knows version 2 of task mail", 0)
    assert dead.attempts[-1].error_class is ErrorClass.UNKNOWN_TASK


async def test_a_job_by_name_has_the_newest_version_that_lives(place: World) -> None:
    """Whichever worker registered last: arguments of the old version would be refused or misread."""
    old, new = place.app(), place.app()
    old_mail(old)
    new_mail(new).upcast(1)(raised)
    bare = place.app()
    async with at_work(new, settings=QUICK) as first, at_work(old, settings=QUICK) as second:
        await until(lambda: first.is_ready and second.is_ready)
        job = await bare.aenqueue_by_name("mail", {"to": ["bob"]}, tenant="acme", delay=60)
    assert (await place.record(job)).version == 2


async def test_a_handler_sees_the_version_that_its_job_was_enqueued_with(place: World) -> None:
    """And arguments of its own."""
    old, new = place.app(), place.app()
    seen: list[tuple[int, list[str]]] = []

    async def mail(ctx: Context, to: list[str]) -> None:
        seen.append((ctx.version, to))

    newer = new.task(name="mail", version=2)(mail)
    newer.upcast(1)(raised)
    await old_mail(old).using(tenant="acme").aenqueue("ann")
    await newer.using(tenant="acme").aenqueue(["bob"])
    await burst(new, settings=QUICK)
    assert seen == [(1, ["ann"]), (2, ["bob"])]


async def test_a_trial_hands_back_what_is_newer_than_its_application(tmp_path: Path) -> None:
    """It counts as no attempt, and a search by arguments passes it by."""
    url = f"sqlite:///{tmp_path}/trial.db"
    await dedicate(url)
    async with Fairlane() as app, Fairlane(url) as other, Trial(app, url) as trial:
        mail = old_mail(app)
        await mail.using(tenant="acme").aenqueue("ann")
        newer = await new_mail(other).using(tenant="acme").aenqueue(["bob"])
        assert await trial.arun() == 1
        back = await newer.arefresh()
        assert (back.state, back.failures) == (State.DELAYED, 0)
        found = await trial.aone(mail, recipient="ann")
        assert found.state is State.SUCCEEDED


# ── a step that is missing ────────────────────────────────────────────────────


async def test_a_worker_is_refused_while_a_job_that_it_could_not_read_is_unfinished(place: World) -> None:
    """It names the task, the step and the job; with the step it starts."""
    old, new = place.app(), place.app()
    job = await old_mail(old).using(tenant="acme", delay=3_600).aenqueue("ann")
    mail = new_mail(new)
    with pytest.raises(
        ConfigError, match=f"task mail: it is version 2, has no upcast from version 1.*{job.id}"
    ):
        await burst(new, settings=QUICK)
    assert (await place.record(job)).attempt == 0
    assert await place.store.registry.workers(WorkersRequest(scope=Scope.all())) == ()
    mail.upcast(1)(raised)
    await burst(new, settings=QUICK)


async def test_a_worker_is_refused_for_an_hour_after_one_with_the_older_version(place: World) -> None:
    """Its application may still enqueue; afterwards, without jobs, the step may be left out."""
    old, new = place.app(), place.app()
    old_mail(old)
    new_mail(new)
    await burst(old, settings=QUICK)
    place.advance(3_599)
    with pytest.raises(ConfigError, match="a worker that knows version 1 was seen 3599 s ago"):
        await burst(new, settings=QUICK)
    place.advance(1)
    await burst(new, settings=QUICK)


async def test_finished_jobs_and_a_new_store_need_no_step(place: World) -> None:
    """A task may begin with any version, and old steps may go once nothing so old is left."""
    new = place.app()
    mail = new_mail(new, version=5)
    await mail.using(tenant="acme").aenqueue(["bob"])
    assert (await burst(new, settings=QUICK)).settled == 1
    later = place.app()
    newest = new_mail(later, version=7)
    newest.upcast(6)(dict)
    newest.upcast(5)(dict)
    assert (await burst(later, settings=QUICK)).settled == 0


async def test_a_job_under_an_alias_needs_its_step_too(place: World) -> None:
    """The old name is found by the new task's alias."""
    old, new = place.app(), place.app()
    await old_mail(old).using(tenant="acme", delay=60).aenqueue("ann")

    async def post(to: list[str]) -> None: ...

    new.task(name="post", version=2, aliases=("mail",))(post)
    with pytest.raises(ConfigError, match=r"task post: .* no upcast from version 1"):
        await burst(new, settings=QUICK)


async def test_a_gap_between_two_steps_is_refused_at_every_start(place: World) -> None:
    """Whatever the store holds: there is no upcast from version 1."""
    app = place.app()
    new_mail(app, version=3).upcast(1)(raised)
    with pytest.raises(ConfigError, match="task mail: it is version 3, but has no upcast from version 2"):
        await burst(app, settings=QUICK)


async def test_a_task_with_all_its_steps_costs_a_start_nothing(place: World) -> None:
    """No store is asked, not even one that is closed."""
    app = place.app()
    new_mail(app).upcast(1)(raised)
    gone = open_store(place.place)
    await gone.upkeep.aclose()
    await refuse_unreadable_versions(app, gone)


async def test_too_many_jobs_to_look_at_are_told_and_do_not_stop_a_worker(
    place: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A backlog must not keep an application from starting."""
    monkeypatch.setattr("fairlane.worker.startup.version_check.MAX_PAGES", 0)
    app = place.app()
    new_mail(app)
    await burst(app, settings=QUICK)
    assert "versions_unchecked" in events(caplog)
