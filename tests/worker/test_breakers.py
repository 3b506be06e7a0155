"""A breaker of tasks, and one inside handlers, as workers use them (S58, S110, S111); on each store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlane import Breaker, BreakerOpen, BreakerView, Context, ErrorClass, Fail, Fairlane, Job, Lane, State
from fairlane.app.guards import breaker_memory
from fairlane.worker.worker import WorkerRuntime
from tests.acceptance.conftest import PLACES
from tests.stores import MEMORY
from tests.worker.world import PATIENCE, QUICK, until, until_async

SOON = 0.3
"""Seconds for which breakers here are open."""


class Down(Exception):  # noqa: N818 (what a service is)
    """What the service answers."""


class Service:
    """Something that jobs call, which is up or down; who called it."""

    def __init__(self) -> None:
        """Begin down."""
        self.is_up = False
        self.calls: list[str] = []
        self.running = self.most = 0

    async def call(self, tenant: str = "") -> None:
        """Answer, or fail."""
        self.calls.append(tenant)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            if not self.is_up:
                raise Down
        finally:
            self.running -= 1


def mail(**options: object) -> Breaker:
    """Return a breaker that opens at the third failure, for a moment."""
    given: dict[str, object] = {"failures": 3, "open_for": SOON, "ramp": 2}
    return Breaker("mail", **{**given, **options})  # type: ignore[arg-type]


@pytest.fixture(params=sorted(PLACES))
async def place(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The URL of an empty store of each kind."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as url:
            yield url


@pytest.fixture
async def app(place: str) -> AsyncIterator[Fairlane]:
    """An application with one breaker and four slots."""
    lanes = [Lane("main", 4, ["default"], headroom=0)]
    async with Fairlane(place, config={}, lanes=lanes, breakers=[mail()]) as made:
        yield made


async def view_when(app: Fairlane, state: str) -> BreakerView:
    """Wait until the breaker is so, and return what was seen then: a moment later it may be another."""
    seen: list[BreakerView] = []

    async def look() -> str:
        seen.append(await app.breakers.aget("mail"))
        return seen[-1].state

    await until_async(look, state)
    return seen[-1]


class Working:
    """A worker of an application that runs meanwhile."""

    def __init__(self, app: Fairlane) -> None:
        """Start nothing yet."""
        self._worker = WorkerRuntime(app, settings=QUICK)

    async def __aenter__(self) -> WorkerRuntime:
        """Start it."""
        self._running = asyncio.ensure_future(self._worker.run())
        await until(lambda: self._worker.is_ready or self._running.done())
        return self._worker

    async def __aexit__(self, *exc: object) -> None:
        """Stop it."""
        self._worker.stop()
        await asyncio.wait_for(self._running, PATIENCE)


# ── a breaker of a task ──────────────────────────────────────────────────────


async def test_an_outage_opens_it_and_its_end_closes_it_by_one_probe_and_a_ramp(app: Fairlane) -> None:
    """S58, S110, S111: nobody calls while it is open; then one, two at once, and all."""
    service = Service()

    @app.task(name="send", breaker="mail", max_attempts=20)
    async def send(ctx: Context) -> None:
        await service.call(ctx.tenant)

    jobs = await app.aenqueue_many(send.using(tenant=f"t{n % 3}").bind() for n in range(12))
    async with Working(app):
        opened = await view_when(app, "open")
        assert opened.slots == 0
        assert opened.trips >= 1
        service.is_up = True
        await view_when(app, "closed")
        for job in jobs:
            await until_async(lambda job=job: _is_over(app, job), True)  # type: ignore[misc]
        await until_async(lambda: _told(app), {"breaker_opened", "breaker_closed"})
    ended = [await job.arefresh() for job in jobs]
    assert {job.state for job in ended} == {State.SUCCEEDED}
    assert sum(job.failures for job in ended) == len(service.calls) - len(jobs)


async def _told(app: Fairlane) -> set[str]:
    return {one.kind async for one in app.events.aeach() if one.kind.startswith("breaker_")}


async def _is_over(app: Fairlane, job: Job[None]) -> bool:
    return (await _now(app, job)).is_finished


async def _now(app: Fairlane, job: Job[None]) -> Job[None]:
    """Return a job as it is now, run at once if it waits for a retry."""
    now = await job.arefresh()
    if now.state is State.DELAYED:
        with suppress(Exception):
            await app.jobs.arun_now(now.id)
    return now


async def test_only_the_errors_that_count_open_it(app: Fairlane) -> None:
    """S58: `errors` names them; what the handler says about the job alone counts for nothing."""
    faulty = Breaker("faulty", failures=1, errors=(Down,))

    @app.task(name="send", breaker=faulty, max_attempts=1)
    async def send(how: str) -> None:
        if how == "ours":
            raise ValueError(how)
        if how == "hopeless":
            raise Fail(how)
        raise Down

    for how in ("ours", "hopeless"):
        await send.using(tenant="acme").aenqueue(how)
    await WorkerRuntime(app, settings=QUICK, burst=True).run()
    assert (await app.breakers.aget("faulty")).state == "closed"
    await send.using(tenant="acme").aenqueue("theirs")
    await WorkerRuntime(app, settings=QUICK, burst=True).run()
    found = await app.breakers.aget("faulty")
    assert (found.state, found.failed) == ("open", 1)


async def test_a_timeout_counts_as_a_failure(app: Fairlane) -> None:
    """S58: a service that hangs is down."""

    @app.task(name="send", breaker=Breaker("slow", failures=1, open_for=60), timeout=1, max_attempts=1)
    async def send() -> None:
        await asyncio.Event().wait()

    await send.using(tenant="acme").aenqueue()
    await WorkerRuntime(app, settings=QUICK, burst=True).run()
    assert (await app.breakers.aget("slow")).state == "open"


async def test_jobs_behind_it_are_explained(app: Fairlane) -> None:
    """S58: reason, breaker, until when, and what to do."""

    @app.task(name="send", breaker="mail")
    async def send() -> None: ...

    async with Working(app):
        opened = await app.breakers.aopen("mail", reason="maintenance")
        job = await send.using(tenant="acme").aenqueue()
        why = await app.jobs.aexplain(job.id)
        assert (why.reason, why.subject, why.until) == ("breaker", "breaker mail", None)
        assert "app.breakers.reset" in why.advice
        assert opened.forced is not None
        await app.breakers.areset("mail")
        await until_async(lambda: _is_over(app, job), True)


# ── inside handlers ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_handlers_open_it_and_then_snooze(app: Fairlane, kind: str) -> None:
    """S110: async ones, plain ones; the jobs come back, and no failure is counted for meeting it open."""
    service = Service()
    if kind == "async":

        @app.task(name="send", max_attempts=20)
        async def send() -> None:
            async with app.breaker("mail"):
                await service.call()

    else:

        @app.task(name="send", max_attempts=20)
        def send() -> None:
            with app.breaker("mail"):
                service.calls.append("")
                if not service.is_up:
                    raise Down

    jobs = await app.aenqueue_many(send.using(tenant="acme").bind() for _ in range(8))
    async with Working(app):
        await view_when(app, "open")
        await until_async(lambda: _snoozed(jobs), True)
        service.is_up = True
        for job in jobs:
            await until_async(lambda job=job: _is_over(app, job), True)  # type: ignore[misc]
    ended = [await job.arefresh() for job in jobs]
    assert {job.state for job in ended} == {State.SUCCEEDED}
    assert sum(job.failures for job in ended) == len(service.calls) - len(jobs)


async def _snoozed(jobs: list[Job[None]]) -> bool:
    now = [await job.arefresh() for job in jobs]
    return any((one.because or "").startswith("snooze: breaker mail is open") for one in now)


async def test_no_job_that_is_claimed_after_an_opening_passes(
    app: Fairlane, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S124: its claim says so, however long the store's last word would hold."""
    monkeypatch.setattr(breaker_memory, "WORD_HOLDS", 10**12)
    passed: list[str] = []

    @app.task(name="send")
    async def send(name: str) -> None:
        async with app.breaker("mail"):
            passed.append(name)

    async with Working(app), Fairlane(place, config={}, breakers=[mail()]) as other:
        first = await send.using(tenant="acme").aenqueue("first")
        await until_async(lambda: _is_over(app, first), True)
        await other.breakers.aopen("mail", reason="maintenance")
        second = await send.using(tenant="acme").aenqueue("second")
        await until_async(lambda: _was_tried(second), True)
    assert passed == ["first"]


