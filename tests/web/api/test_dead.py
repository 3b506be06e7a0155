"""Dead letters over HTTP: read, decided about, run again, deleted, one or all that match."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fairlane import ErrorClass, Fairlane, State
from fairlane.app.dead import totals
from fairlane.model.access import Role
from fairlane.model.policy.overrides import BreakerRules, Rules, Subject, SubjectKind, TaskRules
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PutRequest
from tests.app.world import World
from tests.web.api.callers import Callers
from tests.web.api.test_job_changes import audited


async def died(app: Fairlane, world: World, text: str = "a", tenant: str = "acme", **options: Any) -> str:
    """Enqueue a job and let it die."""
    job = await app.aenqueue_by_name("mail.send", {"text": text}, tenant=tenant, **options)
    await world.fail("no line", ErrorClass.NON_RETRYABLE)
    return str(job.id)


async def test_a_list_has_all_that_a_reviewer_needs_and_no_payload(
    callers: Callers, app: Fairlane, world: World
) -> None:
    """C's eleven fields, under our names, and how many there are."""
    id = await died(app, world, "hunter2", correlation_id="order 7", idempotency_key="k")
    page = await callers.get("/dead")
    (letter,) = page["items"]
    eleven = {
        "id": id,
        "category": None,
        "task": "mail.send",
        "review": "pending",
        "idempotency_key": "k",
        "correlation_id": "order 7",
        "error_class": "non_retryable",
        "message": "no line",
        "attempt": 1,
    }
    assert eleven.items() <= letter.items()
    assert {"enqueued_at", "died_at"} <= letter.keys()
    assert page["total"] == {"number": 1, "is_exact": True}
    assert "hunter2" not in str(page)


async def test_one_letter_is_shown_redacted_and_downloaded_in_clear(
    callers: Callers, app: Fairlane, world: World
) -> None:
    """The download needs a manager and a reason, and is audited first."""
    id = await died(app, world, "hunter2")
    shown = await callers.get(f"/dead/{id}", role=Role.MANAGER)
    assert shown["job"]["arguments"]["text"] == "[redacted]"
    assert (await callers.ask("POST", f"/dead/{id}/payload", json={"note": "x"}, role=Role.OPERATOR)).is_error
    assert (await callers.ask("POST", f"/dead/{id}/payload", json={})).status_code == 422
    assert audited(world) == []
    file = await callers.ask("POST", f"/dead/{id}/payload", json={"note": "ticket 7"}, role=Role.MANAGER)
    assert file.headers["content-disposition"] == f'attachment; filename="dead-{id}.json"'
    assert file.json()["arguments"]["text"] == "hunter2"
    assert [kind for kind, _ in audited(world)] == ["dead.payload"]


async def test_a_letter_is_reprocessed_once(callers: Callers, app: Fairlane, world: World) -> None:
    """C's three ids: of the letter, of the new job, and its new key."""
    id = await died(app, world, idempotency_key="k")
    done = await callers.post(f"/dead/{id}/reprocess", {"note": "fixed"}, status=201)
    job = done["job"]
    assert (done["id"], job["idempotency_key"], job["created"], job["state"]) == (id, "k#r1", True, "ready")
    again = await callers.post(f"/dead/{id}/reprocess", status=201)
    assert (again["job"]["id"], again["job"]["created"]) == (job["id"], False)
    letter = await callers.get(f"/dead/{id}")
    assert (letter["review"], letter["new_job"], letter["notes"][-1]["text"]) == (
        "reprocessed",
        job["id"],
        "fixed",
    )
    assert (await callers.post(f"/dead/{id}/discard", status=409))["code"] == "wrong_state"


async def test_a_letter_may_run_elsewhere_with_other_arguments(
    callers: Callers, app: Fairlane, world: World
) -> None:
    """B's optional queue."""
    app.task(name="other", queue="bulk")(lambda: None)
    id = await died(app, world)
    body = {"to_queue": "bulk", "arguments": {"text": "b"}}
    job = (await callers.post(f"/dead/{id}/reprocess", body, status=201))["job"]
    assert job["queue"] == "bulk"
    assert (await app.jobs.aget(job["id"])).arguments["text"] == "b"


@pytest.mark.parametrize(
    ("verb", "review"),
    [("acknowledge", "pending"), ("resolve", "resolved"), ("ignore", "ignored"), ("discard", "discarded")],
)
async def test_a_letter_is_decided_about(
    callers: Callers, app: Fairlane, world: World, verb: str, review: str
) -> None:
    """With who did it and why."""
    id = await died(app, world)
    letter = await callers.post(f"/dead/{id}/{verb}", {"note": "why"}, role=Role.MANAGER)
    assert (letter["review"], letter["notes"][-1]["who"], letter["notes"][-1]["text"]) == (
        review,
        "ann",
        "why",
    )
    assert letter["acknowledged_by"] == "ann"
    assert [kind for kind, _ in audited(world)] == [f"dead.{verb}"]


async def test_a_letter_is_deleted_for_good(callers: Callers, app: Fairlane, world: World) -> None:
    """With its job; asked again, there is nothing."""
    id = await died(app, world)
    response = await callers.ask("DELETE", f"/dead/{id}", json={"note": "gdpr"})
    assert response.json() == {"id": id}
    assert (await callers.ask("DELETE", f"/dead/{id}")).status_code == 404
    assert (await callers.ask("GET", f"/jobs/{id}")).status_code == 404


