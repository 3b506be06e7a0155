"""Looking inside a worker through the store: status, dumps, orders; and what is never a stall (S31, S70)."""

from __future__ import annotations

import asyncio
import logging
import threading
from uuid import uuid4

import msgspec
import pytest

from fairlane import Context, Fairlane, State, WorkerNotFound
from fairlane.app.admin.worker_status import LaneStatus, SlotStatus, WorkerAnswer, WorkerStatus
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.stacks import render
from fairlane.store.contract.mailbox import MAX_ANSWER_SIZE, AskRequest, ReadAnswerRequest
from fairlane.worker.inspection import questions
from fairlane.worker.inspection.dump_signal import write_dump
from tests.worker.world import LONG, LeapingClock, World, changed, events, until, until_async


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers look for questions more often than every two seconds."""
    monkeypatch.setattr(questions, "LOOK_EVERY", SECOND // 50)


async def test_a_status_says_what_each_slot_does(world: World, app: Fairlane) -> None:
    """S70: tenant, job, task, attempt, age, and where the handler runs."""
    go = threading.Event()

    @app.task(name="plain")
    def plain() -> None:
        go.wait(30)

    @app.task(name="async")
    async def asynchronous() -> None:
        while not go.is_set():  # noqa: ASYNC110 (set by the test, in no loop)
            await asyncio.sleep(0.01)

    async with world.working(app) as worker:
        one = await plain.using(tenant="acme").aenqueue()
        two = await asynchronous.using(tenant="globex").aenqueue()
        await until(lambda: worker.running == 2)
        status = await app.workers.astatus(worker.id)
        go.set()
    assert (status.id, status.state, status.abandoned) == (worker.id, "busy", 0)
    assert status.loop_lag is not None
    found = {(slot.job, slot.tenant, slot.task, slot.attempt, slot.runs_in) for slot in status.slots}
    assert found == {
        (str(one.id), "acme", "plain", 1, "thread"),
        (str(two.id), "globex", "async", 1, "loop"),
    }
    assert [(lane.running, lane.waiting) for lane in status.lanes] == [(2, 0)]
    assert status.memory is None or status.memory > 1_000_000


async def test_a_dump_shows_where_a_coroutine_waits_but_no_values(world: World, app: Fairlane) -> None:
    """S70, S6: to the innermost await, across functions; arguments may be secret."""
    go = asyncio.Event()

    async def inner(password: str) -> None:
        await go.wait()
        assert password

    @app.task(name="outer")
    async def outer(password: str) -> None:
        await inner(password)

    async with world.working(app) as worker:
        await outer.using(tenant="acme").aenqueue("hunter2")
        await until(lambda: worker.running == 1)
        text = await app.workers.adump(worker.id, memory=True)
        go.set()
    assert "in outer\n" in text
    assert "in inner\n" in text
    assert "hunter2" not in text
    assert "BYTES" in text


async def test_a_paused_worker_claims_nothing_until_it_is_resumed(world: World, app: Fairlane) -> None:
    """S70: what runs goes on, and its state says so."""

    @app.task(name="one")
    async def one() -> None: ...

    async with world.working(app) as worker:
        await app.workers.apause(worker.id)
        await until_async(lambda: _state(app, worker.id), "paused")
        job = await one.using(tenant="acme").aenqueue()
        await app.workers.astatus(worker.id)  # a turn later it is still not claimed
        assert (await job.arefresh()).state is State.READY
        await app.workers.aresume(worker.id)
        assert (await world.ended(job)).state is State.SUCCEEDED


async def _state(app: Fairlane, id: str) -> str:
    return (await app.workers.astatus(id)).state


async def test_a_worker_is_named_by_the_beginning_of_its_id(world: World, app: Fairlane) -> None:
    """S70: if no other begins so; else the error names them."""
    async with world.working(app) as first, world.working(app) as second:
        assert (await app.workers.astatus(first.id[:-1])).id == first.id
        assert (await app.workers.astatus(second.id.removeprefix("worker-"))).id == second.id
        with pytest.raises(WorkerNotFound, match="2 workers begin with 'worker-'"):
            await app.workers.astatus("worker-")
        with pytest.raises(WorkerNotFound, match="no worker 'nobody' is registered"):
            await app.workers.astop("nobody")


async def test_a_question_of_a_newer_version_is_answered_too(world: World, app: Fairlane) -> None:
    """S70: the worker says that it does not know it."""
    async with world.working(app) as worker:
        mailbox, id = app.client.store.mailbox, uuid4()
        request = AskRequest(scope=Scope.all(), id=id, worker=worker.id, kind="dance", valid_for=60 * SECOND)
        assert await mailbox.ask(request)

        async def is_answered() -> bool:
            found = await mailbox.read(ReadAnswerRequest(scope=Scope.all(), id=id))
            return found is not None and b"does not know the question 'dance'" in (found.text or b"")

        await until_async(is_answered, wanted=True)


def test_an_answer_that_is_too_long_is_cut() -> None:
    """S70: a thousand slots and a long dump still fit."""
    slot = SlotStatus(
        lane="main",
        tenant="x" * 128,
        queue="q",
        task="t" * 200,
        job=str(uuid4()),
        attempt=1,
        seconds=1.0,
        runs_in="loop",
    )
    lane = LaneStatus(name="main", slots=1000, running=1000, waiting=0, pending=0)
    status = WorkerStatus(
        id="w",
        state="busy",
        slots=(slot,) * 2_000,
        lanes=(lane,),
        abandoned=0,
        loop_lag=0.0,
        memory=None,
        settled=0,
        failed=0,
    )
    encoded = questions._fitting(WorkerAnswer(status=status, text="ü" * 200_000))
    assert len(encoded) <= MAX_ANSWER_SIZE
    assert len(msgspec.json.decode(encoded, type=WorkerAnswer).status.slots) >= 100


def test_equal_stacks_are_shown_once() -> None:
    """With their owners, of which only some are named."""
    text = render([*((f"task {number}", "here\n") for number in range(30)), ("other", "there\n")])
    assert text.count("here\n") == 2  # here and there
    assert "task 19\n… and 10 more\nhere\n" in text


def test_a_dump_reaches_standard_error_if_logging_is_stuck(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is stuck may hold the lock of a log handler."""
    monkeypatch.setattr("fairlane.runtime.last_words.LOG_TIMEOUT", 0.05)
    handler = logging.NullHandler()
    lock = threading.RLock()
    monkeypatch.setattr(handler, "handle", lambda _: lock.acquire())
    log = logging.getLogger("fairlane.worker")
    log.addHandler(handler)
    with lock:
        write_dump("w1", "stalled", lambda: "the stacks")
        log.removeHandler(handler)
    assert "w1: dump, stalled\nthe stacks\n" in capfd.readouterr().err


