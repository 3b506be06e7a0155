"""Who calls over HTTP, and the stream of events, as two descriptions ask for it (S79, S91)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import msgspec
import pytest

from fairlane import Fairlane
from fairlane.model.journal.entries import NewEntry
from fairlane.model.scope import Scope
from fairlane.runtime.loops import start_in_background
from fairlane.store.contract.journal import AppendRequest
from fairlane.web.api.events import PING_EVERY
from fairlane.web.application import asgi
from tests.acceptance.world import World
from tests.duties.journals.crew import teller
from tests.web.access.test_callers import basic
from tests.web.access.visitor import PASSWORD, Visitor, visiting
from tests.web.api.callers import Callers
from tests.web.api.streams import Stream

JOBS: Final = "/api/v1/jobs"
PAUSE: Final = "/api/v1/queues/default/pause"


@pytest.fixture
async def app(world: World) -> Fairlane:
    """An application with basic authentication, in force."""
    made = world.app(config={"web": {"basic_auth": True}})
    await world.declare()
    return made


@pytest.fixture
async def visitor(app: Fairlane) -> AsyncGenerator[Visitor]:
    """A browser in front of its web."""
    async with visiting(app, web=asgi(app)) as made:
        yield made


async def test_001_nf_17_basic_authentication_for_the_dashboard(app: Fairlane, visitor: Visitor) -> None:
    """By setting; a wrong password is asked for again."""
    await app.users.aadd("ann", password=PASSWORD, role="viewer")
    assert (await visitor.client.get("/jobs", headers=basic())).status_code == 200
    wrong = await visitor.client.get(JOBS, headers=basic(password="wrong"))
    assert wrong.status_code == 401
    assert "Basic" in wrong.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        ("viewer", (200, 403, 403, 403)),
        ("operator", (200, 200, 403, 403)),
        ("manager", (200, 200, 200, 403)),
        ("admin", (200, 200, 200, 200)),
    ],
)
async def test_001_ex_24_users_have_roles(
    app: Fairlane, visitor: Visitor, role: str, statuses: tuple[int, ...]
) -> None:
    """Each may do what the one before may, and more: see, pause, review dead letters, manage users."""
    await app.users.aadd("ann", password=PASSWORD, role=role)
    await visitor.enter()
    answers = [
        await visitor.client.get(JOBS),
        await visitor.client.post(PAUSE, json={"note": "x"}),
        await visitor.client.get("/api/v1/dead"),
        await visitor.client.get("/api/v1/users"),
    ]
    assert tuple(one.status_code for one in answers) == statuses


async def test_001_api_11_events_are_streamed_and_resumed(world: World, app: Fairlane) -> None:
    """With the media type of such streams, each event once, and a sign of life every fifteen seconds."""
    callers = Callers(app)
    duty = teller()
    facts = (("job_stuck", "mail", "send"), ("worker_lost", "", ""), ("job_stuck", "bulk", "send"))
    for kind, queue, task in facts:
        body = msgspec.json.encode({"queue": queue, "task": task} if queue else {})
        entry = NewEntry(kind=kind, subject=kind, body=body)
        request = AppendRequest(scope=Scope.all(), journal="events", entries=(entry,))
        await world.store.journal.append(request)
        world.clock.advance(20)  # so that equal ones are not folded
        while not await duty(world.store):
            pass
    first = await messages(callers, 2, b"after=0")
    assert [one["id"] for one in first] == ["1", "2"]
    (third,) = await messages(callers, 1, b"", {"last-event-id": "2"})
    assert (third["id"], third["event"]) == ("3", "job_stuck")
    stuck = await messages(callers, 2, b"after=0&kind=job_stuck")
    assert [one["id"] for one in stuck] == ["1", "3"]
    (bulk,) = await messages(callers, 1, b"after=0&queue=bulk")
    assert bulk["id"] == "3"
    sent = await messages(callers, 2, b"after=0&task=send")
    assert [one["id"] for one in sent] == ["1", "3"]
    assert PING_EVERY <= 30


async def messages(
    callers: Callers, number: int, query: bytes, headers: dict[str, str] | None = None
) -> list[dict[str, str]]:
    """Read so many messages of the stream of events, and leave."""
    stream = Stream(callers.web, "/events/stream", query=query, headers=headers)
    task = start_in_background(stream.run())
    try:
        found = await stream.messages(number)
        assert stream.headers["content-type"].startswith("text/event-stream")
    finally:
        stream.leave()
        await task
    return found
