"""Jobs over HTTP: enqueued, changed, revealed, one or all that match."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fairlane import Fairlane, State
from fairlane.model.access import Role
from tests.app.world import World
from tests.web.api.callers import Callers


async def enqueued(callers: Callers, **options: Any) -> str:
    """Enqueue a job over HTTP and return its id."""
    body = {"task": "mail.send", "tenant": "acme", "arguments": {"text": "a"}, **options}
    return str((await callers.post("/jobs", body, status=201))["id"])


async def state(app: Fairlane, id: str) -> State:
    """Return the state of a job."""
    return (await app.jobs.aget(id)).state


def audited(world: World) -> list[tuple[str, bytes]]:
    """Return what the audit got: action and body, in order."""
    pending = world.oracle.journal._core.books.journals["audit"].pending
    return [(one.entry.kind, one.entry.body) for one in pending]


async def test_a_job_is_enqueued_by_name(callers: Callers) -> None:
    """For the caller's tenant, or the one that it names; who asked is kept."""
    body = {"task": "mail.send", "arguments": {"text": "a"}, "tags": ["x"], "delay": 60, "note": "by hand"}
    made = await callers.post("/jobs", body, status=201, tenant="acme", role=Role.OPERATOR)
    assert (made["tenant"], made["state"], made["created"], made["created_by"]) == (
        "acme",
        "delayed",
        True,
        "ann",
    )
    missing = await callers.post("/jobs", body, status=422)
    assert (missing["field"], missing["code"]) == ("tenant", "tenant_required")


async def test_a_key_in_the_header_makes_one_job(callers: Callers) -> None:
    """The repeat gets the first; the same key with other arguments is refused."""
    body = {"task": "mail.send", "tenant": "acme", "arguments": {"text": "a"}}
    first = await callers.post("/jobs", body, status=201, headers={"Idempotency-Key": "k1"})
    again = await callers.post("/jobs", body, status=201, headers={"Idempotency-Key": "k1"})
    assert (again["id"], again["created"], first["created"]) == (first["id"], False, True)
    other = body | {"arguments": {"text": "b"}}
    refused = await callers.post("/jobs", other, status=409, headers={"Idempotency-Key": "k1"})
    assert refused["code"] == "idempotency_mismatch"
    both = body | {"idempotency_key": "k2"}
    assert (await callers.post("/jobs", both, status=422, headers={"Idempotency-Key": "k1"}))[
        "field"
    ] == "idempotency_key"


async def test_many_are_enqueued_together_or_not_at_all(callers: Callers, app: Fairlane) -> None:
    """Every problem is listed with its number; a key in the header makes the batch repeatable."""
    good = {"task": "mail.send", "tenant": "acme", "arguments": {"text": "a"}}
    bad = [good, good | {"task": "mail.sent"}, good | {"queue": "No"}, {"task": "mail.send"}]
    problem = await callers.post("/jobs/enqueue_many", {"jobs": bad}, status=422)
    assert {(one["index"], one["field"]) for one in problem["problems"]} >= {(1, "task"), (3, "tenant")}
    assert (await app.jobs.afind()).items == ()
    headers = {"Idempotency-Key": "import 7"}
    first = await callers.post("/jobs/enqueue_many", {"jobs": [good, good]}, status=201, headers=headers)
    again = await callers.post("/jobs/enqueue_many", {"jobs": [good, good]}, status=201, headers=headers)
    assert [one["id"] for one in first] == [one["id"] for one in again]
    assert [one["created"] for one in again] == [False, False]


async def test_a_job_is_steered(callers: Callers, app: Fairlane, world: World) -> None:
    """Run now, edit, cancel, again: as `app.jobs` does it, and audited with who and why."""
    id = await enqueued(callers, delay=3_600)
    assert (await callers.post(f"/jobs/{id}/run_now", {"note": "now"}))["state"] == "ready"
    conflict = await callers.post(f"/jobs/{id}/run_now", status=409)
    assert conflict["code"] == "wrong_state"
    response = await callers.ask("PATCH", f"/jobs/{id}", json={"priority": 5, "arguments": {"text": "b"}})
    assert response.json()["priority"] == 5
    assert (await app.jobs.aget(id)).arguments["text"] == "b"
    assert await callers.post(f"/jobs/{id}/cancel", {"note": "no"}) == {"answer": "cancelled", "others": 0}
    copy = await callers.post(f"/jobs/{id}/again", status=201)
    assert copy["parent_id"] == id
    kinds = [kind for kind, _ in audited(world)]
    assert kinds == ["jobs.enqueue", "jobs.run_now", "jobs.edit", "jobs.cancel", "jobs.again"]
    assert all(b'"actor":"ann"' in body and b'"origin":"api"' in body for _, body in audited(world))


