"""Events and the audit over HTTP: pages, and the stream of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from fairlane.model.access import Role
from fairlane.model.instants import Micros
from fairlane.model.journal.entries import JournalName, NewEntry
from fairlane.model.scope import Scope
from fairlane.runtime.loops import start_in_background
from fairlane.store.contract import Store
from fairlane.store.contract.journal import AppendRequest
from tests.app.world import RuntimeClock, World
from tests.duties.journals.crew import sealer, teller
from tests.web.api.callers import Callers
from tests.web.api.streams import Stream


class TurningClock(RuntimeClock):
    """Time passes at once, and others get their turn meanwhile: a stream waits without end."""

    async def wait(self, duration: Micros) -> None:
        """Let time pass."""
        await super().wait(duration)
        await asyncio.sleep(0)


@pytest.fixture
def clock(callers: Callers) -> RuntimeClock:
    """The clock of the application."""
    callers.app.client.clock = made = TurningClock()
    return made


async def happen(world: World, *subjects: str, journal: JournalName = "events", **values: Any) -> None:
    """Append an entry about each subject, and let a leader number them."""
    for subject in subjects:
        entry = NewEntry(**{"kind": "worker_lost", "subject": subject, **values})
        request = AppendRequest(scope=Scope.all(), journal=journal, entries=(entry,))
        await world.oracle.journal.append(request)
        world.clock.advance(1)
    duty: Any = teller() if journal == "events" else sealer(key=None)
    while not await duty(cast("Store", world.oracle)):
        pass


@asynccontextmanager
async def streaming(callers: Callers, **request: Any) -> AsyncIterator[Stream]:
    """Open the stream of events, and leave it at the end."""
    stream = Stream(callers.web, "/events/stream", **request)
    task = start_in_background(stream.run())
    try:
        yield stream
    finally:
        stream.leave()
        await task


# ── pages ────────────────────────────────────────────────────────────────────


async def test_events_come_page_by_page(callers: Callers, world: World) -> None:
    """Newest first, with every filter, secrets redacted."""
    await happen(world, "a", "b", "password=hunter2")
    await happen(world, "c", kind="job_stuck", tenant="acme", body=b'{"token":"hunter2"}')
    page = await callers.get("/events", params={"limit": 3})
    assert [one["number"] for one in page["items"]] == [4, 3, 2]
    rest = await callers.get("/events", params={"limit": 3, "cursor": page["cursor"]})
    assert [one["subject"] for one in rest["items"]] == ["a"]
    assert "hunter2" not in str(page)
    for query in ({"kind": ["job_stuck", "dead_letter"]}, {"tenant": "acme"}, {"subject": "c"}):
        assert [one["number"] for one in (await callers.get("/events", params=query))["items"]] == [4]
    response = await callers.ask("GET", "/events", params={"kind": "job_stuk"})
    assert (response.status_code, response.json()["field"]) == (422, "kind")
    assert "did you mean 'job_stuck'" in response.text


async def test_the_audit_is_read_and_verified(callers: Callers, world: World) -> None:
    """Entries that are not sealed have no number yet."""
    await callers.post("/queues/default/pause", {"note": "moving"})
    (entry,) = (await callers.get("/audit", params={"kind": "queues.pause"}))["items"]
    assert (entry["number"], entry["is_sealed"], entry["note"]) == (None, False, "moving")
    await happen(world, journal="audit")
    (sealed,) = (await callers.get("/audit"))["items"]
    assert (await callers.get(f"/audit/{sealed['number']}")) == sealed
    assert (await callers.get("/audit/verification"))["is_intact"] is True
    assert (await callers.ask("GET", "/audit/99")).status_code == 404


async def test_the_audit_is_exported_as_a_file(callers: Callers, world: World) -> None:
    """All entries that match, the oldest first, and only the caller's own."""
    for name in ("acme", "globex"):
        await callers.post(f"/tenants/{name}/pause", {"note": f"moving {name}"})
    await happen(world, journal="audit")
    await callers.post("/tenants/acme/resume", {"note": "moved"})
    answer = await callers.ask("GET", "/audit/export")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [(one["kind"], one["note"]) for one in lines] == [
        ("tenants.pause", "moving acme"),
        ("tenants.pause", "moving globex"),
        ("tenants.resume", "moved"),
    ]
    assert 'filename="audit.jsonl"' in answer.headers["content-disposition"]
    (only,) = (await callers.ask("GET", "/audit/export?kind=tenants.resume")).text.splitlines()
    assert json.loads(only) == lines[-1]
    own = (await callers.ask("GET", "/audit/export", tenant="globex")).text.splitlines()
    assert [json.loads(line) for line in own] == [lines[1]]
    assert (await callers.ask("GET", "/audit/export?tenant=acme", tenant="globex")).status_code == 404


