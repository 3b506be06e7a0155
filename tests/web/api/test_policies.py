"""Queues, tenants, tasks and gates over HTTP: what holds for them, and changing it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from fairlane import Fairlane, Gate, Limits, Queue, Rate
from fairlane.app.task.record import task_record_of
from fairlane.model.access import Role
from fairlane.model.instants import SECOND, to_datetime
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from fairlane.worker.startup.declare import declare_policies
from tests.app.world import World
from tests.web.api.callers import Callers
from tests.web.api.test_job_changes import audited


async def enqueue(app: Fairlane, tenant: str = "acme", **options: Any) -> None:
    """Enqueue one job."""
    await app.aenqueue_by_name("mail.send", {"text": "hello"}, tenant=tenant, **options)


async def publish(world: World, app: Fairlane) -> None:
    """Publish the tasks of an application, as a worker does that starts."""
    tasks = tuple(task_record_of(task, app.settings) for task in app.client.registry)
    record = WorkerRecord(id="worker-1", host="here", pid=7, version="1", queues=(), slots=2, tasks=tasks)
    request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
    await world.oracle.registry.register(request)


# ── pause, close ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/queues/default", "/tenants/acme", "/tasks/mail.send"])
async def test_a_pause_holds_and_ends(callers: Callers, path: str) -> None:
    """It says who, why and until when, in every noun; the note is what the audit has."""
    until = "2200-01-01T00:00:00Z"
    paused = await callers.post(f"{path}/pause", {"note": "password=hunter2", "until": until})
    assert (paused["paused"]["who"], paused["paused"]["until"]) == ("ann", until)
    assert paused["paused"]["reason"] == "password=[redacted]"
    closed = await callers.post(f"{path}/close", {"note": "full"})
    assert (closed["closed"]["reason"], closed["paused"]["who"]) == ("full", "ann")
    assert (await callers.post(f"{path}/resume", {"note": "done"}))["paused"] is None
    assert (await callers.post(f"{path}/open"))["closed"] is None
    noun = path.split("/")[1]
    entries = (await callers.get("/audit"))["items"]
    assert [one["kind"] for one in entries] == [
        f"{noun}.{verb}" for verb in ("open", "resume", "close", "pause")
    ]
    assert {(one["actor"], one["origin"]) for one in entries} == {("ann", "api")}
    assert [one["note"] for one in entries] == ["", "done", "full", "password=[redacted]"]


async def test_a_pause_ends_after_a_while_of_the_stores_clock(callers: Callers, world: World) -> None:
    """Not of the caller's: their clocks may differ."""
    until = to_datetime(world.clock.now()) + timedelta(hours=2)
    paused = (await callers.post("/queues/default/pause", {"note": "x", "for": "2h"}))["paused"]
    assert datetime.fromisoformat(paused["until"]) == until
    world.clock.advance(2 * 3_600)
    assert (await callers.get("/queues/default"))["paused"] is None


@pytest.mark.parametrize("path", ["/queues/default", "/tenants/acme", "/tasks/mail.send"])
async def test_a_pause_must_say_why(callers: Callers, path: str) -> None:
    """Nothing is stored, and the field is named."""
    for verb in ("pause", "close"):
        problem = await callers.post(f"{path}/{verb}", {"note": " "}, status=422)
        assert [(one["field"], one["code"]) for one in problem["problems"]] == [("note", "required")]
    assert (await callers.get("/audit"))["items"] == []


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/queues/Bulk!", {}, "queue"),
        ("/queues/bulk", {"until": "2200-01-01"}, "until"),
        ("/queues/bulk", {"until": "2200-01-01T00:00:00"}, "until"),
        ("/queues/bulk", {"why": "x"}, "why"),
        ("/queues/bulk", {"for": "a while"}, "for"),
        ("/queues/bulk", {"for": "2h", "until": "2200-01-01T00:00:00Z"}, "for"),
    ],
)
async def test_bad_input_names_the_field(callers: Callers, path: str, body: Any, field: str) -> None:
    """One clear error, and nothing stored."""
    problem = await callers.post(f"{path}/pause", {"note": "x", **body}, status=422)
    assert field in f"{problem['field']} {problem['detail']}"
    assert (await callers.get("/audit"))["items"] == []


# ── limits ───────────────────────────────────────────────────────────────────


async def test_a_queue_is_limited_and_reset(callers: Callers) -> None:
    """What is left out stays; null and `none` remove; a rate may be text or an object."""
    body = {"waiting": 9, "rate": "50/minute", "tenant_rate": {"limit": 2, "per": "second"}, "note": "busy"}
    changed = (await callers.ask("PATCH", "/queues/bulk", json=body)).json()
    assert changed["rate"] == {"limit": 50, "per": "minute", "burst": 1}
    assert (changed["limits"]["waiting"], changed["limits"]["rate"]["per"]) == (9, "second")
    changed = (await callers.ask("PATCH", "/queues/bulk", json={"running": 2, "rate": None})).json()
    assert (changed["rate"], changed["limits"]["waiting"], changed["limits"]["running"]) == (None, 9, 2)
    changed = (await callers.ask("PATCH", "/queues/bulk", json={"waiting": "none", "max_waiting": 7})).json()
    assert (changed["limits"]["waiting"], changed["max_waiting"]) == (None, 7)
    back = await callers.post("/queues/bulk/reset", {"note": "calm"})
    assert (back["override"], back["max_waiting"], back["limits"]["running"]) == (None, None, None)