async def test_a_running_job_is_failed_or_taken_back(callers: Callers, world: World) -> None:
    """With a reason, which is required."""
    id = await enqueued(callers)
    await world.claim()
    assert (await callers.post(f"/jobs/{id}/take_back", {}, status=422))["field"] == "note"
    assert (await callers.post(f"/jobs/{id}/take_back", {"note": " "}, status=422))["field"] == "note"
    assert (await callers.post(f"/jobs/{id}/take_back", {"note": "slow"}))["state"] == "ready"
    await world.claim()
    assert (await callers.post(f"/jobs/{id}/fail", {"note": "x", "retry": False}))["state"] == "dead"
    other = await enqueued(callers)
    assert (await callers.post(f"/jobs/{other}/condemn", {"note": "x"}))["state"] == "dead"
    assert (await callers.post(f"/jobs/{other}/condemn", {"note": "x"}, status=409))["code"] == "wrong_state"


async def test_to_reveal_needs_a_manager_and_a_reason_and_is_audited(callers: Callers, world: World) -> None:
    """The entry is there before the answer."""
    id = await enqueued(callers, arguments={"text": "hunter2"})
    assert (await callers.post(f"/jobs/{id}/reveal", {"note": "x"}, status=403, role=Role.OPERATOR))["code"]
    assert (await callers.post(f"/jobs/{id}/reveal", status=422))["field"] == "note"
    assert [kind for kind, _ in audited(world)] == ["jobs.enqueue"]
    shown = await callers.post(f"/jobs/{id}/reveal", {"note": "ticket 7"}, role=Role.MANAGER)
    assert shown["arguments"]["text"] == "hunter2"
    kind, body = audited(world)[-1]
    assert kind == "jobs.reveal"
    assert b"ticket 7" in body
    assert b"hunter2" not in b"".join(body for _, body in audited(world))


async def test_all_that_match_are_changed(callers: Callers, app: Fairlane, world: World) -> None:
    """Counted first, for the caller's tenant alone, audited by two entries."""
    ids = [await enqueued(callers) for _ in range(3)]
    foreign = await enqueued(callers, tenant="globex")
    dry = await callers.post("/jobs/cancel_all", {"query": "state:waiting", "dry_run": True}, tenant="acme")
    assert (dry["matches"], dry["done"], dry["left"]) == (3, 0, 3)
    done = await callers.post("/jobs/cancel_all", {"query": "state:waiting", "note": "x"}, tenant="acme")
    assert (done["matches"], done["done"], done["left"]) == (3, 3, 0)
    assert {await state(app, id) for id in ids} == {State.CANCELLED}
    assert await state(app, foreign) is State.READY
    kinds = [kind for kind, _ in audited(world)]
    assert kinds[-2:] == ["jobs.cancel_all"] * 2
    assert kinds.count("jobs.cancel") == 0


async def test_nothing_named_is_not_everything(callers: Callers, app: Fairlane) -> None:
    """A body without any filter is refused."""
    id = await enqueued(callers)
    for verb in ("cancel_all", "run_now_all"):
        assert (await callers.post(f"/jobs/{verb}", {"query": " "}, status=422))["field"] == "query"
    assert await state(app, id) is State.READY


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/jobs/{id}/cancel", {}),
        ("POST", "/jobs/{id}/run_now", {}),
        ("PATCH", "/jobs/{id}", {"priority": 3}),
        ("POST", "/jobs/{id}/fail", {"note": "x", "retry": True}),
        ("POST", "/jobs/{id}/take_back", {"note": "x"}),
        ("POST", "/jobs/{id}/condemn", {"note": "x"}),
        ("POST", "/jobs/{id}/again", {}),
        ("POST", "/jobs/{id}/reveal", {"note": "x"}),
    ],
)
async def test_a_foreign_job_is_not_there(
    callers: Callers, app: Fairlane, method: str, path: str, body: dict[str, Any]
) -> None:
    """Answered as an id that nobody has, and unchanged."""
    id = await enqueued(callers, tenant="globex", delay=60)
    foreign = await callers.ask(method, path.format(id=id), json=body, tenant="acme")
    missing = await callers.ask(method, path.format(id=uuid4()), json=body, tenant="acme")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.json() | {"request_id": ""} == missing.json() | {"request_id": ""}
    assert await state(app, id) is State.DELAYED
