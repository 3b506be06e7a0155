"""Jobs over HTTP, read."""

from __future__ import annotations

from uuid import uuid4

import pytest

from fairlane import Fairlane, Job
from fairlane.app.admin import job_search, job_totals
from tests.app.world import World
from tests.web.api.callers import Callers


async def enqueue(app: Fairlane, *texts: str, tenant: str = "acme", **options: object) -> list[Job[None]]:
    """Enqueue a job for each text."""
    return [
        await app.aenqueue_by_name("mail.send", {"text": text}, tenant=tenant, **options) for text in texts
    ]


async def test_a_list_has_summaries_without_payload(callers: Callers, world: World) -> None:
    """B's ten fields, under our names, and nothing of what the job carries."""
    await enqueue(callers.app, "hunter2", metadata={"note": "hunter2"}, tags=["a"])
    await world.fail("no line")
    page = await callers.get("/jobs")
    (job,) = page["items"]
    ten = {"id", "task", "queue", "state", "enqueued_at", "started_at", "settled_at", "duration", "attempt"}
    assert ten | {"failures"} <= job.keys()
    assert (job["state"], job["attempt"], job["failures"], job["tags"]) == ("dead", 1, 1, ["a"])
    assert "hunter2" not in str(page)
    assert (page["cursor"], page["total"]) == (None, {"number": 1, "is_exact": True})


async def test_pages_have_every_job_once(callers: Callers) -> None:
    """The cursor goes on; only the first page says how many there are."""
    jobs = await enqueue(callers.app, *"abcde")
    found, cursor, totals = [], None, []
    for _ in range(10):
        page = await callers.get("/jobs", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        found += [one["id"] for one in page["items"]]
        totals.append(page["total"])
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == [str(job.id) for job in reversed(jobs)]
    assert totals == [{"number": 5, "is_exact": True}, None, None]


@pytest.mark.parametrize(
    ("query", "number"), [("tenant:acme", 4), ("arg.text:b", 2), ("tag:x", 3), ("state:dead", 0), ("", 6)]
)
async def test_a_total_is_exact_as_far_as_it_looks(callers: Callers, query: str, number: int) -> None:
    """By counters, by the store's filters, and by looking at each job."""
    await enqueue(callers.app, "a", "b", "c")
    await enqueue(callers.app, "a", tags=["x"])
    await enqueue(callers.app, "b", "c", tenant="globex", tags=["x"])
    assert await callers.get("/jobs/count", params={"query": query}) == {"number": number, "is_exact": True}


@pytest.mark.parametrize("query", ["arg.text:b", "tag:x"])
async def test_beyond_that_it_is_estimated_and_says_so(
    callers: Callers, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the part that was looked at."""
    monkeypatch.setattr(job_totals, "MAX_ROWS_READ", 4)
    monkeypatch.setattr(job_totals, "_STEP", 2)
    monkeypatch.setattr(job_search, "_STEP", 2)
    for _ in range(10):
        await enqueue(callers.app, "a")
        await enqueue(callers.app, "b", tags=["x"])
    answer = await callers.get("/jobs/count", params={"query": query})
    assert answer == {"number": 10, "is_exact": False}


async def test_a_job_is_shown_redacted(callers: Callers, world: World) -> None:
    """By the names that its task declares, too."""
    (job,) = await enqueue(callers.app, "hunter2")
    await world.fail("password=hunter2")
    shown = await callers.get(f"/jobs/{job.id}")
    assert shown["arguments"] == {"text": "[redacted]", "other": None}
    assert "hunter2" not in str(shown)
    assert shown["attempts"][0]["error_type"] == "FaxError"
    assert await callers.get(f"/jobs/{job.id}/attempts") == shown["attempts"]


async def test_a_job_says_why_it_waits_and_what_it_belongs_to(callers: Callers) -> None:
    """Explain and trace."""
    (job,) = await enqueue(callers.app, "a", correlation_id="order 7")
    await enqueue(callers.app, "b", correlation_id="order 7")
    assert (await callers.get(f"/jobs/{job.id}/explain"))["reason"] == "no_worker"
    trace = await callers.get(f"/jobs/{job.id}/trace")
    assert trace["is_complete"]
    assert [one["depth"] for one in trace["items"]] == [0, 0]


async def test_a_result_is_there_once_the_job_has_succeeded(callers: Callers, world: World) -> None:
    """None before, and no waiting."""
    (job,) = await enqueue(callers.app, "a")
    before = await callers.get(f"/jobs/{job.id}/result")
    assert before == {"state": "ready", "is_there": False, "result": None}
    await world.succeed({"token": "hunter2", "pages": 3})
    after = await callers.get(f"/jobs/{job.id}/result")
    assert after == {"state": "succeeded", "is_there": True, "result": {"token": "[redacted]", "pages": 3}}
    assert await callers.get(f"/jobs/{job.id}/logs") == []


async def test_a_caller_of_one_tenant_sees_only_its_jobs(callers: Callers) -> None:
    """In lists and totals; and what is another's is answered as what is not there."""
    (mine,) = await enqueue(callers.app, "a")
    (other,) = await enqueue(callers.app, "b", tenant="globex")
    page = await callers.get("/jobs", tenant="acme")
    assert [one["id"] for one in page["items"]] == [str(mine.id)]
    assert page["total"] == {"number": 1, "is_exact": True}
    foreign = await callers.ask("GET", f"/jobs/{other.id}", tenant="acme")
    missing = await callers.ask("GET", f"/jobs/{uuid4()}", tenant="acme")
    assert foreign.status_code == missing.status_code == 404
    named = await callers.ask("GET", "/jobs", tenant="acme", params={"query": "tenant:globex"})
    assert named.status_code == 404


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"since": "yesterday"}, "since"),
        ({"since": "2026-01-01T00:00:00"}, "since"),
        ({"queu": "bulk"}, "queu"),
        ({"state": "lost"}, "state"),
        ({"cursor": "x"}, ""),
        ({"queue": "No Queue"}, ""),
    ],
)
async def test_a_bad_value_is_named(callers: Callers, params: dict[str, str], field: str) -> None:
    """One error shape, with the field."""
    response = await callers.ask("GET", "/jobs", params=params)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem.get("field", "").startswith(field)
    assert problem["request_id"] == response.headers["x-request-id"]
