"""The thread of a plain handler goes on with the next job of its lane, and every promise of a start holds."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import msgspec
import pytest

from fairlane import Context, Fairlane, State
from fairlane.worker.attempts.run_handler import HandlerThreads
from fairlane.worker.worker import WorkerRuntime
from tests.stores import MEMORY
from tests.worker.test_look_ahead import LANE, stop
from tests.worker.world import QUICK, until

_seen: ContextVar[str] = ContextVar("_seen", default="fresh")


@pytest.fixture
async def app() -> AsyncIterator[Fairlane]:
    """An application on an empty file."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with Fairlane(f"sqlite:///{Path(folder)}/jobs.db", config={}, lanes=[LANE]) as made:
            yield made


class Workshop:
    """Plain jobs that end at once, and others that stay until they are let go."""

    def __init__(self, app: Fairlane) -> None:
        """Declare all."""
        self.app = app
        self.let_go = threading.Event()
        self.may_end = threading.Event()
        self.ran: list[str] = []
        self.variables: set[str] = set()
        self.threads: set[int] = set()
        self.running: Counter[str] = Counter()
        self.most = 0
        self._lock = threading.Lock()

        @app.task(name="short")
        def short(ctx: Context) -> None:
            with self._lock:
                self.running[ctx.tenant] += 1
                self.most = max(self.most, self.running.total())
            self.variables.add(_seen.get())
            _seen.set(ctx.tenant)
            self.threads.add(threading.get_ident())
            with self._lock:
                self.running[ctx.tenant] -= 1
                self.ran.append(ctx.tenant)

        @app.task(name="long")
        def long(ctx: Context) -> None:
            with self._lock:
                self.running[ctx.tenant] += 1
            self.let_go.wait(60)

        @app.task(name="held")
        def held() -> None:
            self.may_end.wait(60)

        @app.task(name="awaited")
        async def awaited(ctx: Context) -> None:
            self.ran.append(f"awaited {ctx.tenant}")

        self.short, self.long, self.held, self.awaited = short, long, held, awaited

    async def flood(self, tenant: str, number: int) -> None:
        """Enqueue short jobs."""
        for at in range(0, number, 1_000):
            size = min(1_000, number - at)
            await self.app.aenqueue_many(self.short.using(tenant=tenant).bind() for _ in range(size))


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the jobs that a thread has gone on with."""
    found: list[int] = []
    run_one = HandlerThreads._run_one

    def counted(*args: object, **named: object) -> object:
        following = run_one(*args, **named)  # type: ignore[arg-type]
        if following is not None:
            found.append(following.claim.job.attempt)
        return following

    monkeypatch.setattr(HandlerThreads, "_run_one", counted)
    return found


async def test_a_thread_goes_on_with_what_waits_and_each_job_runs_once(
    app: Fairlane, passed_on: list[int]
) -> None:
    """S47: many jobs for one hand-over, never more at once than slots, each in a context of its own."""
    shop = Workshop(app)
    await shop.flood("acme", 2_000)
    worker = WorkerRuntime(app, settings=QUICK, burst=True)
    await asyncio.wait_for(worker.run(), 60)
    counts = await app.jobs.acount()
    assert (len(shop.ran), counts[State.SUCCEEDED]) == (2_000, 2_000)
    assert len(passed_on) > 200
    assert set(passed_on) == {1}
    assert shop.most <= LANE.slots
    assert shop.variables == {"fresh"}
    assert len(shop.threads) <= LANE.slots


async def test_a_thread_leaves_the_last_slots_to_tenants_with_nothing_running(
    app: Fairlane, passed_on: list[int]
) -> None:
    """S48: while a newcomer holds the last slot, the next slot that is free is for a newcomer, too."""
    shop = Workshop(app)
    await shop.flood("acme", 1_000)
    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    await until(lambda: len(shop.ran) == 1_000)
    await shop.long.using(tenant="quiet").aenqueue()
    await until(lambda: shop.running["quiet"] == 1)
    await app.aenqueue_many(shop.long.using(tenant="acme").bind() for _ in range(6))
    await until(lambda: shop.running["acme"] == LANE.slots - 2)
    await shop.long.using(tenant="third").aenqueue()
    await until(lambda: shop.running["third"] == 1)
    assert shop.running["acme"] == LANE.slots - 2
    shop.let_go.set()
    await stop(worker, running)
    assert passed_on


async def test_no_job_starts_beyond_max_jobs(app: Fairlane, passed_on: list[int]) -> None:
    """The last start begins the drain, whoever made those before it."""
    shop = Workshop(app)
    await shop.flood("acme", 2_000)
    worker = WorkerRuntime(app, settings=msgspec.structs.replace(QUICK, max_jobs=700))
    await asyncio.wait_for(worker.run(), 60)
    assert len(shop.ran) == 700
    assert (await app.jobs.acount())[State.READY] == 1_300
    assert passed_on


async def test_an_end_is_settled_while_its_thread_runs_the_next_job(
    app: Fairlane, passed_on: list[int]
) -> None:
    """However long the next one takes, nothing of the one before waits for it."""
    shop = Workshop(app)
    worker = WorkerRuntime(app, settings=QUICK)
    running = asyncio.ensure_future(worker.run())
    rounds = 1
    while not await one_thread_went_on(shop, worker, passed_on):
        rounds += 1
        assert rounds < 20
    await stop(worker, running)


async def one_thread_went_on(shop: Workshop, worker: WorkerRuntime, passed_on: list[int]) -> bool:
    """End one job while a long one waits for its slot and no other thread ends; see it settled.

    Return whether its thread went on with the long one. On a slow machine that one may have gone back.
    """
    settled, stays = worker.settled, shop.running["acme"]
    await shop.flood("acme", 500)  # so the lane learns to claim ahead
    await until(lambda: worker.settled == settled + 500)
    passed_on.clear()
    shop.may_end.clear()
    shop.let_go.clear()
    calls = [shop.held, *[shop.long] * (LANE.slots - 1)]  # one more than may run
    await shop.app.aenqueue_many(call.using(tenant="acme").bind() for call in calls)
    await until(lambda: shop.running["acme"] == stays + LANE.slots - 2)
    shop.may_end.set()
    await until(lambda: worker.settled == settled + 501, "the end is not settled")
    shop.let_go.set()
    await until(lambda: worker.settled == settled + 500 + LANE.slots)
    return bool(passed_on)


async def test_async_jobs_between_plain_ones_start_in_their_turn(app: Fairlane) -> None:
    """A thread passes over nothing: what it cannot run is the loop's to start."""
    shop = Workshop(app)
    calls = [shop.short.using(tenant="acme"), shop.awaited.using(tenant="acme")]
    await app.aenqueue_many(call.bind() for _ in range(400) for call in calls)
    worker = WorkerRuntime(app, settings=QUICK, burst=True)
    await asyncio.wait_for(worker.run(), 60)
    assert Counter(shop.ran) == {"acme": 400, "awaited acme": 400}
    halves = Counter(shop.ran[:400])
    assert 150 <= halves["acme"] <= 250


async def test_a_payload_that_cannot_be_read_ends_its_own_job_only(
    app: Fairlane, passed_on: list[int]
) -> None:
    """S33: also if a thread meets it, as most do; the jobs between run."""
    shop = Workshop(app)

    @app.task(name="note")
    def note(text: str) -> None:
        shop.ran.append(text)

    await app.aenqueue_many(
        note.using(tenant="acme").bind("good" if at % 2 else "rotten") for at in range(1_000)
    )
    url = app.client.settings.url
    assert url is not None
    database = apsw.Connection(url.removeprefix("sqlite:///"))
    database.execute("update body set payload = cast(replace(payload, 'rotten', 'broken') as blob)")
    database.close()
    await asyncio.wait_for(WorkerRuntime(app, settings=QUICK, burst=True).run(), 60)
    counts = await app.jobs.acount()
    assert shop.ran == ["good"] * 500
    assert (counts[State.SUCCEEDED], counts[State.DEAD]) == (500, 500)
    assert passed_on
