"""The pages of the audit and of events: what is there and for whom, and whether the chain is intact."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from fairlane.model.access import Role
from fairlane.model.journal.entries import NewEntry
from fairlane.model.scope import Scope
from fairlane.store.contract.journal import AppendRequest
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup
from tests.web.pages.scene import FOREIGN_WORD, MINE, SECRET, Scene, filled


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A filled store."""
    async with filled("sqlite") as made:
        yield made


async def text_of(
    scene: Scene, path: str, role: Role = Role.ADMIN, tenant: str | None = None, method: str = "GET"
) -> str:
    """Return what a page says, in one line."""
    async with web_of(scene.app, ann(role, tenant)) as web:
        answer = await web.request(method, path)
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", Markup(answer.text).text)


async def test_an_entry_shows_what_changed_and_leads_to_it(scene: Scene) -> None:
    """Without who, why and when once more, which stand beside it."""
    async with web_of(scene.app, ann()) as web:
        answer = await web.get("/audit?kind=gates.set")
    text = re.sub(r"\s+", " ", Markup(answer.text).text)
    assert "override.limit 2" in text
    assert "set_at" not in text
    assert 'href="/guards"' in answer.text
    assert "1 entry" in text


async def test_secrets_in_notes_are_redacted(scene: Scene) -> None:
    """People write them there."""
    await scene.app.queues.aresume("mail", note=f"password={SECRET}")
    text = await text_of(scene, "/audit?kind=queues.resume")
    assert "password=[redacted]" in text
    assert SECRET not in text


async def test_an_unsealed_entry_says_so(scene: Scene) -> None:
    """A duty seals it within seconds."""
    await scene.app.queues.aresume("mail", note="done")
    text = await text_of(scene, "/audit")
    assert "1 entry waits for its number and seal" in text
    await scene.tell()
    assert "All of these are sealed into the chain" in await text_of(scene, "/audit")


async def test_what_is_listed_can_be_exported(scene: Scene) -> None:
    """The link has the filters of the page, and leads to a file for whoever sees the page."""
    async with web_of(scene.app, ann(Role.VIEWER)) as web:
        page = await web.get("/audit?kind=gates.set&since=2026-01-01T08:00")
        (link,) = re.findall(r'href="([^"]+)" download', page.text)
        answer = await web.get(link.replace("&amp;", "&"))
    (line,) = answer.text.splitlines()
    assert '"kind":"gates.set"' in line


async def test_an_administrator_verifies_the_chain(scene: Scene) -> None:
    """It says how far the chain goes, and what its seals are worth."""
    text = await text_of(scene, "/audit/verification", method="POST")
    assert "The chain is intact" in text
    assert "the seals are checksums" in text
    async with web_of(scene.app, ann(Role.MANAGER)) as web:
        assert (await web.post("/audit/verification")).status_code == 403
        assert "/audit/verification" not in (await web.get("/audit")).text
    async with web_of(scene.app, ann(Role.ADMIN, MINE)) as web:
        assert (await web.post("/audit/verification")).status_code == 404


@pytest.mark.parametrize("path", ["/audit", "/events", "/audit?tenant=globex", "/events?tenant=globex"])
async def test_a_caller_of_one_tenant_sees_its_own_entries(scene: Scene, path: str) -> None:
    """And none of another, whatever the filter says."""
    async with web_of(scene.app, ann(Role.ADMIN, MINE)) as web:
        answer = await web.get(path)
    assert FOREIGN_WORD not in answer.text
    assert "globex" not in answer.text.replace('value="globex"', "").replace("tenant=globex", "")
    if "?" not in path:
        own = await text_of(scene, path, tenant=MINE)
        assert "entries" in own if path == "/audit" else "dead_letter" in own


async def test_a_filter_that_is_none_is_said(scene: Scene) -> None:
    """Nothing is listed, and the page says what is wrong."""
    async with web_of(scene.app, ann()) as web:
        for path in ("/audit?since=yesterday", "/events?kind=dead_leter", "/events?cursor=x"):
            answer = await web.get(path)
            assert answer.status_code == 422
            assert 'role="alert"' in answer.text


async def test_events_are_paged_and_their_filter_stays(scene: Scene) -> None:
    """Newest first; each exactly once."""
    many = tuple(NewEntry(kind="worker_lost", subject=f"worker-{one}") for one in range(120))
    await scene.store.journal.append(AppendRequest(scope=Scope.all(), journal="events", entries=many))
    await scene.tell()
    seen: list[str] = []
    path = "/events?kind=worker_lost"
    async with web_of(scene.app, ann()) as web:
        for _ in range(3):
            answer = await web.get(path)
            seen += re.findall(r'href="/workers/(worker-\d+)"', answer.text)
            older = re.findall(r'rel="next" href="([^"]+)"', answer.text)
            path = older[0].replace("&amp;", "&") if older else ""
            assert not path or "kind=worker_lost" in path
    assert seen == [f"worker-{one}" for one in range(119, -1, -1)]
    assert path == ""
