"""Jobs, queues, workers and callers over HTTP, as two descriptions ask for it, on every store (S79, S98)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from fairlane import Fairlane, Queue, State
from fairlane.app.doctor_settings import MEGABYTE, DoctorSettings
from fairlane.app.journal_settings import EventSettings
from fairlane.diagnosis.checks import run_checks
from fairlane.diagnosis.snapshot import take_snapshot
from fairlane.model.access import Role
from fairlane.model.instants import DAY, SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from tests.acceptance.presets import work
from tests.acceptance.world import World
from tests.web.api.callers import Callers
from tests.web.api.fuzzing import fuzzer, new_seed
from tests.web.api.test_matrix import ENDPOINTS, LEAST_OF, Foreign


@pytest.fixture
async def app(world: World) -> Fairlane:
    """An application with one task, in force."""
    made = world.app(queues=[Queue("default"), Queue("bulk")])
    made.task(name="work", max_attempts=2)(work)
    made.task(name="other", queue="bulk")(work)
    await world.declare()
    return made


@pytest.fixture
def callers(app: Fairlane) -> Callers:
    """Callers of its REST API."""
    return Callers(app)


async def enqueue(app: Fairlane, task: str = "work", **options: Any) -> str:
    """Enqueue a job of acme, or of another tenant; return its id."""
    job = await app.aenqueue_by_name(task, {"number": 1}, **{"tenant": "acme", **options})
    return str(job.id)


async def register(world: World, worker: str) -> None:
    """Let a worker say that it is there."""
    record = WorkerRecord(id=worker, host="h", pid=1, version="1", queues=("default",), slots=4)
    request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
    await world.store.registry.register(request)


async def test_001_api_12_schedules_are_made_listed_and_removed(world: World, callers: Callers) -> None:
    """Of a task that is declared, with everything wrong said at once."""
    body = {"name": "nightly", "task": "work", "cron": "0 3 * * *", "arguments": {}, "note": "asked for"}
    made = await callers.post("/schedules", body, status=201)
    assert made["when"] == "At 03:00 every day, UTC"
    assert [one["name"] for one in (await callers.get("/schedules"))["items"]] == ["nightly"]
    wrong = await callers.ask("POST", "/schedules", json={**body, "name": "x", "cron": "0 25 * * *"})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "cron")
    gone = await callers.ask("DELETE", "/schedules/nightly", json={"note": "over"})
    assert gone.status_code in {200, 204}
    assert (await callers.get("/schedules"))["items"] == []


def ids(page: dict[str, Any]) -> set[str]:
    """Return the ids of a page."""
    return {one["id"] for one in page["items"]}


async def test_002_api_6_jobs_are_listed_by_filters(world: World, app: Fairlane, callers: Callers) -> None:
    """Each filter alone and several together; without payloads."""
    first = await enqueue(app, correlation_id="import-7")
    second = await enqueue(app, "other", tenant="globex", created_by="ann")
    for filters, found in (
        ({"tenant": "acme"}, {first}),
        ({"queue": "bulk"}, {second}),
        ({"task": "work"}, {first}),
        ({"state": "ready"}, {first, second}),
        ({"state": ["running", "dead"]}, set()),
        ({"correlation_id": "import-7"}, {first}),
        ({"created_by": "ann"}, {second}),
        ({"created_by": "ann", "task": "work"}, set()),
    ):
        assert ids(await callers.get("/jobs", params=filters)) == found, filters
    (item,) = (await callers.get("/jobs", params={"tenant": "acme"}))["items"]
    assert not {"arguments", "payload", "result"} & item.keys()


async def test_001_api_4_jobs_by_id_queue_status_type_and_range_with_a_total(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """A hundred by default; the seeds' words for states are understood."""
    early = await enqueue(app)
    world.clock.advance(24 * 3_600)
    for _ in range(103):
        await enqueue(app, "other")
    page = await callers.get("/jobs")
    assert (len(page["items"]), page["total"]["number"]) == (100, 104)
    assert ids(await callers.get("/jobs", params={"query": f"id:{early}"})) == {early}
    assert ids(await callers.get("/jobs", params={"query": "type:work status:pending"})) == {early}
    assert ids(await callers.get("/jobs", params={"query": "enqueued:>12h queue:default"})) == {early}
    rest = await callers.get("/jobs", params={"cursor": page["cursor"]})
    assert len(ids(page) | ids(rest)) == 104


