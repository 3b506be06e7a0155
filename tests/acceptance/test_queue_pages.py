"""Descriptions B and E, the pages of queues: contents, counts, rates, colours."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from fairlane import Fairlane, Queue, Rate, State, Task
from fairlane.model.instants import to_datetime
from fairlane.web.html.words import queue_colour
from tests.acceptance.world import World
from tests.web.api.callers import Callers
from tests.web.callers import ann, web_of
from tests.web.pages.markup import words


def app_of(world: World) -> tuple[Fairlane, Task[..., Any]]:
    """Return an application with two queues and one task."""
    app = world.app(queues=[Queue("bulk"), Queue("mail")])

    def work() -> None:
        """Stand for a handler."""

    return app, app.task(name="work", queue="bulk")(work)


@pytest.mark.parametrize("state", [State.READY, State.DELAYED, State.RUNNING])
async def test_001_dg_2_contents_of_a_queue_are_shown_by_state_50_at_most(world: World, state: State) -> None:
    """By the API, whose limit may be chosen, and on the page of the queue."""
    app, task = app_of(world)
    delay = timedelta(hours=1) if state is State.DELAYED else None
    for _ in range(60):
        await task.using(tenant="acme", delay=delay).aenqueue()
    if state is State.RUNNING:
        assert len(await world.claim(60, "bulk")) == 60
    callers = Callers(app)
    contents = await callers.get("/queues/bulk/contents")
    assert (contents["counts"][state.value], len(contents[state.value])) == (60, 50)
    fewer = await callers.get("/queues/bulk/contents?limit=7")
    assert len(fewer[state.value]) == 7
    async with web_of(app, ann()) as web:
        page = (await web.get(f"/queues/bulk?state={state.value}")).text
    assert page.count('data-row="') == 50
    assert "50 jobs of 60" in words(page)


async def test_001_cp5_2_the_numbers_of_a_queue_are_those_of_its_jobs(world: World) -> None:
    """In each state, and how far its rate is used, while jobs move; on the page and over the API."""
    app, task = app_of(world)
    await app.queues.aset("bulk", rate=Rate(3, "minute", burst=3))
    for number in range(5):
        await task.using(tenant=f"t{number}").aenqueue()
    await task.using(tenant="acme", delay=timedelta(hours=1)).aenqueue()
    await world.claim(2, "bulk")
    callers = Callers(app)
    counts = (await callers.get("/queues/bulk"))["counts"]
    assert counts == {"delayed": 1, "ready": 3, "running": 2, "succeeded": 0, "dead": 0, "cancelled": 0}
    (rate,) = (await callers.get("/queues/bulk/rates"))["items"]
    assert (rate["allowed"], rate["ready"]) == (1, 3)
    await world.claim(1, "bulk")
    (rate,) = (await callers.get("/queues/bulk/rates"))["items"]
    next_at = to_datetime(world.now) + timedelta(seconds=20)
    assert (rate["allowed"], rate["next_at"]) == (0, next_at.isoformat().replace("+00:00", "Z"))
    async with web_of(app, ann()) as web:
        text = words((await web.get("/queues/bulk")).text)
    assert "Ready 2 Delayed 1 Running 3 Succeeded 0 Dead 0 Cancelled 0" in text
    assert re.search(r"3 per minute, burst 3 0 .*? 2 ", text)


async def test_001_dv_1_the_overview_shows_depth_workers_and_what_fails(world: World) -> None:
    """In one look: how much waits, whether somebody works, which task fails most."""
    app, task = app_of(world)
    for _ in range(3):
        await task.using(tenant="acme").aenqueue()
    await world.fail(ValueError("no price"), "bulk")
    async with web_of(app, ann()) as web:
        text = words((await web.get("/")).text)
    assert "Waiting now 3 2 ready, 1 delayed" in text
    assert "0 live workers" in text
    assert "Jobs wait in 1 queue that no live worker serves" in text
    assert re.search(r"Failed attempts .* work ValueError: no price 1 1 0 ", text)


async def test_001_dv_2_a_queue_shows_states_worst_tasks_and_its_oldest_job(world: World) -> None:
    """Also the state of its rate; each number leads to the jobs that it counts."""
    app, task = app_of(world)
    await app.queues.aset("bulk", rate=Rate(9, "minute"))
    first = await task.using(tenant="acme").aenqueue()
    world.advance(90)
    await task.using(tenant="acme").aenqueue()
    for _ in range(2):
        await task.using(tenant="globex", queue="mail").aenqueue()
    await world.fail(ValueError("no price"), "mail")
    stats = await Callers(app).get("/queues/bulk/statistics")
    assert stats["oldest_at"] == first.enqueued_at.isoformat().replace("+00:00", "Z")
    async with web_of(app, ann()) as web:
        bulk, mail = [words((await web.get(f"/queues/{name}")).text) for name in ("bulk", "mail")]
    assert "Ready 2 Delayed 0 Running 0" in bulk
    assert "9 per minute 1 at once" in bulk
    assert re.search(r"Worst tasks .* work ValueError: no price 1 1 0 ", mail)
    assert "no price" not in bulk


async def test_004_qf_4_a_queue_has_its_colour_wherever_it_stands(world: World) -> None:
    """That of its name, or the one that was chosen for it, in code or in the file."""
    app, task = app_of(world)
    job = await task.using(tenant="acme").aenqueue()
    mark = f"q q-{queue_colour('bulk')}"
    assert queue_colour("bulk") not in {queue_colour("mail"), "lavender"}
    pages = ("/", "/queues", "/queues/bulk", "/tenants/acme", "/jobs", f"/jobs/{job.id}")
    async with web_of(app, ann()) as web:
        for path in pages:
            assert mark in (await web.get(path)).text, path
    chosen = world.app(queues=[Queue("bulk", color="lavender"), Queue("mail")])
    from_file = world.app(config={"queues": {"bulk": {"color": "lavender"}, "mail": {}}})
    for other in (chosen, from_file):
        async with web_of(other, ann()) as web:
            for path in pages:
                text = (await web.get(path)).text
                assert "q q-lavender" in text, path
                assert mark not in text, path
