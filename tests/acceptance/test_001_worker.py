"""Description B, the worker: right handlers, slots, order, timeouts, errors, unknown and broken jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import apsw
import msgspec
import psycopg
import pytest
from redis import Redis

from fairlane import Backoff, ErrorClass, Job, Lane, Queue, Share, State
from fairlane.store.postgres.location import Location
from fairlane.store.redis.keys import KeyNames
from tests.acceptance.presets import work
from tests.acceptance.working import Stage, at_work, burst, until, until_ended
from tests.acceptance.world import World


def noting(seen: list[Any]) -> Callable[[Any], None]:
    """Return a handler that notes its argument."""

    def note(value: Any) -> None:
        seen.append(value)

    return note


async def test_001_cp2_1_a_strict_lane_takes_the_more_urgent_queue_first(world: World) -> None:
    """Whatever was enqueued before."""
    app = world.app(
        queues=[Queue("low"), Queue("high")], lanes=[Lane("main", 1, ["high", "low"], order="strict")]
    )
    seen: list[str] = []
    for queue in ("low", "high"):
        task = app.task(name=f"note-{queue}", queue=queue)(noting(seen))
        await app.aenqueue_many([task.bind(queue)] * 3)
    await burst(app)
    assert seen == ["high"] * 3 + ["low"] * 3


async def test_001_cp2_1_a_weighted_lane_takes_turns_by_weight(world: World) -> None:
    """Three to one while both have jobs."""
    app = world.app(queues=[Queue("low"), Queue("high")], lanes=[Lane("main", 1, {"high": 3, "low": 1})])
    seen: list[str] = []
    for queue in ("low", "high"):
        task = app.task(name=f"note-{queue}", queue=queue)(noting(seen))
        await app.aenqueue_many([task.bind(queue)] * 6)
    await burst(app)
    assert seen[:8].count("high") == 6
    assert len(seen) == 12


async def test_001_cp2_2_the_right_handler_gets_the_right_arguments(world: World) -> None:
    """Plain and async ones, by position and by name, with their types."""
    app = world.app()
    seen: dict[str, object] = {}

    @app.task(name="plain")
    def plain(when: datetime, *, copies: int = 1) -> None:
        seen["plain"] = (when, copies)

    @app.task(name="async")
    async def other(rows: set[int]) -> None:
        seen["async"] = rows

    moment = datetime.fromisoformat("2024-02-29T12:00:00.000001+01:00")
    await plain.aenqueue(moment, copies=2)
    await other.aenqueue({1, 2})
    await burst(app)
    assert seen == {"plain": (moment, 2), "async": {1, 2}}


async def test_001_cp2_5_three_slots_run_three_of_five_long_jobs_then_two(world: World, stage: Stage) -> None:
    """Never four; the others start as slots become free."""
    app = world.one_lane(3)
    hold = app.task(name="hold")(stage.handler("hold"))
    jobs = await app.aenqueue_many([hold.bind(number) for number in range(5)])
    async with at_work(app):
        await until(lambda: stage.present["hold"] == 3)
        assert (await app.jobs.acount())[State.READY] == 2
        stage.let_go("hold", 0, 1, 2)
        await until(lambda: len(stage.started) == 5)
        assert stage.present["hold"] == 2
        stage.let_go("hold")
        assert [await job.aresult(60) for job in jobs] == list(range(5))
    assert stage.most["hold"] == 3


async def test_001_cp2_6_a_handler_is_ended_at_its_timeout(world: World) -> None:
    """After about a second, long before its end, and it failed as a timeout."""
    app = world.app()
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    job = await app.task(name="hang", timeout=1, max_attempts=1)(hang).aenqueue()
    started = asyncio.get_running_loop().time()
    await burst(app)
    assert ended.is_set()
    assert 1 <= asyncio.get_running_loop().time() - started < 30  # of the sixty that it would take
    (attempt,) = (await job.arefresh()).attempts
    assert (attempt.outcome, attempt.error_class) == ("failed", ErrorClass.TIMEOUT)


async def test_001_fm_5_a_runaway_handler_is_ended_and_retried(world: World) -> None:
    """Its second attempt succeeds."""
    app = world.app()
    attempts: list[int] = []

    async def runaway() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            await asyncio.sleep(60)
        return "done"

    task = app.task(name="runaway", timeout=1, retry=Backoff.delays(5))(runaway)
    job = await task.aenqueue()
    await burst(app)
    assert (
        await job.arefresh()
    ).because == "retry: timeout: the handler was stopped: it ran longer than its timeout"
    world.advance(5)
    await burst(app)
    assert await job.aresult(1) == "done"


async def test_001_cp2_7_a_paused_queue_runs_nothing_until_it_is_resumed(world: World) -> None:
    """Then everything; other queues go on meanwhile."""
    app = world.one_lane(4, "default", "other")
    seen: list[int] = []
    note = app.task(name="note")(noting(seen))
    await app.queues.apause("default", reason="deploy")
    async with at_work(app):
        jobs = await app.aenqueue_many([note.bind(number) for number in range(5)])
        await (await note.using(queue="other").aenqueue(100)).aresult(60)
        assert seen == [100]
        assert (await app.jobs.aexplain(jobs[0].id)).reason == "paused"
        await app.queues.aresume("default")
        for job in jobs:
            await job.aresult(60)
    assert (seen[0], sorted(seen[1:])) == (100, [0, 1, 2, 3, 4])  # side by side, in threads


async def test_001_mg_3_five_jobs_run_at_once_with_five_slots(world: World) -> None:
    """Each waits for the four others, so one after the other none would end."""
    app = world.one_lane(5)
    barrier = asyncio.Barrier(5)

    async def meet() -> None:
        await barrier.wait()

    await app.aenqueue_many([app.task(name="meet")(meet).bind()] * 5)
    await burst(app)
    assert (await app.jobs.acount())[State.SUCCEEDED] == 5


async def test_001_mg_5_a_job_scheduled_five_seconds_ahead_runs_then(world: World) -> None:
    """By the store's clock; not in the pass before."""
    app = world.app()
    job = await app.task(name="work")(work).using(delay=5).aenqueue(1)
    world.advance(4.9)
    await burst(app)
    assert (await job.arefresh()).state is State.DELAYED
    world.advance(0.1)
    await burst(app)
    ended = await job.arefresh()
    assert ended.attempts[0].started_at - ended.enqueued_at == timedelta(seconds=5)