async def test_a_caller_of_one_tenant_reads_that_tenants_entries(callers: Callers, world: World) -> None:
    """Another's do not exist: not in lists, not by number, not by its name."""
    await happen(world, "mine", kind="job_stuck", tenant="acme")
    await happen(world, "canary", kind="job_stuck", tenant="globex")
    await callers.post("/tenants/globex/pause", {"note": "canary"})
    await happen(world, journal="audit")
    for path in ("/events", "/audit", "/tenants"):
        response = await callers.ask("GET", path, tenant="acme")
        assert response.status_code == 200
        assert "canary" not in response.text
        assert "globex" not in response.text
    for path in ("/events?tenant=globex", "/audit?tenant=globex", "/audit/1", "/audit/verification"):
        assert (await callers.ask("GET", path, tenant="acme")).status_code == 404
    assert (await callers.ask("GET", "/audit/verification", role=Role.MANAGER)).status_code == 403


# ── the stream ───────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("clock")
async def test_a_stream_has_what_happens_and_goes_on_where_it_was_cut(callers: Callers, world: World) -> None:
    """Each event once: the client says which one it had last."""
    await happen(world, "a", "b")
    async with streaming(callers, query=b"after=0") as stream:
        first = await stream.messages(2)
    assert [one["id"] for one in first] == ["1", "2"]
    assert [one["data"]["subject"] for one in first] == ["a", "b"]
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    await happen(world, "c")
    async with streaming(callers, query=b"after=0", headers={"last-event-id": "2"}) as stream:
        (third,) = await stream.messages(1)
    assert (third["event"], third["id"], third["data"]["subject"]) == ("worker_lost", "3", "c")


async def test_a_stream_has_what_its_caller_may_see(
    callers: Callers, world: World, clock: RuntimeClock
) -> None:
    """Also what happens after it was opened, when no call of the caller runs any more."""
    await happen(world, "canary", kind="job_stuck", tenant="globex")

    async def later() -> None:
        await happen(world, "canary", kind="job_stuck", tenant="globex")
        await happen(world, "mine", kind="job_stuck", tenant="acme")

    clock.meanwhile.append(later)
    async with streaming(callers, query=b"after=0", tenant="acme") as stream:
        (mine,) = await stream.messages(1)
    assert mine["data"]["subject"] == "mine"
    assert b"canary" not in stream.raw


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        (b"kind=job_stuk", {}, 422),
        (b"after=-1", {}, 422),
        (b"", {"last-event-id": "x"}, 422),
        (b"tenant=globex", {}, 404),
    ],
)
async def test_a_stream_that_cannot_be_is_refused_before_it_begins(
    callers: Callers, query: bytes, headers: dict[str, str], status: int
) -> None:
    """With an error like any other, not with a stream that ends."""
    async with streaming(callers, query=query, headers=headers, tenant="acme") as stream:
        await stream.ended()
    assert stream.status == status


@pytest.mark.usefixtures("clock")
async def test_a_stream_tells_nothing_to_who_is_nobody_by_now(
    callers: Callers, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S91: a token may be revoked while its stream is open."""
    monkeypatch.setattr("fairlane.web.api.events.KNOWN_FOR", 0)
    site = callers.web.state.site
    await happen(world, "before")
    async with streaming(callers, query=b"after=0") as stream:
        await stream.messages(1)

        async def nobody(_: object) -> None:
            return None

        site.authenticate = nobody
        await happen(world, "after")
        await stream.ended()
    assert b"after" not in stream.raw
