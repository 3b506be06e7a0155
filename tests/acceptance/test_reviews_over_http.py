"""Dead letters over HTTP, as two descriptions ask for it, on every store (S75, S79)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Fail, Fairlane, Job, Queue, State
from fairlane.model.access import Role
from tests.acceptance.presets import work
from tests.acceptance.world import World
from tests.web.api.callers import Callers

BROKEN = Fail("the paper is out")
ELEVEN = {
    *("id", "task", "category", "review", "idempotency_key", "correlation_id"),
    *("error_class", "message", "attempt", "enqueued_at", "died_at"),
}


@pytest.fixture
async def app(world: World) -> Fairlane:
    """An application with one task, in force."""
    made = world.app(queues=[Queue("default"), Queue("bulk")])
    made.task(name="work", max_attempts=2)(work)
    await world.declare()
    return made


@pytest.fixture
def callers(app: Fairlane) -> Callers:
    """Callers of its REST API."""
    return Callers(app)


async def die(world: World, app: Fairlane, number: int = 0, **options: Any) -> Job[Any]:
    """Let a job of acme move to the dead letters."""
    job = await app.aenqueue_by_name("work", {"number": number}, **{"tenant": "acme", **options})
    assert await world.fail(BROKEN, options.get("queue", "default")) is State.DEAD
    return job


async def test_001_cp5_6_retry_and_delete_of_dead_letters_change_the_state(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """One has a new job that is ready, the other is gone."""
    first, second = await die(world, app, 1), await die(world, app, 2)
    await callers.post(f"/dead/{first.id}/reprocess", status=201)
    assert (await callers.ask("DELETE", f"/dead/{second.id}", json={})).status_code == 200
    counts = await app.jobs.acount()
    assert (counts[State.READY], counts[State.DEAD]) == (1, 1)
    assert [letter.review for letter in await app.dead.afind()] == ["reprocessed"]


async def test_001_api_5_dead_letters_by_queue_and_type_fifty_at_a_time(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """And the rest by the cursor of the page."""
    app.task(name="other")(work)
    for number in range(53):
        await die(world, app, number)
    await die(world, app, queue="bulk")
    await app.aenqueue_by_name("other", {"number": 0}, tenant="acme")
    assert await world.fail(BROKEN) is State.DEAD
    page = await callers.get("/dead", params={"queue": "default", "task": "work"})
    assert len(page["items"]) == 50
    rest = await callers.get("/dead", params={"queue": "default", "task": "work", "cursor": page["cursor"]})
    assert len({one["id"] for one in (*page["items"], *rest["items"])}) == 53
    (bulk,) = (await callers.get("/dead", params={"queue": "bulk"}))["items"]
    (other,) = (await callers.get("/dead", params={"task": "other"}))["items"]
    assert (bulk["queue"], other["task"]) == ("bulk", "other")


async def test_001_api_6_a_dead_letter_is_retried_in_another_queue(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """The answer has the new job's id; asked again, the same."""
    job = await die(world, app, 7)
    body = {"to_queue": "bulk"}
    done = await callers.post(f"/dead/{job.id}/reprocess", body, status=201)
    again = await callers.post(f"/dead/{job.id}/reprocess", body, status=201)
    assert (done["job"]["queue"], again["job"]["id"]) == ("bulk", done["job"]["id"])
    claim = await world.take("bulk")
    assert (str(claim.job.id), world.arguments(claim)) == (done["job"]["id"], {"number": 7})


async def test_001_api_7_a_dead_letter_is_deleted_for_good(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """With its job."""
    job = await die(world, app)
    assert (await callers.ask("DELETE", f"/dead/{job.id}", json={"note": "wrong"})).status_code == 200
    for path in (f"/dead/{job.id}", f"/jobs/{job.id}"):
        assert (await callers.ask("GET", path)).status_code == 404


async def test_002_cm_7_dead_letters_are_for_managers_only(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """Nobody below sees one, a list, their causes or their number, and none is changed."""
    job = await die(world, app)
    for path in ("/dead", "/dead/groups", "/dead/statistics", f"/dead/{job.id}"):
        for role in Role:
            found = await callers.ask("GET", path, role=role)
            assert found.status_code == (200 if role in {Role.MANAGER, Role.ADMIN} else 403), (path, role)
    for verb in ("acknowledge", "note", "reprocess", "resolve", "ignore", "discard"):
        answer = await callers.ask("POST", f"/dead/{job.id}/{verb}", json={"note": "x"}, role=Role.OPERATOR)
        assert answer.status_code == 403
    assert [letter.review for letter in await app.dead.afind()] == ["pending"]


async def test_002_api_1_the_list_has_eleven_fields_and_a_total_and_no_payload(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """Under our names."""
    job = await die(world, app, 123_456, idempotency_key="key", correlation_id="order 7")
    await die(world, app)
    page = await callers.get("/dead")
    assert page["total"] == {"number": 2, "is_exact": True}
    (letter,) = [one for one in page["items"] if one["id"] == str(job.id)]
    fields = {
        "id",
        "task",
        "category",
        "review",
        "idempotency_key",
        "correlation_id",
        "error_class",
        "message",
    }
    assert letter.keys() >= {*fields, "attempt", "enqueued_at", "died_at"}
    assert (letter["message"], letter["correlation_id"]) == ("the paper is out", "order 7")
    assert "123456" not in str(page)


async def test_002_api_2_one_letter_has_its_payload_for_a_manager(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """And for nobody below."""
    job = await die(world, app, 123_456)
    shown = await callers.get(f"/dead/{job.id}", role=Role.MANAGER)
    assert shown["job"]["arguments"] == {"number": 123_456}
    assert (await callers.ask("GET", f"/dead/{job.id}", role=Role.OPERATOR)).status_code == 403


async def test_002_api_3_reprocessing_answers_with_letter_job_and_key(
    world: World, app: Fairlane, callers: Callers
) -> None:
    """And keeps the note."""
    job = await die(world, app, idempotency_key="key")
    done = await callers.post(f"/dead/{job.id}/reprocess", {"note": "paper is back"}, status=201)
    (letter,) = await app.dead.afind()
    assert (done["id"], done["job"]["id"]) == (str(job.id), str(letter.new_job))
    assert done["job"]["idempotency_key"] == "key#r1"
    assert letter.notes[-1].text == "paper is back"


async def test_002_api_4_a_letter_is_discarded(world: World, app: Fairlane, callers: Callers) -> None:
    """For good: it does not run again."""
    job = await die(world, app)
    assert (await callers.post(f"/dead/{job.id}/discard", {"note": "obsolete"}))["review"] == "discarded"
    refused = await callers.post(f"/dead/{job.id}/reprocess", status=409)
    assert refused["code"] == "wrong_state"


async def test_002_api_5_statistics_of_dead_letters(world: World, app: Fairlane, callers: Callers) -> None:
    """By queue, task, tenant, class and review."""
    await die(world, app)
    await die(world, app, queue="bulk")
    third = await die(world, app, tenant="globex")
    await app.dead.aignore(third.id)
    found = await callers.get("/dead/statistics")
    assert found["letters"] == 3
    assert found["queues"] == {"default": 2, "bulk": 1}
    assert found["tasks"] == {"work": 3}
    assert found["tenants"] == {"acme": 2, "globex": 1}
    assert found["error_classes"] == {"non_retryable": 3}
    assert {review: n for review, n in found["reviews"].items() if n} == {"pending": 2, "ignored": 1}
