"""The store's server is stopped while pages are open: they keep what they show, and say how old it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx2
import pytest
from playwright.async_api import Browser, expect

from fairlane import Fairlane
from fairlane.web.application import asgi
from tests.browser.dashboard import SOON, served
from tests.browser.viewer import viewer
from tests.servers.postgres import HASTY as HASTY_POSTGRES
from tests.servers.postgres import MEMORY, PostgresServer
from tests.servers.valkey import ValkeyServer
from tests.web import shop

AGE = "The store does not answer. What you see is"


class StoreServer(NamedTuple):
    """A server of one's own, and how to end it as a crash does."""

    url: str
    start: Callable[[], object]
    kill: Callable[[], object]
    remove: Callable[[], object]


def postgres() -> StoreServer:
    """Make a PostgreSQL server."""
    made = PostgresServer(*HASTY_POSTGRES, folder=MEMORY)
    return StoreServer(made.url, made.start, made.kill, made.close)


def redis() -> StoreServer:
    """Make a Valkey server that remembers what it was told."""
    made = ValkeyServer("--appendonly", "yes", folder=MEMORY)
    return StoreServer(made.url, made.start, made.kill, made.remove)


@asynccontextmanager
async def running(server: StoreServer) -> AsyncIterator[StoreServer]:
    """Start a server; remove it afterwards."""
    try:
        await asyncio.to_thread(server.start)
        yield server
    finally:
        await asyncio.to_thread(server.remove)


@pytest.mark.parametrize("make", [postgres, redis])
async def test_pages_keep_what_they_show_while_the_store_is_away(
    browser: Browser, make: Callable[[], StoreServer]
) -> None:
    """The API answers 503 and says when to try again; both go on when the store is back."""
    async with running(make()) as server:
        app = Fairlane(server.url, name="shop")
        await app.client.store.upkeep.migrate()
        task = app.task(name="mail.send")(_send).using(tenant="acme")
        for _ in range(3):
            await task.aenqueue()
        async with (
            served(asgi(app, authenticate=shop.who_asks)) as url,
            viewer(browser, url) as sight,
            httpx2.AsyncClient(base_url=url, headers={shop.CALLER: "admin"}, timeout=60) as program,
        ):
            waiting = sight.page.locator('#tiles a[href$="tab=waiting"] b')
            stale, live = sight.page.locator("#stale"), sight.page.locator("#live")
            await sight.open("/")
            await sight.is_live()
            await asyncio.to_thread(server.kill)
            await expect(stale).to_contain_text(AGE, timeout=SOON)
            await expect(live).to_contain_text("Stale, ")
            await expect(waiting).to_have_text("3")
            for path in ("/api/v1/jobs", "/api/v1/jobs/count", "/api/v1/queues"):
                answer = await program.get(path)
                assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), answer.text
                assert int(answer.headers["retry-after"]) >= 1
            page = await program.get("/jobs")
            assert page.status_code == 503
            assert int(page.headers["retry-after"]) >= 1
            assert "opens by itself" in page.text
            await asyncio.to_thread(server.start)
            await task.aenqueue()
            await expect(waiting).to_have_text("4", timeout=SOON)
            await expect(stale).to_be_hidden(timeout=SOON)
            await expect(live).to_have_text("Live")
        await app.aclose()


def _send() -> None:
    """Stand for a handler: nothing is run."""
