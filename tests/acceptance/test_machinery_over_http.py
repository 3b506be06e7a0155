"""Descriptions B and E, the machinery: workers, tasks and the store, as pages and the REST API show them."""

from __future__ import annotations

import re

from httpx2 import AsyncClient

from fairlane import Fail, Fairlane, Gate, Lane, Queue, State
from fairlane.model.access import Role
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from fairlane.web.application import asgi
from tests.acceptance.presets import work
from tests.acceptance.working import Stage, at_work, until, until_ended
from tests.acceptance.world import World
from tests.web.access.visitor import PASSWORD, visiting
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup


async def text_of(web: AsyncClient, path: str, method: str = "GET") -> str:
    """Return what a page says, in one line."""
    answer = await web.request(method, path)
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", Markup(answer.text).text)


async def register(world: World, id: str) -> None:
    """Let a worker register: its first heartbeat."""
    record = WorkerRecord(id=id, host="here", pid=7, version="1", queues=("default",), slots=2)
    request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
    await world.store.registry.register(request)


async def test_001_api_3_workers_that_are_active_and_all_on_request(world: World) -> None:
    """By default those with a heartbeat in the last 15 seconds, over HTTP and on the page."""
    app = world.app()
    await register(world, "worker-dead")
    world.advance(16)
    await register(world, "worker-live")
    async with web_of(app, ann()) as web:
        for query, ids in (("", ["worker-live"]), ("?live=false", ["worker-dead", "worker-live"])):
            found = (await web.get(f"/api/v1/workers{query}")).json()["items"]
            assert [one["id"] for one in found] == ids
        assert "worker-dead" not in await text_of(web, "/workers")
        assert "worker-dead" in await text_of(web, "/workers?show=all")


async def test_001_dv_3_workers_with_states_memory_processor_time_in_job_and_failures(world: World) -> None:
    """The state, the jobs and what failed from the store; memory and processor from the worker itself."""
    stage = Stage()
    app = world.one_lane(2)
    hold = app.task(name="hold")(stage.handler("hold"))

    async def fail() -> None:
        raise Fail("no line")

    async with web_of(app, ann()) as web, at_work(app):
        failed = await app.task(name="fail")(fail).using(tenant="acme").aenqueue()
        await until_ended(failed)
        job = await hold.using(tenant="acme").aenqueue(1)
        await until(lambda: stage.present["hold"] == 1)
        (worker,) = await app.workers.alist(live=True)
        page = await text_of(web, f"/workers/{worker.id}")
        assert "no line" in page
        assert re.search(rf"hold {str(job.id)[-6:]}", page)
        assert "1 of 2 slots busy" in await text_of(web, "/workers")
        said = await text_of(web, f"/workers/{worker.id}/status", "POST")
        assert re.search(r"Memory ?[1-9]\d* MB", said)
        assert re.search(r"CPU ?\d+ % of a processor", said)
        assert re.search(r"loop1\d*(\.\d)? m?s", said), said
        stage.let_go("hold")


async def test_001_dv_4_jobs_are_filtered_paged_traced_and_retried(world: World) -> None:
    """A page of 50, the state tabs, the timeline of attempts, the jobs of its correlation id, run again."""
    app = world.app()
    task = app.task(name="work")(work)
    await world.declare()
    await world.fill(task, 60)
    world.advance(5)
    await world.fail(Fail("no"))
    (dead,) = (await app.jobs.afind(state=[State.DEAD])).items
    child = await task.using(tenant="acme", correlation_id=dead.correlation_id).aenqueue()
    async with web_of(app, ann()) as web:
        first = Markup((await web.get("/jobs?q=tenant:acme")).text)
        assert sum(id.startswith("row-") for id in first.ids) == 50
        assert any("cursor=" in link for link in first.links)
        filtered = Markup((await web.get("/jobs?q=tenant:acme&tab=dead")).text)
        assert [id for id in filtered.ids if id.startswith("row-")] == [f"row-{dead.id}"]
        page = (await web.get(f"/jobs/{dead.id}")).text
        assert 'id="timeline"' in page
        assert f"/jobs/{child.id}" in page
        form = {"id": str(dead.id), "note": "the line works again"}
        assert (await web.post("/do/dead.reprocess", data=form)).status_code == 303
    assert (await app.dead.aget(dead.id)).review == "reprocessed"


