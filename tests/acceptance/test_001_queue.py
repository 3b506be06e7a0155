"""Description B, the queue: order, looking without taking, batches, keys, maximum length."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import UUID, uuid4

import pytest

from fairlane import (
    CancelReply,
    Fail,
    Fairlane,
    InvalidJob,
    JobNotFound,
    Queue,
    QueueFull,
    State,
    Task,
    WrongState,
)
from fairlane.model.instants import MINUTE
from fairlane.model.retry.decision import Cancelled, HandedBack, Snoozed, Succeeded, interpret
from tests.acceptance.presets import work
from tests.acceptance.world import World

BOOM = RuntimeError("boom")


@pytest.fixture
def app(world: World) -> Fairlane:
    """Return an application with two queues."""
    return world.app(queues=[Queue("default"), Queue("other")])


@pytest.fixture
def task(app: Fairlane) -> Task[..., Any]:
    """Return a task of the queue `default`, for one tenant."""
    return app.task(name="work")(work).using(tenant="acme")


async def claimed(world: World, total: int, queue: str = "default") -> list[UUID]:
    """Claim and return the ids in the order served."""
    return [claim.job.id for claim in await world.claim(total, queue)]


def ids(jobs: Any) -> list[UUID]:
    """Return the ids of jobs."""
    return [job.id for job in jobs]


@pytest.mark.parametrize("priority", [0, 5])
async def test_001_cp1_2_three_jobs_of_one_priority_come_out_in_the_order_they_went_in(
    world: World, task: Task[..., Any], priority: int
) -> None:
    """Of one tenant; the store's clock may stand still meanwhile."""
    sent = [await task.using(priority=priority).aenqueue(number) for number in range(3)]
    assert await claimed(world, 3) == ids(sent)


async def test_001_cp1_3_jobs_come_only_from_the_queue_that_is_asked(
    world: World, task: Task[..., Any]
) -> None:
    """Two queues do not mix."""
    here = [await task.aenqueue() for _ in range(2)]
    there = [await task.using(queue="other").aenqueue() for _ in range(2)]
    assert await claimed(world, 10, "other") == ids(there)
    assert await claimed(world, 10, "default") == ids(here)


async def test_001_cp1_5_peek_takes_nothing_and_the_length_is_the_count(
    world: World, app: Fairlane, task: Task[..., Any]
) -> None:
    """What was seen is what is claimed next."""
    sent = await world.fill(task, 12)
    seen = ids(await app.jobs.apeek("default", 5))
    assert seen == ids(sent)[:5]
    assert ids(await app.jobs.apeek("default", 5)) == seen
    assert (await app.jobs.acount(queue="default"))[State.READY] == 12
    assert await claimed(world, 5) == seen


async def test_001_cp1_6_a_thousand_concurrent_enqueues_have_a_thousand_ids(
    app: Fairlane, task: Task[..., Any]
) -> None:
    """Half of them from the event loop, half from threads."""
    inside = [task.aenqueue() for _ in range(500)]
    outside = [asyncio.to_thread(task.enqueue) for _ in range(500)]
    jobs = await asyncio.gather(*inside, *outside)
    assert len({job.id for job in jobs}) == 1_000
    assert (await app.jobs.acount())[State.READY] == 1_000


async def test_001_mg_1_ten_jobs_in_ten_out_in_the_same_order(world: World, task: Task[..., Any]) -> None:
    """One after the other, each settled before the next is taken."""
    sent = [await task.aenqueue(number) for number in range(10)]
    numbers = []
    for job in sent:
        claim = await world.succeed()
        assert claim.job.id == job.id
        numbers.append(world.arguments(claim)["number"])
    assert numbers == list(range(10))
    assert await world.claim(1) == []


async def test_001_mg_9_a_hundred_varied_jobs_are_stored_with_their_metadata_in_order(
    world: World, app: Fairlane
) -> None:
    """Varied payloads, tags and metadata, all read back."""
    draw = random.Random(9)
    tasks = [app.task(name=f"kind-{number}")(work) for number in range(5)]
    sent = [
        await draw.choice(tasks)
        .using(tenant="acme", tags=[f"n={number}"], metadata={"n": number, "text": "é" * draw.randrange(50)})
        .aenqueue(number=draw.randrange(1 << 40))
        for number in range(100)
    ]
    found = (await app.jobs.afind(tenant="acme", limit=100)).items
    assert list(found) == sent[::-1]
    assert ids(await app.jobs.apeek("default", 100)) == ids(sent)
    assert [job.metadata["n"] for job in sent] == list(range(100))


