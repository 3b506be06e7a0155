"""The web application under a prefix of another one, and what it opens and closes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from fairlane import Fairlane
from fairlane.web.application import asgi
from tests.web.boxes import boxes, pages
from tests.web.callers import ORIGIN, SAME_ORIGIN, always, ann

BOXES: Any = {"groups": [boxes], "pages": [pages]}


@asynccontextmanager
async def client(outer: Any, app: Fairlane) -> AsyncIterator[AsyncClient]:
    """Open a client of an application that this one is mounted in."""
    async with AsyncClient(
        transport=ASGITransport(app=outer), base_url=ORIGIN, headers=SAME_ORIGIN
    ) as opened:
        yield opened
    await app.aclose()


async def test_it_is_mounted_under_any_prefix(app: Fairlane) -> None:
    """Endpoints, pages, links and forms are all below it; Starlette in Starlette in FastAPI."""
    web = asgi(app, authenticate=always(ann()), **BOXES)
    api = FastAPI()
    api.mount("/ops", Starlette(routes=[Mount("/jobs", app=web)]))
    async with client(api, app) as opened:
        assert (await opened.get("/ops/jobs/api/v1/boxes?limit=1")).json()[0]["actor"] == "ann"
        page = await opened.get("/ops/jobs/nowhere")
        assert 'href="/ops/jobs/"' in page.text
        missing = await opened.get("/ops/jobs/api/v1/nowhere")
        assert missing.json()["code"] == "not_found"
        form = {"name": "a", "count": "1", "next": "/ops/jobs/boxes"}
        answer = await opened.post("/ops/jobs/do/boxes.fill", data=form)
        assert answer.headers["location"] == "/ops/jobs/boxes"
        assert "path=/ops/jobs;" in answer.headers["set-cookie"].lower()
        outside = await opened.post("/ops/jobs/do/boxes.fill", data={**form, "next": "/ops/other"})
        assert outside.headers["location"] == "/ops/jobs/"


async def test_signing_in_is_below_the_prefix_too(app: Fairlane) -> None:
    """And leads back to where the caller came from."""
    web = asgi(app, **BOXES)
    async with client(Starlette(routes=[Mount("/ops", app=web)]), app) as opened:
        answer = await opened.get("/ops/boxes")
        assert answer.headers["location"] == "/ops/sign-in?next=/ops/boxes"


def test_it_closes_what_it_has_opened(tmp_path: Any) -> None:
    """Served by itself, the store is closed with it; nothing is opened before the first request."""
    app = Fairlane(f"sqlite:///{tmp_path}/fairlane.db")
    opened: list[bool] = []

    async def authenticate(_: Any) -> Any:
        opened.append(app.client.is_open_here)
        await app.client.store.upkeep.migrate()
        opened.append(app.client.is_open_here)

    with TestClient(asgi(app, authenticate=authenticate, **BOXES), base_url=ORIGIN) as served:
        served.get("/api/v1/boxes")

        async def is_open() -> bool:
            return app.client.is_open_here

        assert served.portal is not None
        assert served.portal.call(is_open)
    assert opened == [False, True]


async def test_what_was_open_before_stays_open(app: Fairlane) -> None:
    """It belongs to whoever serves this application."""
    web = asgi(app, authenticate=always(ann()), **BOXES)
    await app.jobs.acount()
    async with web.router.lifespan_context(web):
        pass
    assert app.client.is_open_here
    await app.aclose()


async def test_what_it_has_opened_is_closed_at_the_end(app: Fairlane) -> None:
    """The counterpart of the test above."""
    web = asgi(app, authenticate=always(ann()), **BOXES)
    async with web.router.lifespan_context(web):
        await app.jobs.acount()
        assert app.client.is_open_here
    assert not app.client.is_open_here