async def test_001_dg_6_raw_numbers_and_the_tables_or_keys_of_the_store(world: World) -> None:
    """With entries, bytes and expiry; no more than asked for; for an administrator."""
    app = world.app()
    await world.fill(app.task(name="work")(work), 3)
    async with web_of(app, ann()) as web:
        found = (await web.get("/api/v1/store")).json()
        assert found["settings"]
        assert all({"name", "kind", "entries", "size", "expires_in"} == set(one) for one in found["parts"])
        assert any(one["size"] for one in found["parts"])
        assert len((await web.get("/api/v1/store?limit=1")).json()["parts"]) == 1
        assert (await web.get("/api/v1/store?limit=100000")).status_code == 422
    async with web_of(app, ann(Role.MANAGER)) as web:
        assert (await web.get("/api/v1/store")).status_code == 403


async def test_001_ex_24_users_of_the_dashboard_have_roles_and_tenants(world: World) -> None:
    """A viewer sees and changes nothing; a user of one tenant sees no other, and no workers."""
    app = world.app()
    task = app.task(name="work")(work)
    await world.declare()
    (foreign,) = await world.fill(task, 1, "globex")
    (own,) = await world.fill(task, 1)
    async with visiting(app, web=asgi(app)) as visitor:
        await app.users.aadd("ann", password=PASSWORD, role=Role.OPERATOR)
        await visitor.enter()
        for path in ("/workers", "/tasks", f"/jobs/{foreign.id}"):
            assert (await visitor.client.get(path)).status_code == 200
        assert (await visitor.client.get("/api/v1/users")).status_code == 403
        await app.users.aset("ann", tenant="acme", role=Role.VIEWER)
        await visitor.enter()
        for path, status in (
            ("/jobs", 200),
            (f"/jobs/{own.id}", 200),
            (f"/jobs/{foreign.id}", 404),
            ("/workers", 404),
            ("/tasks", 404),
            ("/audit", 200),
        ):
            assert (await visitor.client.get(path)).status_code == status, path
        form = {"id": str(own.id), "note": "x"}
        assert (await visitor.client.post("/do/jobs.cancel", data=form)).status_code in {303, 403}
    assert (await app.jobs.aget(own.id)).state is State.READY


async def test_004_rg_2_the_registry_shows_what_each_task_is(world: World) -> None:
    """Its name, queue, handler, rules, and the note of whoever changed them."""
    lane = Lane("main", 2, ["default", "screenshots"])
    gates = [Gate("browser", 3)]
    app = Fairlane(world.url, queues=[Queue("default"), Queue("screenshots")], lanes=[lane], gates=gates)
    world.apps.append(app)
    stage = Stage()
    capture = app.task(
        name="screenshots.capture", queue="screenshots", timeout=90, max_attempts=4, gate="browser"
    )(stage.handler("capture"))
    app.schedule("0 5 * * MON", name="weekly", note="for the newsletter")(capture)

    async def is_published() -> bool:
        return bool(await app.tasks.aversions("screenshots.capture"))

    async with web_of(app, ann()) as web, at_work(app):
        await until(is_published)
        await app.tasks.apause("screenshots.capture", reason="the browser leaks")
        row = (await text_of(web, "/tasks")).replace(" ", "")
        assert "capturepausedtests.acceptance.workingscreenshots11min30s4At05:00onMonday,UTC" in row
        assert "forthenewsletterbrowser" in row
        page = await text_of(web, "/tasks/screenshots.capture")
        assert "the browser leaks" in page
        assert "for the newsletter" in page
        found = (await web.get("/api/v1/tasks/screenshots.capture")).json()
        assert (found["task"]["queue"], found["versions"][0]["module"]) == (
            "screenshots",
            "tests.acceptance.working",
        )
