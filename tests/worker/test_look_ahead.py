"""A worker claims short jobs ahead, and nothing that waits is harmed by it (S68); on each store."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlane import Breaker, Context, Fairlane, Job, Lane, State
from fairlane.model.guards.breaker import BreakerState
from fairlane.model.instants import SECOND
from fairlane.store.contract.breakers import BreakerKey, BreakersReply, StoredBreaker
from fairlane.worker.lane_state import LaneState
from fairlane.worker.worker import WorkerRuntime
from tests.acceptance.conftest import PLACES
from tests.stores import MEMORY
from tests.worker.world import LONG, QUICK, World, until

LANE = Lane("main", 4, ["default"])
"""Three slots for anybody, one for a tenant with nothing running."""


@pytest.fixture(params=sorted(PLACES))
async def app(request: pytest.FixtureRequest) -> AsyncIterator[Fairlane]:
    """An application on an empty store of each kind."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as url, Fairlane(url, config={}, lanes=[LANE]) as made:
            yield made


def lane_of(worker: WorkerRuntime) -> LaneState:
    """Return the only lane of a worker."""
    assert worker._parts is not None
    return worker._parts.lanes[0]


class Office:
    """Short jobs that end at once, and long ones that stay until they are let go."""

    def __init__(self, app: Fairlane) -> None:
        """Declare both."""
        self.app = app
        self.let_go = asyncio.Event()
        self.ran: list[str] = []
        self.stays: Counter[str] = Counter()

        @app.task(name="short")
        async def short(ctx: Context) -> None:
            self.ran.append(ctx.tenant)

        @app.task(name="long")
        async def long(ctx: Context) -> None:
            self.stays[ctx.tenant] += 1
            await self.let_go.wait()

        @app.task(name="careful", at_most_once=True)
        async def careful(ctx: Context) -> None:
            self.ran.append(f"careful {ctx.tenant}")

        self.short, self.long, self.careful = short, long, careful

    async def flood(self, tenant: str, number: int) -> list[Job[None]]:
        """Enqueue short jobs."""
        jobs: list[Job[None]] = []
        for at in range(0, number, 1_000):
            size = min(1_000, number - at)
            jobs += await self.app.aenqueue_many(self.short.using(tenant=tenant).bind() for _ in range(size))
        return jobs


async def working(app: Fairlane) -> tuple[WorkerRuntime, asyncio.Task[None]]:
    """Start a worker, and return it with its task."""
    worker = WorkerRuntime(app, settings=QUICK)
    return worker, asyncio.ensure_future(worker.run())


async def stop(worker: WorkerRuntime, running: asyncio.Task[None]) -> None:
    """Stop a worker, and wait for its end."""
    worker.stop()
    await asyncio.wait_for(running, 30)


async def test_short_jobs_are_claimed_ahead_and_each_runs_once(app: Fairlane) -> None:
    """S68: with four slots more than four are claimed; all succeed at their first attempt."""
    office = Office(app)
    jobs = await office.flood("acme", 2_000)
    most = 0
    worker, running = await working(app)
    await until(lambda: worker.is_ready)
    while worker.settled < 2_000:
        most = max(most, lane_of(worker).claimed)
        await asyncio.sleep(0)
    await stop(worker, running)
    assert most > LANE.slots
    assert len(office.ran) == 2_000
    assert {(job.state, job.attempt) for job in [await job.arefresh() for job in jobs[::97]]} == {
        (State.SUCCEEDED, 1)
    }


async def test_what_waits_goes_back_when_the_jobs_before_it_turn_out_long(app: Fairlane) -> None:
    """S68: as if it had not been claimed; others may run it meanwhile."""
    office = Office(app)
    await office.flood("acme", 300)
    worker, running = await working(app)
    await until(lambda: len(office.ran) == 300)
    # The lane has learned that jobs are short: it claims these ahead.
    await app.aenqueue_many(office.long.using(tenant="acme").bind() for _ in range(12))
    await until(lambda: office.stays["acme"] == LANE.slots - 1)
    lane = lane_of(worker)
    await until(lambda: lane.slots.waiting == 0 and lane.claimed == LANE.slots - 1 and not lane.pending)
    held = [job async for job in app.jobs.aeach(state=State.READY)]
    assert len(held) == 12 - (LANE.slots - 1)
    assert {(job.attempt, job.failures, len(job.attempts)) for job in held} == {(0, 0, 0)}
    office.let_go.set()
    await until(lambda: office.stays["acme"] == 12)
    await stop(worker, running)


