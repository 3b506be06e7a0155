"""Testing an application: what its tests can see, say and rely on."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlane import Backoff, Context, Fairlane, Lane, Queue, Rate, State, TenantMismatch, current_tenant
from fairlane.model.errors import FairlaneError, OutsideTenant
from fairlane.testing import NotForTests, Trial, assert_state, dedicate, fixture

app = Fairlane(
    "sqlite:////nowhere/at/all.db",
    queues=[Queue("mail"), Queue("odd")],
    lanes=[Lane("main", 4, ["mail"])],
)
sent: list[tuple[str, str]] = []


@app.task(queue="mail", retry=Backoff.delays(10, 60))
def send(to: str, *, fails: int = 0, ctx_free: bool = True) -> str:
    """Note who was written to."""
    sent.append((current_tenant(), to))
    return f"sent to {to}"


@app.task(queue="odd")
async def fan_out(ctx: Context, names: list[str]) -> None:
    """Make a job for each name."""
    for name in names:
        await send.aenqueue(name)


@app.task(queue="mail", retry=Backoff.delays(10, 60))
def flaky(ctx: Context) -> int:
    """Fail twice."""
    if ctx.attempt < 3:
        message = f"attempt {ctx.attempt}"
        raise OSError(message)
    return ctx.attempt


jobs = fixture(app)


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


def test_nothing_runs_before_the_test_says_so(jobs: Trial) -> None:
    """Enqueuing only stores; `run` runs."""
    job = send.using(tenant="acme").enqueue("ann")
    assert sent == []
    assert jobs.run() == 1
    assert sent == [("acme", "ann")]
    assert job.result(0) == "sent to ann"


def test_what_handlers_enqueue_is_run_too_in_every_queue(jobs: Trial) -> None:
    """Also in queues that no lane of the application serves."""
    fan_out.using(tenant="acme").enqueue(["ann", "bob"])
    assert jobs.run() == 3
    assert sent == [("acme", "ann"), ("acme", "bob")]


def test_the_order_is_the_fair_one(jobs: Trial) -> None:
    """With one slot the turns of tenants can be read from what happened."""
    for name in ("a1", "a2", "a3"):
        send.using(tenant="acme").enqueue(name)
    send.using(tenant="zeta").enqueue("z1")
    jobs.run()
    assert [tenant for tenant, _ in sent] == ["acme", "zeta", "acme", "acme"]


def test_time_stands_still_until_it_is_moved(jobs: Trial) -> None:
    """A delayed job runs when the store's clock says so, and no moment before."""
    send.using(tenant="acme", delay=60).enqueue("ann")
    assert jobs.run() == 0
    jobs.advance(59.999999)
    assert jobs.run() == 0
    jobs.advance(timedelta(microseconds=1))
    assert jobs.run() == 1


def test_the_clock_can_be_set(tmp_path: Path) -> None:
    """A test of midnight needs midnight."""
    midnight = datetime(2027, 1, 1, tzinfo=UTC)
    with Trial(app, at=midnight) as trial:
        assert trial.now == midnight
        assert send.using(tenant="acme").enqueue("ann").enqueued_at == midnight
        with pytest.raises(ValueError, match="does not go back"):
            trial.advance(-1)


def test_retries_wait_for_their_time_or_are_run_ahead(jobs: Trial) -> None:
    """`run(ahead=…)` runs what falls due meanwhile, and moves the clock as far as it was told."""
    began = jobs.now
    job = flaky.using(tenant="acme").enqueue()
    assert jobs.run() == 1
    assert job.refresh().state is State.DELAYED
    assert jobs.run(ahead=30) == 1
    assert jobs.now - began == timedelta(seconds=30)
    assert jobs.run(ahead=3600) == 1
    assert jobs.now - began == timedelta(seconds=3630)
    assert job.result(0) == 3
    assert [one.started_at - began for one in job.refresh().attempts] == [
        timedelta(seconds=due) for due in (0, 10, 70)
    ]


@pytest.mark.parametrize("ahead", [600, timedelta(minutes=10)])
def test_the_clock_moves_as_far_as_it_is_told_also_if_nothing_falls_due(
    jobs: Trial, ahead: float | timedelta
) -> None:
    """A test of a deadline says how much later it is, whatever waits."""
    began = jobs.now
    assert jobs.run(ahead=ahead) == 0
    assert jobs.now - began == timedelta(seconds=600)
    with pytest.raises(ValueError, match="does not go back"):
        jobs.run(ahead=-1)
    assert jobs.now - began == timedelta(seconds=600)


def test_starts_that_a_rate_puts_off_fall_due_too(jobs: Trial) -> None:
    """Time alone lets them run, as it does for a delay; so does the end of a pause."""
    app.queues.set("mail", rate=Rate(1, "minute"))
    app.tenants.pause("zeta", reason="a test", until=jobs.now + timedelta(minutes=9))
    for name in ("ann", "bob", "cyd"):
        send.using(tenant="acme").enqueue(name)
    send.using(tenant="zeta").enqueue("zoe")
    assert jobs.run(ahead=119) == 2
    assert jobs.run(ahead=1) == 1
    assert jobs.run(ahead=600) == 1
    assert [name for _, name in sent] == ["ann", "bob", "cyd", "zoe"]


