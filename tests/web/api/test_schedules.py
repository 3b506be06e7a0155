"""`/schedules` over HTTP: list, add, edit, pause, run, history, remove; what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Fairlane
from tests.app.world import World, note
from tests.web.api.callers import Callers


@pytest.fixture
def task(app: Fairlane) -> str:
    """A task that takes anything."""
    return app.task(name="note")(note).name


NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "task": "note",
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
    "tenant": "acme",
    "arguments": {"text": "x"},
    "tags": ["late"],
    "note": "asked for password=hunter2",
}


async def test_a_schedule_is_added_listed_shown_and_removed(callers: Callers, task: str) -> None:
    """With what is said of it, in words, and its next runs; secrets in notes are redacted."""
    made = await callers.post("/schedules", NIGHTLY, status=201)
    assert (made["name"], made["when"], made["tenant"]) == ("nightly", "At 02:30 every day, Berlin", "acme")
    assert made["edit"]["note"] == "asked for password=[redacted]"
    assert (await callers.get("/schedules"))["items"] == [made]
    assert (await callers.get("/schedules", params={"task": "other"}))["items"] == []
    assert await callers.get("/schedules/nightly") == made
    runs = (await callers.get("/schedules/nightly/next", params={"count": 2}))["items"]
    assert runs[0] == made["next_at"]
    answer = await callers.ask("DELETE", "/schedules/nightly", json={"note": "over"})
    assert answer.status_code in {200, 204}
    assert (await callers.ask("GET", "/schedules/nightly")).status_code == 404
    kinds = [one["kind"] for one in (await callers.get("/audit"))["items"]]
    assert kinds == ["schedules.remove", "schedules.add"]


async def test_everything_wrong_is_reported_at_once(callers: Callers, task: str) -> None:
    """By field; a name that is taken is a conflict."""
    bad = {"name": "bad", "task": "note", "cron": "0 25 * * *", "timezone": "Nowhere", "overlap": "never"}
    answer = await callers.ask("POST", "/schedules", json=bad)
    assert answer.status_code == 422
    assert {one["field"] for one in answer.json()["problems"]} == {"cron", "timezone", "overlap"}
    await callers.post("/schedules", NIGHTLY, status=201)
    taken = await callers.ask("POST", "/schedules", json=NIGHTLY)
    assert (taken.status_code, taken.json()["code"]) == (409, "schedule_exists")


async def test_a_schedule_is_steered(callers: Callers, world: World, task: str) -> None:
    """Edited until a time, reset, paused, resumed, run, backfilled, recomputed."""
    await callers.post("/schedules", NIGHTLY, status=201)
    edited = await callers.ask(
        "PATCH", "/schedules/nightly", json={"every": "15m", "tags": None, "for": "2h", "note": "a rush"}
    )
    assert edited.json()["expression"] == "every 15m"
    assert edited.json()["tags"] == []
    assert edited.json()["edit"]["until"] is not None
    assert (await callers.ask("POST", "/schedules/nightly/reset", json={})).status_code == 422
    paused = await callers.post("/schedules/nightly/pause", {"note": "quiet", "for": "1h"})
    assert (paused["paused"]["reason"], paused["next_at"]) == ("quiet", None)
    assert (await callers.ask("POST", "/schedules/nightly/pause", json={})).status_code == 422
    assert (await callers.post("/schedules/nightly/resume"))["paused"] is None
    job = (await callers.post("/schedules/nightly/run", {"note": "now"}))["job"]
    (slot,) = (await callers.get("/schedules/nightly/history"))["items"]
    assert (slot["job"], slot["cause"], slot["state"]) == (job, "run_now", "enqueued")
    seen = await callers.get(f"/jobs/{job}")
    assert (seen["schedule"], seen["slot"][:19]) == ("nightly", slot["at"][:19])
    why = await callers.get(f"/jobs/{job}/explain")
    assert why["schedule"] == "nightly"
    when = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:30:00Z", "note": "an outage"}
    assert (await callers.post("/schedules/nightly/backfill", when))["number"] >= 0
    assert (await callers.post("/schedules/recompute"))["number"] == 0
    assert (await callers.post("/schedules/recompute", {"schedule": "nightly"}))["number"] == 0


async def test_an_expression_is_previewed(callers: Callers) -> None:
    """As the page does."""
    params = {"cron": "0 9 * * 1", "timezone": "America/New_York", "count": 1}
    seen = await callers.get("/schedule-preview", params=params)
    assert seen["when"] == "At 09:00 on Monday, New York"
    assert len(seen["runs"]) == 1
    wrong = await callers.ask("GET", "/schedule-preview", params={"cron": "x"})
    assert wrong.status_code == 422


async def test_a_caller_of_one_tenant_sees_its_own(callers: Callers, task: str) -> None:
    """And changes nothing: the verbs are not there."""
    await callers.post("/schedules", NIGHTLY, status=201)
    await callers.post("/schedules", {**NIGHTLY, "name": "theirs", "tenant": "globex"}, status=201)
    found = await callers.get("/schedules", tenant="acme")
    assert [one["name"] for one in found["items"]] == ["nightly"]
    assert (await callers.ask("GET", "/schedules/theirs", tenant="acme")).status_code == 404
    assert (await callers.ask("GET", "/schedules/theirs/history", tenant="acme")).status_code == 404
    run = await callers.ask("POST", "/schedules/nightly/run", json={"note": "x"}, tenant="acme")
    assert run.status_code == 404