async def test_a_newcomer_starts_at_once_beside_what_waits(app: Fairlane) -> None:
    """S48, S68: the last slot is for a tenant with nothing running, however much of another's waits."""
    office = Office(app)
    await office.flood("acme", 300)
    worker, running = await working(app)
    await until(lambda: len(office.ran) == 300)
    await app.aenqueue_many(office.long.using(tenant="acme").bind() for _ in range(12))
    await until(lambda: office.stays["acme"] == LANE.slots - 1)
    await office.short.using(tenant="quiet").aenqueue()
    await until(lambda: "quiet" in office.ran)
    assert office.stays["acme"] == LANE.slots - 1
    office.let_go.set()
    await stop(worker, running)


async def test_a_worker_that_stops_gives_back_what_waits(app: Fairlane) -> None:
    """S32, S68: nothing is lost, nothing runs twice, and no attempt is spent."""
    office = Office(app)
    await office.flood("acme", 3_000)
    worker, running = await working(app)
    await until(lambda: worker.settled > 100)
    await stop(worker, running)
    done = len(office.ran)
    counts = await app.jobs.acount()
    assert (counts[State.SUCCEEDED], counts[State.READY], counts[State.RUNNING]) == (done, 3_000 - done, 0)
    left = [job async for job in app.jobs.aeach(state=State.READY)]
    assert {(job.attempt, len(job.attempts)) for job in left} <= {(0, 0)}


async def test_careful_jobs_between_short_ones_all_run(app: Fairlane) -> None:
    """S68: they are claimed for free slots alone, and hold nobody up."""
    office = Office(app)
    for _ in range(20):
        await office.flood("acme", 50)
        await office.careful.using(tenant="acme").aenqueue()
    worker, running = await working(app)
    await until(lambda: len(office.ran) == 1_020)
    await until(lambda: worker.settled == 1_020)
    await stop(worker, running)
    assert Counter(office.ran) == {"acme": 1_000, "careful acme": 20}


# ── on one store: what does not depend on it ─────────────────────────────────


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An empty file behind a watched store."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = World(Path(folder))
        yield made
        made.is_over = True
        for one in made.apps:
            await one.aclose()


def asked_ahead(world: World) -> list[int]:
    """Return how many jobs each claim was for ahead of a free slot."""
    settles = (one.claim for one in world.requests("settle"))
    return [one.ahead for one in (*world.requests("claim"), *settles) if one is not None]


async def test_what_waits_goes_back_when_its_worker_hears_that_its_breaker_opened(world: World) -> None:
    """S58, S68: at once, not started; all run in the end, at their first attempt."""
    app = world.app(lanes=[Lane("main", 4, ["default"])])
    memory, waiting, ran = app.client.breaker_memory, 0, 0
    opened = BreakerState(slots=1, open_until=world.now() + 3_600 * SECOND)

    @app.task(name="send", breaker=Breaker("mail"))
    async def send() -> None:
        nonlocal ran, waiting
        ran += 1
        if not waiting and lane_of(worker).slots.waiting:
            waiting = lane_of(worker).slots.waiting
            memory._hear(BreakersReply(world.now(), (StoredBreaker(BreakerKey("mail"), opened),)))

    jobs = await app.aenqueue_many(send.using(tenant="acme").bind() for _ in range(400))
    worker, running = await working(app)
    await until(lambda: worker.settled >= 400 and ran == 400)
    await stop(worker, running)
    settled = [one for request in world.requests("settle") for one in request.settlements]
    assert sum(one.is_unstarted for one in settled) >= waiting > 0
    assert {(job.state, job.attempt) for job in [await job.arefresh() for job in jobs]} == {
        (State.SUCCEEDED, 1)
    }