def test_jobs_are_found_by_task_tenant_and_arguments(jobs: Trial) -> None:
    """What was enqueued can be asked for as it was called."""
    send.using(tenant="acme").enqueue("ann")
    bob = send.using(tenant="zeta").enqueue("bob")
    fan_out.using(tenant="acme").enqueue([])
    assert [job.tenant for job in jobs.jobs(send)] == ["acme", "zeta"]
    assert len(jobs.jobs(tenant="acme")) == 2
    assert jobs.one(send, to="bob").id == bob.id
    with pytest.raises(AssertionError, match=r"0 jobs of task .*send of tenant acme with to='bob', not one"):
        jobs.one(send, tenant="acme", to="bob")
    with pytest.raises(
        AssertionError, match=r"2 jobs of task .*send, not one\n  .* acme ready\n  .* zeta ready"
    ):
        jobs.one(send)


def test_a_wrong_state_is_told_with_the_last_failure(jobs: Trial) -> None:
    """The handler's own error is what a failing test must show."""
    job = flaky.using(tenant="acme").enqueue()
    jobs.run()
    assert_state(job.refresh(), State.DELAYED)
    told = r"is delayed, not succeeded\nbecause: retry.*\nOSError: attempt 1\n(?s:.*)in flaky"
    with pytest.raises(AssertionError, match=told):
        assert_state(job.refresh(), State.SUCCEEDED)


async def test_async_tests_use_the_twins() -> None:
    """In one loop, with the same store."""
    async with Trial(app) as trial:
        job = await send.using(tenant="acme").aenqueue("ann")
        assert await trial.arun() == 1
        assert (await trial.aone(send, to="ann")).id == job.id
        assert await job.aresult(0) == "sent to ann"


def test_the_walls_between_tenants_stand_as_in_a_worker(jobs: Trial) -> None:
    """What a worker refuses is refused in tests: a thread without context, another tenant's name."""
    refused: list[BaseException] = []

    @app.task(name="reaches-out", queue="mail")
    def reach(ctx: Context) -> None:
        def outside() -> None:
            try:
                send.enqueue("ann")
            except OutsideTenant as error:
                refused.append(error)

        thread = threading.Thread(target=outside)
        thread.start()
        thread.join()
        try:
            send.using(tenant="zeta").enqueue("ann")
        except TenantMismatch as error:
            refused.append(error)

    reach.using(tenant="acme").enqueue()
    jobs.run()
    assert [type(error) for error in refused] == [OutsideTenant, TenantMismatch]


def test_each_trial_begins_empty_and_leaves_nothing_behind(jobs: Trial, tmp_path: Path) -> None:
    """Two trials of one application share nothing."""
    send.using(tenant="acme").enqueue("ann")
    folder = jobs._folder
    assert folder is not None
    jobs.__exit__()
    assert not folder.exists()
    with Trial(app) as other:
        assert other.jobs() == []


def test_a_store_that_is_not_for_tests_is_refused(tmp_path: Path) -> None:
    """Nothing is run and nothing is stored in it: it might be somebody's."""
    url = f"sqlite:///{tmp_path}/real.db"
    real = Fairlane(url)
    real.task(name="work")(lambda: None).using(tenant="acme").enqueue()
    real.close()
    with pytest.raises(NotForTests, match="not for tests"), Trial(app, url):
        pass
    with pytest.raises(NotForTests, match="holds jobs"):
        asyncio.run(dedicate(url))
    with Fairlane(url) as again:
        assert len(again.jobs.find(tenant="acme").items) == 1


def test_a_store_that_was_dedicated_can_be_used_again_and_again(tmp_path: Path) -> None:
    """A server that is there for tests, for example."""
    url = f"sqlite:///{tmp_path}/tests.db"
    asyncio.run(dedicate(url))
    for number in (1, 2):
        with Trial(app, url) as trial:
            send.using(tenant="acme").enqueue("ann")
            assert trial.run() == 1
            assert len(trial.jobs(send)) == number


def test_after_a_trial_the_application_has_its_own_store_again(jobs: Trial) -> None:
    """Its URL was never changed, and never opened."""
    assert app.settings.url == "sqlite:////nowhere/at/all.db"


@pytest.mark.parametrize("url", ["sqlite:////nowhere/to/be.db", "sqlite:///:memory:"])
async def test_a_trial_that_cannot_begin_leaves_the_application_as_it_was(url: str) -> None:
    """The next call goes to the application's own store, not to the one that could not be opened."""
    with pytest.raises(FairlaneError):
        await asyncio.to_thread(Trial(app, url).__enter__)
    assert app.client._diversion is None
    with pytest.raises(FairlaneError):
        await Trial(app, url).__aenter__()
    assert app.client._diversion is None