async def test_001_qm_1_a_batch_answers_in_the_order_of_its_items(
    app: Fairlane, task: Task[..., Any]
) -> None:
    """The n-th id belongs to the n-th call."""
    jobs = await app.aenqueue_many([task.using(tags=[f"n={number}"]).bind() for number in range(50)])
    assert [job.tags for job in jobs] == [{f"n={number}"} for number in range(50)]


async def test_001_qm_1_one_invalid_item_stores_none(app: Fairlane, task: Task[..., Any]) -> None:
    """The error names the item."""
    calls = [task.bind() for _ in range(9)]
    with pytest.raises(InvalidJob) as refused:
        await app.aenqueue_many([*calls, task.using(priority=500).bind()])
    assert [(problem.index, problem.field) for problem in refused.value.problems] == [(9, "priority")]
    assert sum((await app.jobs.acount()).values()) == 0


async def test_001_qm_2_the_length_counts_only_ready_jobs(
    world: World, app: Fairlane, task: Task[..., Any]
) -> None:
    """Not what runs, is delayed or is dead."""
    await world.fill(task, 5)
    await task.using(delay=60).aenqueue()
    await world.take()
    await task.using(priority=100, max_attempts=1).aenqueue()
    await world.fail(BOOM)
    counts = await app.jobs.acount(queue="default")
    assert counts[State.READY] == 4
    assert (counts[State.RUNNING], counts[State.DELAYED], counts[State.DEAD]) == (1, 1, 1)


@pytest.mark.parametrize(("there", "asked", "shown"), [(12, None, 10), (3, 50, 3), (0, 5, 0)])
async def test_001_qm_3_peek_shows_ten_unless_told_otherwise(
    world: World, app: Fairlane, task: Task[..., Any], there: int, asked: int | None, shown: int
) -> None:
    """More than there are gives what there is; an empty queue gives nothing."""
    await world.fill(task, there)
    seen = await app.jobs.apeek("default") if asked is None else await app.jobs.apeek("default", asked)
    assert len(seen) == shown


async def test_001_qm_5_a_waiting_job_is_removed_once(
    world: World, app: Fairlane, task: Task[..., Any]
) -> None:
    """The first time yes, the second time it has ended already; it is never handed out."""
    job = await task.aenqueue()
    assert await job.acancel() is CancelReply.CANCELLED
    assert await job.acancel() is CancelReply.FINISHED
    assert await app.jobs.acancel(uuid4()) == {}
    assert await world.claim(1) == []


ENDINGS = {
    State.DELAYED: Snoozed(MINUTE),
    State.READY: HandedBack(),
    State.RUNNING: None,
    State.SUCCEEDED: Succeeded(),
    State.DEAD: interpret(Fail("no"), None, []),
    State.CANCELLED: Cancelled("gone"),
}


@pytest.mark.parametrize("state", State)
async def test_001_qm_6_a_job_is_found_by_its_id_in_every_state(
    world: World, app: Fairlane, task: Task[..., Any], state: State
) -> None:
    """Waiting, running, finished."""
    job = await task.aenqueue(7)
    claim, ending = await world.take(), ENDINGS[state]
    if ending is not None:
        await world.settle(claim, ending)
    found = await app.jobs.aget(job.id)
    assert (found.id, found.state, found.task) == (job.id, state, "work")


async def test_001_qm_6_an_unknown_id_gives_nothing(app: Fairlane) -> None:
    """It is an error of its own, which is also a LookupError."""
    with pytest.raises(JobNotFound):
        await app.jobs.aget(uuid4())


async def test_001_qm_7_a_full_queue_refuses_and_names_itself_and_its_maximum(world: World) -> None:
    """All tenants together; a job that runs has left the queue."""
    app = world.app(queues=[Queue("default", max_waiting=3)])
    task = app.task(name="work")(work)
    await world.declare()
    for tenant in ("acme", "globex", "initech"):
        await task.using(tenant=tenant).aenqueue()
    with pytest.raises(QueueFull, match=r"queue default .* 3") as refused:
        await task.using(tenant="acme").aenqueue()
    assert (refused.value.queue, refused.value.limit) == ("default", 3)
    assert (await app.jobs.acount())[State.READY] == 3
    await world.take()
    await task.using(tenant="acme").aenqueue()


async def test_001_fm_10_an_overflowing_queue_refuses_and_keeps_what_it_has(world: World) -> None:
    """A batch that does not fit whole is refused whole."""
    app = world.app(queues=[Queue("default", max_waiting=10)])
    task = app.task(name="work")(work)
    await world.declare()
    await world.fill(task, 8)
    with pytest.raises(QueueFull):
        await app.aenqueue_many([task.bind()] * 3)
    assert (await app.jobs.acount())[State.READY] == 8
    await app.aenqueue_many([task.bind()] * 2)