async def test_001_mg_8_a_search_finds_jobs_by_metadata(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """In Python, over HTTP, whatever the depth of the value."""
    wanted = await enqueue(app, metadata={"customer": {"city": "Graz"}, "step": 3})
    await enqueue(app, metadata={"customer": {"city": "Linz"}, "step": 1})
    for query in ("meta.customer.city:Graz", "meta.step:>2", "meta.customer.city:G* meta.step:3"):
        assert ids(await callers.get("/jobs", params={"query": query})) == {wanted}, query
        assert [str(job.id) for job in (await app.jobs.afind(query)).items] == [wanted]


async def test_002_api_7_statistics_of_queues(world: World, app: Fairlane, callers: Callers) -> None:
    """By state, how many wait for a retry, and the age of the oldest in minutes."""
    await enqueue(app)
    assert await world.fail(ValueError("no")) is State.DELAYED
    await enqueue(app)
    world.clock.advance(24 * 3_600)
    await enqueue(app, "other")
    found = {one["queue"]: one for one in await callers.get("/statistics/queues")}
    assert {name: found["default"][name] for name in ("ready", "delayed", "retrying", "dead")} == {
        "ready": 1,
        "delayed": 1,
        "retrying": 1,
        "dead": 0,
    }
    assert found["default"]["oldest_minutes"] == pytest.approx(24 * 60)
    assert found["bulk"]["ready"] == 1
    (one,) = await callers.get("/statistics/queues", params={"queue": "bulk", "tenant": "acme"})
    assert (one["queue"], one["ready"]) == ("bulk", 1)


async def test_001_dg_2_contents_of_a_queue_by_state_fifty_of_each(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """Those that wait in the order of claims, those that run, those that come later."""
    order = [await enqueue(app, priority=priority) for priority in (0, 5)]
    await world.take("default")
    await enqueue(app, delay=60)
    for _ in range(60):
        await enqueue(app)
    found = await callers.get("/queues/default/contents")
    assert len(found["ready"]) == 50
    assert found["ready"][0]["id"] == order[0]
    assert [one["id"] for one in found["running"]] == [order[1]]
    assert len(found["delayed"]) == 1
    assert found["counts"]["ready"] == 61
    assert "arguments" not in found["ready"][0]


async def test_001_api_3_workers_are_active_ones_unless_all_are_asked_for(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """One that was silent for too long is no longer active."""
    await register(world, "worker-1")
    world.clock.advance(24 * 3_600)
    await register(world, "worker-2")
    active = await callers.get("/workers")
    every = await callers.get("/workers", params={"live": "false"})
    assert ids(active) == {"worker-2"}
    assert {one["id"]: one["state"] for one in every["items"]}["worker-1"] == "silent"


# ── who may do what ──────────────────────────────────────────────────────────


@pytest.fixture
async def foreign(world: World, app: Fairlane, callers: Callers) -> Foreign:
    """A job and a dead letter of another firm."""
    letter = await enqueue(app, tenant="globex", max_attempts=1)
    assert await world.fail(ValueError("no")) is State.DEAD
    return Foreign(callers, await enqueue(app, tenant="globex"), letter)


async def test_002_pm_1_nobody_staff_and_manager_on_every_endpoint_of_dead_letters(foreign: Foreign) -> None:
    """401, 403, and neither; the endpoints are those that there are. Statistics belong to them."""
    endpoints = [one for name, one in ENDPOINTS.items() if name.startswith("dead.")]
    assert len(endpoints) > 10
    for endpoint in endpoints:
        assert LEAST_OF[endpoint.name] is Role.MANAGER
        assert (await foreign.ask(endpoint, None)).status_code == 401, endpoint.name
        assert (await foreign.ask(endpoint, Role.OPERATOR)).status_code == 403, endpoint.name
        assert (await foreign.ask(endpoint, Role.MANAGER)).status_code < 500, endpoint.name
    for path in ("/dead", "/dead/statistics"):
        assert (await foreign.callers.ask("GET", path, role=Role.MANAGER)).status_code == 200


async def test_002_pm_2_the_manager_of_one_firm_gets_404_for_another_firm_s_items(foreign: Foreign) -> None:
    """On every endpoint that names one; its own list does not have it."""
    endpoints = [one for name, one in ENDPOINTS.items() if name.startswith("dead.") and "id" in one.fields]
    assert len(endpoints) > 5
    for endpoint in endpoints:
        answer = await foreign.ask(endpoint, Role.MANAGER, "acme")
        assert answer.status_code == 404, endpoint.name
    page = await foreign.callers.get("/dead", tenant="acme", role=Role.MANAGER)
    assert page["items"] == []


async def test_001_cp5_5_many_requests_are_throttled(world: World, app: Fairlane) -> None:
    """Those above the rate are refused with when to come again, before the store is asked."""
    throttled = world.app(config={"web": {"rate": {"limit": 60, "per": "minute"}}})
    callers = Callers(throttled)
    statuses: Counter[int] = Counter()
    refused = ""
    for _ in range(200):
        answer = await callers.ask("GET", "/queues")
        statuses[answer.status_code] += 1
        refused = answer.headers.get("retry-after", refused)
    assert set(statuses) == {200, 429}
    assert statuses[429] > 100
    assert int(refused) >= 1


def test_001_nf_16_every_input_of_the_api_is_validated() -> None:
    """Requests that the API's own description allows and forbids, to every endpoint; thousands elsewhere."""
    with fuzzer(jobs=2) as made:
        made.fuzz(1, new_seed())
        asked = {one.definition.raw["operationId"] for one in made.operations()}
        assert set(made.report.endpoints) == asked
        assert {status // 100 for status in made.report.statuses} <= {2, 4}


# ── diagnosis ────────────────────────────────────────────────────────────────


async def test_001_dg_10_findings_above_the_four_thresholds_are_kept_for_seven_days(
    world: World, app: Fairlane
) -> None:
    """A depth of 1,000, 500 MB of memory, no workers and no clients, the last two critical."""
    thresholds = DoctorSettings()
    assert (thresholds.max_ready, thresholds.max_memory) == (1_000, 500 * MEGABYTE)
    assert (thresholds.min_workers, thresholds.min_clients) == (1, 1)
    assert EventSettings().keep == 7 * DAY
    task = app.task(name="many")(work)
    await world.fill(task, 1_001)
    snapshot = await take_snapshot(world.store, app.client.clock)
    snapshot = msgspec.structs.replace(
        snapshot,
        inspection=msgspec.structs.replace(snapshot.inspection, memory=501 * MEGABYTE, clients=0),
    )
    found = {one.check: one.level for one in run_checks(snapshot, "1", thresholds)}
    assert {name: found[name] for name in ("depth", "memory", "workers", "clients")} == {
        "depth": "warn",
        "memory": "warn",
        "workers": "bad",
        "clients": "bad",
    }
    higher = DoctorSettings(max_ready=2_000, max_memory=None)
    others = [one.what for one in run_checks(snapshot, "1", higher)]
    assert not [what for what in others if "more than 500 MB" in what or "more than 1,000" in what]