async def test_a_job_that_is_not_dead_has_no_letter(callers: Callers, app: Fairlane) -> None:
    """Which is not the same as no job."""
    job = await app.aenqueue_by_name("mail.send", {"text": "a"}, tenant="acme")
    assert (await callers.ask("GET", f"/dead/{job.id}")).json()["code"] == "wrong_state"
    assert (await callers.ask("GET", f"/dead/{job.id}", tenant="globex")).status_code == 404
    assert (await callers.ask("GET", f"/dead/{uuid4()}")).status_code == 404


@pytest.mark.parametrize(
    ("verb", "done"),
    [
        ("acknowledge", {"pending"}),
        ("resolve", {"resolved"}),
        ("ignore", {"ignored"}),
        ("discard", {"discarded"}),
        ("reprocess", {"reprocessed"}),
        ("delete", set()),
    ],
)
async def test_all_that_match_are_done(
    callers: Callers, app: Fairlane, world: World, verb: str, done: set[str]
) -> None:
    """Of the caller's tenant, counted first; a letter of another tenant stays as it is."""
    ids = [await died(app, world) for _ in range(3)]
    foreign = await died(app, world, tenant="globex")
    dry = await callers.post(f"/dead/{verb}_all", {"dry_run": True, "task": "mail.send"}, tenant="acme")
    assert (dry["matches"], dry["done"], dry["left"]) == (3, 0, 3)
    result = await callers.post(f"/dead/{verb}_all", {"task": "mail.send", "note": "why"}, tenant="acme")
    assert (result["matches"], result["done"], result["left"]) == (3, 3, 0)
    letters = (await callers.get("/dead", tenant="acme"))["items"]
    assert {one["review"] for one in letters} == done
    assert len(letters) == (3 if done else 0)
    assert (await callers.get(f"/dead/{foreign}"))["acknowledged_by"] is None
    assert (await callers.get(f"/dead/{foreign}"))["review"] == "pending"
    assert [kind for kind, _ in audited(world)] == [f"dead.{verb}_all"] * 2
    assert len(ids) == 3


async def test_letters_are_grouped_and_counted(callers: Callers, app: Fairlane, world: World) -> None:
    """One cause, one group; of the caller's tenant alone."""
    await died(app, world)
    await died(app, world)
    await died(app, world, tenant="globex")
    (group,) = await callers.get("/dead/groups", tenant="acme")
    assert (group["letters"], group["tenants"], group["message"]) == (2, ["acme"], "no line")
    statistics = await callers.get("/dead/statistics", tenant="acme")
    assert (statistics["letters"], statistics["queues"]) == (2, {"default": 2})
    assert statistics["error_classes"] == {"non_retryable": 2}
    assert (await callers.get("/dead/statistics"))["tenants"] == {"acme": 2, "globex": 1}


async def test_a_group_behind_an_open_breaker_says_so(callers: Callers, app: Fairlane, world: World) -> None:
    """To those who see all tenants: breakers belong to all of them."""
    await died(app, world)
    rules: dict[Subject, Rules] = {
        Subject(SubjectKind.BREAKER, "smtp"): BreakerRules(),
        Subject(SubjectKind.TASK, "mail.send"): TaskRules(breaker="smtp"),
    }
    await world.oracle.policies.put(PutRequest(scope=Scope.all(), rules=rules))
    (group,) = await callers.get("/dead/groups")
    assert group["breaker"] is None
    await app.breakers.aopen("smtp", reason="it is down")
    (group,) = await callers.get("/dead/groups")
    assert group["breaker"] == {"name": "smtp", "tenant": None, "state": "open", "until": None}
    (group,) = await callers.get("/dead/groups", tenant="acme")
    assert group["breaker"] is None


async def test_a_total_beyond_a_look_is_estimated(
    callers: Callers, app: Fairlane, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By tenant, queue and review alone it is exact."""
    for _ in range(6):
        await died(app, world)
    monkeypatch.setattr(totals, "MAX_ROWS_READ", 4)
    assert (await callers.get("/dead", params={"limit": 1}))["total"] == {"number": 6, "is_exact": True}
    page = await callers.get("/dead", params={"limit": 1, "task": "mail.send"})
    assert page["total"] == {"number": 6, "is_exact": False}


async def test_statistics_of_queues_and_jobs(callers: Callers, app: Fairlane, world: World) -> None:
    """D's pending, processing, failed and oldest; by correlation id; what fails and what is retried."""
    await died(app, world, correlation_id="order 7")
    await app.aenqueue_by_name("mail.send", {"text": "a"}, tenant="acme", correlation_id="order 7")
    await app.aenqueue_by_name("mail.send", {"text": "b"}, tenant="globex", delay=60)
    (queue,) = await callers.get("/statistics/queues", tenant="acme")
    assert (queue["queue"], queue["ready"], queue["dead"], queue["delayed"]) == ("default", 1, 1, 0)
    assert queue["oldest_minutes"] == 0
    jobs = await callers.get("/statistics/jobs", params={"correlation_id": "order 7"})
    assert (jobs["total"], jobs["states"]["ready"], jobs["states"]["dead"]) == (2, 1, 1)
    assert jobs["because"]["dead"] == {"failed": 1}
    failures = await callers.get("/statistics/failures", tenant="acme")
    assert [(one["task"], one["failures"], one["dead"]) for one in failures["tasks"]] == [("mail.send", 1, 1)]
    assert (await callers.get("/statistics/failures", tenant="globex"))["tasks"] == []
    (retries,) = (await callers.get("/statistics/retries"))["tasks"]
    assert (retries["jobs"], retries["dead"], retries["success_rate"]) == (1, 1, 0.0)
    assert (await app.jobs.acount())[State.DEAD] == 1