# ── stalls ────────────────────────────────────────────────────────────────────


async def test_long_jobs_are_no_stall(world: World, app: Fairlane, caplog: pytest.LogCaptureFixture) -> None:
    """S31: every slot is busy for hours, jobs wait, and nobody is stuck: no handler is past its timeout."""
    clock, go = LeapingClock(), asyncio.Event()

    @app.task(name="long", timeout=86_400)
    async def long() -> None:
        await go.wait()

    @app.task(name="unbounded", timeout=None)
    async def unbounded() -> None:
        await go.wait()

    settings = changed(LONG, stalled_after=60 * SECOND)
    async with world.working(app, clock=clock, settings=settings, lanes=["main"]) as worker:
        for _ in range(40):
            await long.using(tenant="acme").aenqueue()
            await unbounded.using(tenant="globex").aenqueue()
        await until(lambda: worker.running >= 12)
        for _ in range(3):
            clock.leap(3_600)
            before = MachineClock().elapsed()
            await until(lambda before=before: MachineClock().elapsed() - before > 2 * SECOND)  # type: ignore[misc]
        go.set()
        await until(lambda: worker.settled >= 20)
    assert "worker_stalled" not in events(caplog)


# ── settings ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("action", ["hand_back", "fail"])
async def test_a_job_of_an_unknown_task_goes_back_or_is_dead(
    world: World, app: Fairlane, action: str
) -> None:
    """S33: by `unknown_task`; a version that is newer than the worker's goes back in any case."""

    @app.task(name="known", version=2)
    def newer(ctx: Context) -> None: ...

    @app.task(name="gone")
    def gone() -> None: ...

    other = world.app()

    @other.task(name="known")
    def older(ctx: Context) -> None: ...

    unknown = await gone.using(tenant="acme").aenqueue()
    version = await newer.using(tenant="acme").aenqueue()
    await world.burst(other, settings=changed(LONG, unknown_task=action))
    found = await unknown.arefresh()
    assert found.state is (State.DEAD if action == "fail" else State.DELAYED)
    if action == "fail":
        assert 'unknown_task is "fail"' in str(found.because)
    assert (await version.arefresh()).state is State.DELAYED