async def _was_tried(job: Job[None]) -> bool:
    return any(one.ended_at is not None for one in (await job.arefresh()).attempts)


async def test_on_open_fail_fails_the_attempt(place: str) -> None:
    """S110: it uses an attempt, and is no failure of the service."""
    async with Fairlane(place, config={}, breakers=[mail(on_open="fail", open_for=60)]) as app:

        @app.task(name="send", max_attempts=1)
        async def send() -> None:
            async with app.breaker("mail"):
                pass

        await app.breakers.aopen("mail", reason="maintenance")
        job = await send.using(tenant="acme").aenqueue()
        await WorkerRuntime(app, settings=QUICK, burst=True).run()
        dead = await job.arefresh()
        assert (dead.state, dead.failures) == (State.DEAD, 1)
        assert dead.attempts[-1].error_class is ErrorClass.RETRYABLE
        assert (await app.breakers.aget("mail")).failed == 0


async def test_meeting_another_one_open_is_no_failure_of_its_own(place: str) -> None:
    """S110: the attempt fails; the breaker of its task heard nothing of what that protects."""
    both = [mail(on_open="fail", open_for=60), Breaker("crm", failures=1)]
    async with Fairlane(place, config={}, breakers=both) as app:

        @app.task(name="sync", breaker="crm", max_attempts=1)
        async def sync() -> None:
            async with app.breaker("mail"):
                pass

        await app.breakers.aopen("mail", reason="maintenance")
        job = await sync.using(tenant="acme").aenqueue()
        await WorkerRuntime(app, settings=QUICK, burst=True).run()
        assert (await job.arefresh()).state is State.DEAD
        found = await app.breakers.aget("crm")
        assert (found.state, found.failed) == ("closed", 0)


async def test_a_handler_may_catch_it(app: Fairlane) -> None:
    """S110: `BreakerOpen` says until when."""
    met: list[BreakerOpen] = []

    @app.task(name="send")
    async def send() -> None:
        try:
            async with app.breaker("mail"):
                pass
        except BreakerOpen as error:
            met.append(error)

    async with Working(app):
        opened = await app.breakers.aopen("mail", reason="maintenance", until=_in_an_hour())
        job = await send.using(tenant="acme").aenqueue()
        await until_async(lambda: _is_over(app, job), True)
    assert (await job.arefresh()).state is State.SUCCEEDED
    assert [one.until for one in met] == [opened.until]


def _in_an_hour() -> datetime:
    return (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