async def test_001_mg_10_a_hundred_quick_jobs_run_once_each(world: World) -> None:
    """With five slots."""
    app = world.one_lane(5)
    seen: list[int] = []

    async def note(number: int) -> None:
        seen.append(number)

    task = app.task(name="note")(note)
    await app.aenqueue_many([task.bind(number) for number in range(100)])
    await burst(app)
    assert sorted(seen) == list(range(100))
    assert (await app.jobs.acount())[State.SUCCEEDED] == 100


async def test_001_ix_1_the_happy_path(world: World) -> None:
    """Enqueued, run once, its result read."""
    app = world.app()
    runs: list[int] = []

    async def add(a: int, b: int) -> dict[str, int]:
        runs.append(a)
        return {"sum": a + b}

    task = app.task(name="add")(add)
    async with at_work(app):
        job = await task.aenqueue(2, b=3)
        assert await job.aresult(60) == {"sum": 5}
    assert runs == [2]
    ended = await job.arefresh()
    assert (ended.state, ended.attempt) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ValueError("no"), "ValueError"),
        (SystemExit(3), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_001_wk_4_what_a_handler_raises_never_ends_the_worker(
    world: World, error: BaseException, name: str, is_async: bool
) -> None:
    """The attempt failed; the next job runs."""
    app = world.app()

    async def later() -> None:
        raise error

    def now() -> None:
        raise error

    bad = await app.task(name="bad", max_attempts=1)(later if is_async else now).aenqueue()
    good = app.task(name="good")(work)
    async with at_work(app):
        await until_ended(bad)
        assert await (await good.aenqueue(7)).aresult(60) == 7
    ended = await bad.arefresh()
    assert (ended.state, ended.attempts[0].error_type) == (State.DEAD, name)


def flip_a_bit(world: World, job: Job[Any]) -> None:
    """Change one bit of a stored payload, behind the store's back."""
    if world.place.startswith("sqlite"):
        with closing(apsw.Connection(str(world.folder / "fairlane.db"))) as db:
            ((payload,),) = db.execute("SELECT payload FROM body WHERE id = ?", (job.id.bytes,))
            db.execute("UPDATE body SET payload = ? WHERE id = ?", (flipped(payload), job.id.bytes))
        return
    if world.place.startswith(("redis", "unix")):
        flip_a_bit_on_redis(world.place, job)
        return
    place = Location(world.place)
    with psycopg.connect(place.dsn, options=f"-c search_path={place.schema}") as link:
        ((payload,),) = link.execute("SELECT payload FROM job WHERE id = %s", (job.id,))
        link.execute("UPDATE job SET payload = %s WHERE id = %s", (flipped(payload), job.id))


def flip_a_bit_on_redis(place: str, job: Job[Any]) -> None:
    """Change one bit in the body that a Redis server keeps."""
    url, _, prefix = place.partition("?prefix=")
    bodies = KeyNames(prefix)("bodies")
    with Redis.from_url(url) as client:
        payload, *rest = msgspec.msgpack.decode(client.hget(bodies, job.id.bytes))
        client.hset(bodies, job.id.bytes, msgspec.msgpack.encode([flipped(payload), *rest]))


def flipped(payload: bytes) -> bytes:
    """Return a payload with the lowest bit of its first byte turned round."""
    return bytes([payload[0] ^ 1, *payload[1:]])


async def rotten_among_good(world: World) -> tuple[Job[Any], list[Job[Any]], list[int]]:
    """Run three jobs, the second of which has a flipped bit; return it, the others, and what ran."""
    app = world.app()
    ran: list[int] = []

    async def note(number: int) -> None:
        ran.append(number)

    task = app.task(name="note")(note)
    jobs = await app.aenqueue_many([task.bind(number) for number in range(3)])
    flip_a_bit(world, jobs[1])
    await burst(app)
    bad, *good = [await job.arefresh() for job in (jobs[1], jobs[0], jobs[2])]
    return bad, good, ran


async def test_001_en_9_a_flipped_bit_makes_a_job_dead_and_the_others_go_on(world: World) -> None:
    """Its handler is not entered."""
    bad, good, ran = await rotten_among_good(world)
    assert bad.state is State.DEAD
    assert [job.state for job in good] == [State.SUCCEEDED] * 2
    assert ran == [0, 2]


async def test_001_fm_6_an_undecodable_job_is_a_dead_letter_with_its_reason(world: World) -> None:
    """On the first attempt, of a class of its own; the worker goes on."""
    bad, _, _ = await rotten_among_good(world)
    (attempt,) = bad.attempts
    assert (attempt.error_class, bad.attempt) == (ErrorClass.UNDECODABLE, 1)
    assert bad.because is not None
    assert bad.because.startswith("failed: ")


async def test_001_fm_11_corruption_is_found_by_the_checksum(world: World) -> None:
    """The message has both checksums, and the raw bytes stay stored."""
    bad, _, _ = await rotten_among_good(world)
    assert "checksum" in (bad.attempts[0].message or "")
    assert (await world.record(bad)).payload[1:].startswith(b'"v":1')


async def test_001_wk_3_a_job_without_a_handler_is_handed_back(world: World) -> None:
    """No failure is counted; it says what it waits for, and runs where its task is known."""
    sender = world.app()
    job = await sender.task(name="elsewhere")(work).aenqueue(7)
    stranger = world.app()
    await burst(stranger)
    waiting = await job.arefresh()
    assert (waiting.state, waiting.because, waiting.failures) == (State.DELAYED, "unknown_task", 0)
    world.advance(5)
    await burst(sender)
    assert await job.aresult(1) == 7


async def test_001_nf_10_one_misbehaving_queue_does_not_block_the_others(world: World, stage: Stage) -> None:
    """It may hold two of four slots; the rest of them go on."""
    app = world.app(
        queues=[Queue("bad"), Queue("good")],
        lanes=[Lane("main", 4, {"bad": Share(max_slots=2), "good": Share()})],
    )
    hang = app.task(name="hang", queue="bad")(stage.handler("hang"))
    await app.aenqueue_many([hang.bind(number) for number in range(20)])
    good = app.task(name="good", queue="good")(work)
    async with at_work(app):
        await until(lambda: stage.present["hang"] == 2)
        jobs = await app.aenqueue_many([good.bind(number) for number in range(50)])
        assert [await job.aresult(60) for job in jobs] == list(range(50))
        assert stage.most["hang"] == 2
        stage.let_go("hang")


async def test_001_ex_19_an_old_payload_that_is_still_queued_is_upcast(world: World) -> None:
    """Two versions behind, step by step."""
    old = world.app()

    async def first(recipient: str) -> None:
        """Version one."""

    await old.task(name="mail")(first).aenqueue("ada")
    new = world.app()
    seen: list[object] = []

    async def third(to: list[str], copies: int) -> None:
        seen.append((to, copies))

    mail = new.task(name="mail", version=3)(third)
    mail.upcast(1)(lambda arguments: {"to": [arguments["recipient"]]})
    mail.upcast(2)(lambda arguments: {**arguments, "copies": 1})
    await burst(new)
    assert seen == [(["ada"], 1)]
