"""Description B, who goes next and how often: weights between queues, starvation, rates with bursts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fairlane import Fairlane, Gate, Lane, Queue, Rate, Share, Task
from fairlane.model.instants import MINUTE, SECOND, Instant, to_datetime
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scheduling.lanes import LaneClock
from tests.acceptance.presets import work
from tests.acceptance.world import World


def tasks_of(app: Fairlane, lane: Lane) -> dict[str, Task[..., Any]]:
    """Return a task for each queue of a lane."""
    return {name: app.task(name=f"work-{name}", queue=name)(work) for name in lane.shares()}


async def starts(world: World, lane: Lane, number: int, free: int) -> Counter[str]:
    """Start and settle so many jobs of a lane as a worker with so many free slots does; count by queue."""
    clock, counted = LaneClock(lane), Counter[str]()
    while counted.total() < number:
        reply = await world.ask(free, *clock.queue_requests(free, {}))
        came = Counter(claim.job.queue for claim in reply.claims)
        assert came
        clock.started(came)
        counted += came
        for claim in reply.claims:
            await world.settle(claim, Succeeded())
    return counted


@pytest.mark.parametrize("free", [1, 3, 10])
async def test_001_qm_9_weights_3_2_1_1_give_their_shares_of_1000_starts(world: World, free: int) -> None:
    """43, 29, 14 and 14 per cent, to within two points, however many slots are free at a time."""
    lane = Lane("main", 10, {"high": 3, "default": 2, "low": 1, "bulk": 1})
    app = world.app(queues=[Queue(name) for name in lane.shares()], lanes=[lane])
    for task in tasks_of(app, lane).values():
        await world.fill(task, 500)
    counted = await starts(world, lane, 1_000, free)
    shares = {name: 100 * counted[name] / counted.total() for name in counted}
    assert shares == {
        name: pytest.approx(share, abs=2)
        for name, share in {"high": 43, "default": 29, "low": 14, "bulk": 14}.items()
    }


async def test_001_qm_10_weights_3_1_give_three_to_one_and_starve_nobody(world: World) -> None:
    """Under constant load, in every stretch of eight starts."""
    lane = Lane("main", 4, {"heavy": 3, "light": 1})
    app = world.app(queues=[Queue(name) for name in lane.shares()], lanes=[lane])
    tasks = tasks_of(app, lane)
    await world.fill(tasks["light"], 60)
    for _ in range(25):
        await world.fill(tasks["heavy"], 10)
        assert await starts(world, lane, 8, 4) == {"heavy": 6, "light": 2}


@pytest.mark.parametrize(
    "lane",
    [
        Lane("main", 4, {"urgent": 9, "light": 1}),
        Lane("main", 4, {"urgent": Share(), "light": Share(min_share=0.1)}, order="strict"),
    ],
    ids=["weighted", "strict"],
)
async def test_001_ec_6_constant_urgent_load_still_serves_the_light_queue(world: World, lane: Lane) -> None:
    """A tenth of a hundred starts, by weight or by its minimum share."""
    app = world.app(queues=[Queue(name) for name in lane.shares()], lanes=[lane])
    tasks = tasks_of(app, lane)
    await world.fill(tasks["light"], 50)
    await world.fill(tasks["urgent"], 200)
    assert (await starts(world, lane, 100, 4))["light"] == 10


async def moments(world: World, number: int) -> list[Instant]:
    """Start so many jobs of `default` as soon as that is allowed; return when, from now on."""
    began, found = world.now, list[Instant]()
    while len(found) < number:
        reply = await world.ask(number - len(found), ("default", number))
        found += [world.now - began] * len(reply.claims)
        if len(found) < number:
            assert reply.next_due_at is not None
            assert reply.next_due_at > world.now
            world.advance((reply.next_due_at - world.now) / SECOND)
    return found


@pytest.mark.parametrize(("jobs", "after", "within"), [(25, 5, 0.5), (30, 10, 1.0)])
async def test_001_ex_1_ten_a_second_with_a_burst_of_twenty(
    world: World, jobs: int, after: int, within: float
) -> None:
    """Twenty start at once, the others ten a second: five in half a second, ten in one."""
    app = world.app(queues=[Queue("default", rate=Rate(10, "second", burst=20))])
    task = app.task(name="work")(work)
    await world.declare()
    await world.fill(task, jobs)
    at = [moment / SECOND for moment in await moments(world, jobs)]
    assert at.count(0) == 20
    assert len([moment for moment in at if moment > 0]) == after
    assert max(at) == pytest.approx(within)


@pytest.mark.parametrize("limit", ["queue", "task", "resource"])
async def test_001_ex_2_a_start_that_is_denied_learns_its_wait(world: World, limit: str) -> None:
    """Limits of a queue, a task or a named resource; the claim and the job both say until when."""
    rate = Rate(6, "minute")
    app = world.app(
        queues=[Queue("default", rate=rate if limit == "queue" else None)],
        gates=[Gate("geocoder", None, rate)],
    )
    task = app.task(
        name="work",
        rate=rate if limit == "task" else None,
        gate="geocoder" if limit == "resource" else None,
    )(work)
    await world.declare()
    await world.fill(task, 2)
    await world.take()
    denied = await world.ask(1, ("default", 1))
    assert denied.claims == ()
    assert denied.next_due_at == world.now + MINUTE // 6
    (waiting,) = [job for job in await app.jobs.afind() if job.state == "ready"]
    why = await app.jobs.aexplain(waiting.id)
    assert why.reason in {"rate", "gate"}
    assert why.until == to_datetime(world.now + MINUTE // 6)
    world.advance(10)
    assert (await world.take()).job.id == waiting.id