@pytest.mark.parametrize(("prefetch", "expected"), [(0, {0}), (7, set(range(8)))])
async def test_prefetch_bounds_what_is_claimed_ahead(world: World, prefetch: int, expected: set[int]) -> None:
    """S68: 0 turns it off."""
    app = world.app(lanes=[Lane("main", 4, ["default"], prefetch=prefetch)])
    office = Office(app)
    await office.flood("acme", 400)
    await world.burst(app)
    assert len(office.ran) == 400
    assert set(asked_ahead(world)) <= expected
    assert bool(max(asked_ahead(world))) == bool(prefetch)


async def test_jobs_that_take_longer_than_a_round_trip_are_not_claimed_ahead(world: World) -> None:
    """S68: their slots are free for long enough to ask."""
    app = world.app(lanes=[LANE])

    @app.task(name="slow")
    async def slow() -> None:
        await asyncio.sleep(0.5)  # far longer than a round trip to a file, also on a busy machine

    await app.aenqueue_many(slow.using(tenant=f"t{n % 5}").bind() for n in range(12))
    await world.burst(app)
    assert set(asked_ahead(world)) == {0}


async def test_a_job_does_not_inherit_the_context_of_the_one_before(world: World) -> None:
    """S9: the end of one tenant's handler makes room for another's, which must not see its variables."""
    variable: ContextVar[str] = ContextVar("variable", default="nobody")
    app = world.app(lanes=[Lane("main", 1, ["default"])])
    seen: list[tuple[str, str]] = []

    @app.task(name="look")
    async def look(ctx: Context) -> None:
        seen.append((ctx.tenant, variable.get()))
        variable.set(ctx.tenant)

    await app.aenqueue_many(look.using(tenant=f"t{n % 7}").bind() for n in range(200))
    await world.burst(app)
    assert len(seen) == 200
    assert {found for _, found in seen} == {"nobody"}
    assert max(asked_ahead(world)) > 0, "none was started by another's end"


async def test_what_waits_goes_back_while_a_handler_blocks_the_loop(world: World) -> None:
    """S68: the portal thread hands it back, since the loop cannot; the worker goes on afterwards."""
    app = world.app(lanes=[LANE])
    office = Office(app)
    handed_back: list[int] = []

    @app.task(name="block", priority=10)
    async def block() -> None:
        deadline = time.monotonic() + 20
        while not handed_back and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 (the point of it)
            settlements = [one for request in world.requests("settle") for one in request.settlements]
            handed_back.extend(1 for one in settlements if one.is_unstarted)

    await office.flood("acme", 300)
    async with world.working(app, settings=LONG) as worker:
        await until(lambda: len(office.ran) == 300)
        shorts = (office.short.using(tenant="acme").bind() for _ in range(60))
        await app.aenqueue_many([block.using(tenant="acme").bind(), *shorts])
        await until(lambda: worker.settled == 361)
    assert handed_back
    assert len(office.ran) == 360
    records = [job async for job in app.jobs.aeach(state=State.SUCCEEDED)]
    assert {job.attempt for job in records} == {1}


async def test_an_outage_while_the_loop_is_blocked_loses_nothing(world: World) -> None:
    """S66, S68: what could not be handed back is started when the loop turns again."""
    app = world.app(lanes=[LANE])
    office = Office(app)

    @app.task(name="block", priority=10)
    async def block() -> None:
        world.away = frozenset({"settle"})
        asked = len(world.requests("settle"))
        deadline = time.monotonic() + 20
        while len(world.requests("settle")) < asked + 2 and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 (the point of it)
        world.away = frozenset()

    await office.flood("acme", 300)
    async with world.working(app, settings=LONG) as worker:
        await until(lambda: len(office.ran) == 300)
        shorts = (office.short.using(tenant="acme").bind() for _ in range(60))
        await app.aenqueue_many([block.using(tenant="acme").bind(), *shorts])
        await until(lambda: worker.settled == 361)
    assert len(office.ran) == 360


async def test_settlements_travel_together_while_jobs_wait(world: World) -> None:
    """S47: one call brings more than the slots alone could have ended, and none is left behind."""
    app = world.app(lanes=[Lane("main", 4, ["default"], headroom=0)])
    office = Office(app)
    await office.flood("acme", 2_000)
    worker = await world.burst(app)
    assert worker.settled == 2_000
    calls = [one for one in world.requests("settle") if one.settlements]
    assert max(len(one.settlements) for one in calls) > 4  # more than the slots could have brought
    assert sum(len(one.settlements) for one in calls) == 2_000
