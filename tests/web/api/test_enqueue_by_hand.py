"""A job that somebody enqueues by hand: as JSON, or as the texts of a form."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.access import Role
from tests.app.world import World
from tests.web.api.callers import Callers
from tests.web.api.test_policies import publish


def page(to: str, number: int = 1, *, draft: bool = False, tags: list[str] | None = None) -> None:
    """Take arguments of several types."""


@pytest.fixture
async def published(callers: Callers, world: World) -> Callers:
    """Callers of an application with a task that a worker has published."""
    callers.app.task(name="page.render", queue="bulk")(page)
    await publish(world, callers.app)
    return callers


async def test_it_is_stored_and_audited(published: Callers, world: World) -> None:
    """With who did it and why; nothing of its arguments is in the audit."""
    body = {"tenant": "acme", "arguments": {"to": "hunter2"}, "priority": 5, "note": "customer asked"}
    made = await published.post("/tasks/page.render/enqueue", body, status=201, role=Role.OPERATOR)
    job = world.one()
    assert (made["id"], made["queue"], made["created"]) == (str(job.id), "bulk", True)
    assert (job.tenant, job.priority, job.created_by) == ("acme", 5, "ann")
    (entry,) = (await published.get("/audit"))["items"]
    assert (entry["kind"], entry["tenant"], entry["note"]) == ("tasks.enqueue", "acme", "customer asked")
    assert "hunter2" not in str(entry)


async def test_texts_are_read_as_the_schema_types_them(published: Callers, world: World) -> None:
    """What a form leaves empty is not given."""
    texts = {"to": "7", "number": "7", "draft": "on", "tags": '["a"]'}
    body = {"tenant": "acme", "texts": texts, "note": "x", "queue": "", "dedup_key": ""}
    await published.post("/tasks/page.render/enqueue", body, status=201)
    assert world.one().payload == (b'{"v":1,"arguments":{"to":"7","number":7,"draft":true,"tags":["a"]}}')


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"texts": {"to": "x", "number": "seven"}}, "arguments.number"),
        ({"texts": {"to": "x", "tags": "a, b"}}, "arguments.tags"),
        ({"texts": {"number": "7"}}, "arguments.to"),
        ({"arguments": {"to": "x", "nmber": 7}}, "arguments.nmber"),
        ({"arguments": {"to": 7}}, "arguments.to"),
        ({"note": ""}, "note"),
        ({"tenant": "a b"}, "tenant"),
        ({"run_at": "tomorrow"}, "run_at"),
    ],
)
async def test_bad_input_names_the_field(
    published: Callers, world: World, change: dict[str, Any], field: str
) -> None:
    """And nothing is stored."""
    body = {"tenant": "acme", "arguments": {} if "texts" in change else {"to": "x"}, "note": "x", **change}
    problem = await published.post("/tasks/page.render/enqueue", body, status=422)
    assert field in problem["detail"]
    assert world.stored() == []


async def test_an_unknown_task_is_no_task(published: Callers) -> None:
    """The error suggests the closest name."""
    body = {"tenant": "acme", "arguments": {}, "note": "x"}
    problem = await published.post("/tasks/page.rendr/enqueue", body, status=422)
    assert "page.render" in str(problem)


async def test_a_viewer_may_not(published: Callers, world: World) -> None:
    """Nor a caller of one tenant, for whom tasks are not there."""
    body = {"tenant": "acme", "arguments": {"to": "x"}, "note": "x"}
    await published.post("/tasks/page.render/enqueue", body, role=Role.VIEWER, status=403)
    await published.post("/tasks/page.render/enqueue", body, tenant="acme", status=404)
    assert world.stored() == []