async def test_a_tenant_is_limited_in_one_queue_or_in_all(callers: Callers) -> None:
    """Its limits are set together: those that are left out stay as they are."""
    await enqueue(callers.app)
    every = (await callers.ask("PATCH", "/tenants/acme", json={"running": 3, "weight": 2})).json()
    assert (every["weight"], every["limits"]["default"]["running"]) == (2, 3)
    body = {"queue": "default", "waiting": 5}
    one = (await callers.ask("PATCH", "/tenants/acme", json=body)).json()
    assert (one["limits"]["default"]["waiting"], one["limits"]["default"]["running"]) == (5, 3)
    every = (await callers.ask("PATCH", "/tenants/acme", json={"on_full": "reject"})).json()
    assert every["override"]["values"]["limits"]["*"]["running"] == 3
    left = await callers.post("/tenants/acme/reset", {"queue": "default"})
    assert left["limits"]["default"] == {"waiting": None, "on_full": "reject", "running": 3, "rate": None}
    refused = await callers.ask("PATCH", "/tenants/acme", json={"queue": "default", "weight": 1})
    assert (refused.status_code, refused.json()["field"]) == (422, "queue")


async def test_a_rate_that_is_none_is_refused(callers: Callers) -> None:
    """The error says how to write one."""
    response = await callers.ask("PATCH", "/tasks/mail.send", json={"rate": "fast"})
    assert (response.status_code, response.json()["field"]) == (422, "rate")
    assert "50/minute" in response.text
    changed = (await callers.ask("PATCH", "/tasks/mail.send", json={"rate": "10/second+20"})).json()
    assert changed["rate"] == {"limit": 10, "per": "second", "burst": 20}
    assert (await callers.post("/tasks/mail.send/reset"))["rate"] is None


async def test_a_gate_shows_its_use_and_is_limited(world: World) -> None:
    """Gates of the code, and those known to the store."""
    app = world.app(gates=[Gate("door", 3)])
    callers = Callers(app)
    assert [one["name"] for one in (await callers.get("/gates"))["items"]] == ["door"]
    changed = (await callers.ask("PATCH", "/gates/door", json={"limit": 0, "rate": "5/hour"})).json()
    assert (changed["limit"], changed["used"], changed["rate"]["per"]) == (0, 0, "hour")
    assert (await callers.post("/gates/door/reset"))["override"] is None
    assert (await callers.get("/gates/door"))["limit"] is None


# ── reading ──────────────────────────────────────────────────────────────────


async def test_queues_are_found_with_their_jobs(world: World) -> None:
    """Declared ones too, and statistics and contents of one."""
    app = world.app(queues=[Queue("bulk", rate=Rate(5))])
    app.task(name="mail.send")(_nothing)
    callers = Callers(app)
    await enqueue(app)
    await enqueue(app, "globex")
    await enqueue(app, delay=60)
    found = {one["name"]: one["counts"] for one in (await callers.get("/queues"))["items"]}
    assert found.keys() == {"bulk", "default"}
    assert (found["default"]["ready"], found["default"]["delayed"]) == (2, 1)
    stats = await callers.get("/queues/default/statistics")
    assert (stats["ready"], stats["because"], stats["is_complete"]) == (2, {"time": 1}, True)
    await world.claim()
    contents = await callers.get("/queues/default/contents", params={"limit": 5})
    assert contents["counts"]["ready"] == 1
    assert {state: len(contents[state]) for state in ("ready", "delayed", "running")} == dict.fromkeys(
        ("ready", "delayed", "running"), 1
    )
    assert "hello" not in str(contents)


async def test_rates_say_how_far_they_are_used(world: World) -> None:
    """Of a queue and its tenants, and of all that tenants share."""
    queue = Queue("bulk", rate=Rate(1, "hour", burst=3), limits=Limits(rate=Rate(1, "day")))
    app = world.app(queues=[queue], gates=[Gate("door", None, rate=Rate(7, "minute"))])
    app.task(name="mail.send", queue="bulk", rate=Rate(5, "second"), gate="door")(_nothing)
    await declare_policies(app, app.client.store)
    callers = Callers(app)
    await enqueue(app)
    await enqueue(app, "globex")
    await world.claim("bulk")
    whole, *tenants = (await callers.get("/queues/bulk/rates"))["items"]
    assert (whole["kind"], whole["name"], whole["allowed"], whole["ready"]) == ("queue", "bulk", 2, 1)
    assert {one["name"]: (one["allowed"], one["ready"]) for one in tenants} == {
        "acme": (0, 0),
        "globex": (1, 1),
    }
    assert datetime.fromisoformat(tenants[0]["next_at"]) == to_datetime(world.clock.now()) + timedelta(days=1)
    shared = (await callers.get("/rates"))["items"]
    assert {(one["kind"], one["allowed"]) for one in shared} == {("queue", 2), ("task", 0), ("gate", 0)}