async def test_001_qm_8_an_unknown_queue_is_refused(app: Fairlane, task: Task[..., Any]) -> None:
    """The problem names it and those that there are."""
    with pytest.raises(InvalidJob, match="nowhere is not declared"):
        await task.using(queue="nowhere").aenqueue()


async def test_001_qm_8_without_declared_queues_a_task_makes_its_own(world: World) -> None:
    """The setting for the other reading is to declare none; such a queue has the defaults."""
    job = await world.app().task(name="work", queue="brand-new")(work).aenqueue()
    assert job.queue == "brand-new"
    assert await claimed(world, 1, "brand-new") == [job.id]


async def test_001_qm_11_a_queue_is_counted_by_state(
    world: World, app: Fairlane, task: Task[..., Any]
) -> None:
    """Ready, running, delayed for a time or for a retry, dead; other queues are not mixed in."""
    await world.fill(task, 6)
    await world.claim(2)
    await task.using(delay=60).aenqueue()
    await task.using(priority=50).aenqueue()
    assert await world.fail(BOOM) is State.DELAYED
    await task.using(priority=50, max_attempts=1).aenqueue()
    assert await world.fail(BOOM) is State.DEAD
    await task.using(queue="other").aenqueue()
    assert await app.jobs.acount(queue="default") == {
        State.READY: 4,
        State.RUNNING: 2,
        State.DELAYED: 2,
        State.DEAD: 1,
        State.SUCCEEDED: 0,
        State.CANCELLED: 0,
    }
    apart = await app.jobs.acount(queue="default", because=True)
    assert apart.because[State.DELAYED] == {"retry": 1, "time": 1}
    stats = await app.queues.astats("default")
    assert (stats.ready, stats.running, stats.delayed, stats.retrying, stats.dead) == (4, 2, 2, 1, 1)
    assert (stats.because, stats.is_complete) == ({"retry": 1, "time": 1}, True)


async def test_001_ex_11_jobs_are_found_by_tag_key_and_value(app: Fairlane, task: Task[..., Any]) -> None:
    """The same key with another value is another tag."""
    wanted = await task.using(tags=["customer=42", "urgent"]).aenqueue()
    await task.using(tags=["customer=43"]).aenqueue()
    await task.aenqueue()
    assert ids(await app.jobs.afind(tag="customer=42")) == [wanted.id]
    assert ids(await app.jobs.afind(tag="urgent")) == [wanted.id]
    assert ids(await app.jobs.afind(tag="customer")) == []


async def test_001_ex_13_a_delayed_job_is_cancelled_before_it_runs(
    world: World, app: Fairlane, task: Task[..., Any]
) -> None:
    """Its time comes and nothing happens."""
    job = await task.using(delay=60).aenqueue()
    assert await app.jobs.acancel(job.id, reason="ordered twice") == {job.id: CancelReply.CANCELLED}
    world.advance(61)
    assert await world.claim(1) == []
    assert (await job.arefresh()).because == "asked: ordered twice"


async def test_001_ex_13_a_delayed_job_is_changed_before_it_runs(
    world: World, app: Fairlane, task: Task[..., Any]
) -> None:
    """Its time and its arguments; it then runs with the new ones, and can no longer be changed."""
    job = await task.using(delay=60).aenqueue(1)
    await app.jobs.aedit(job.id, delay=10, arguments={"number": 2}, note="ordered two")
    world.advance(10)
    claim = await world.take()
    assert world.arguments(claim) == {"number": 2}
    with pytest.raises(WrongState):
        await app.jobs.aedit(job.id, arguments={"number": 3})


async def test_001_ex_16_a_repeated_key_gives_the_earlier_result(world: World, task: Task[..., Any]) -> None:
    """The first job answers with what it returned, and nothing new runs; a day later as well (S13)."""
    keyed = task.using(tenant="acme", idempotency_key="order-1")
    first = await keyed.aenqueue(3)
    await world.succeed({"sum": 3})
    world.advance(24 * 3_600 - 1)
    again = await keyed.aenqueue(3)
    assert (again.id, again.created) == (first.id, False)
    assert await again.aresult() == {"sum": 3}
    assert await world.claim(1) == []


async def test_001_ex_18_a_batch_across_queues_is_atomic(world: World) -> None:
    """One queue refuses: nothing is in either."""
    app = world.app(queues=[Queue("default"), Queue("other", max_waiting=1)])
    task = app.task(name="work")(work)
    await world.declare()
    across = [task.bind(), task.using(queue="other").bind(), task.using(queue="other").bind()]
    with pytest.raises(QueueFull):
        await app.aenqueue_many(across)
    assert sum((await app.jobs.acount()).values()) == 0
    await app.aenqueue_many(across[:2])
    assert [(await app.jobs.acount(queue=queue))[State.READY] for queue in ("default", "other")] == [1, 1]