async def test_an_empty_queue_is_removed(callers: Callers, world: World) -> None:
    """One with unfinished jobs is not: the answer says how many; a note is needed."""
    await callers.post("/queues/default/close", {"note": "moving"})
    problem = (await callers.ask("DELETE", "/queues/default", json={"note": " "})).json()
    assert problem["field"] == "note"
    assert (await callers.ask("DELETE", "/queues/default", json={"note": "moved"})).status_code == 200
    assert (await callers.get("/queues/default"))["closed"] is None
    await enqueue(callers.app)
    response = await callers.ask("DELETE", "/queues/default", json={"note": "moved"})
    assert (response.status_code, response.json()["code"]) == (409, "not_empty")
    assert "1 job(s) wait or run in queue default" in response.json()["detail"]
    kinds = [one["kind"] for one in (await callers.get("/audit"))["items"]]
    assert kinds == ["queues.remove", "queues.close"]


async def test_tenants_are_found_page_by_page_and_by_label(callers: Callers) -> None:
    """The cursor goes on behind the last one."""
    for tenant in ("acme", "globex", "initech"):
        body = {"label": [f"plan={'pro' if tenant != 'globex' else 'free'}"], "note": "new"}
        await callers.post(f"/tenants/{tenant}/declare", body)
    page = await callers.get("/tenants", params={"limit": 2})
    rest = await callers.get("/tenants", params={"limit": 2, "cursor": page["cursor"]})
    assert [one["name"] for one in page["items"] + rest["items"]] == ["acme", "globex", "initech"]
    pro = await callers.get("/tenants", params={"label": "plan=pro"})
    assert [one["name"] for one in pro["items"]] == ["acme", "initech"]


async def test_a_tenant_is_drained(callers: Callers, app: Fairlane, world: World) -> None:
    """By a pause until nothing runs, or by a close until it is empty; asked again it says when that is so."""
    for _ in range(2):
        await app.aenqueue_by_name("mail.send", {"text": "hello"}, tenant="acme")
    claim = await world.claim()
    assert (await callers.post("/tenants/acme/drain", {}, status=422))["field"] == "note"
    left = await callers.post("/tenants/acme/drain", {"note": "moving"}, role=Role.OPERATOR)
    assert left == {"is_drained": False, "ready": 1, "running": 1}
    await world.settle(claim, Succeeded(encode_result(None)))
    left = await callers.post("/tenants/acme/drain", {"note": "moving", "wait": 0.1})
    assert left == {"is_drained": True, "ready": 1, "running": 0}
    left = await callers.post("/tenants/acme/drain", {"note": "moving", "by": "close"})
    assert left == {"is_drained": False, "ready": 1, "running": 0}
    tenant = await callers.get("/tenants/acme")
    assert (tenant["paused"]["reason"], tenant["closed"]["reason"]) == ("moving", "moving")
    assert [kind for kind, _ in audited(world)] == ["tenants.pause", "tenants.close"]


async def test_a_tenant_is_purged_and_forgotten(callers: Callers) -> None:
    """Both must say why, and both are audited once with their result."""
    await enqueue(callers.app)
    await enqueue(callers.app, "globex")
    assert (await callers.post("/tenants/acme/purge", {}, status=422))["field"] == "note"
    assert await callers.post("/tenants/acme/purge", {"note": "gone"}, role=Role.MANAGER) == {"cancelled": 1}
    assert await callers.post("/tenants/acme/forget", {"note": "gone"}) == {"erased": 1}
    assert (await callers.get("/tenants/globex"))["counts"]["default"]["ready"] == 1
    assert len((await callers.get("/audit", params={"tenant": "acme"}))["items"]) == 4


async def test_a_task_shows_its_versions_with_their_schemas(callers: Callers, world: World) -> None:
    """As workers have published them; found by an alias too."""
    await publish(world, callers.app)
    shown = await callers.get("/tasks/mail.send")
    assert (shown["task"]["name"], shown["task"]["version"]) == ("mail.send", 1)
    (version,) = shown["versions"]
    assert set(version["schema"]["properties"]) == {"text", "other"}
    assert version["sensitive"] == ["text"]
    assert [one["name"] for one in (await callers.get("/tasks"))["items"]] == ["mail.send"]


async def _nothing(text: str) -> None:
    """Take a text."""
