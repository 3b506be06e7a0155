"""Serve the sample application over a real socket, and look at it with a page of the browser."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import uvicorn
from playwright.async_api import Browser, expect
from starlette.types import ASGIApp

from fairlane import Fairlane
from fairlane.testing import Trial
from fairlane.web.application import asgi
from tests.browser.viewer import Viewer, viewer
from tests.web import shop

SOON: Final = 30_000
"""Milliseconds: longer than a change takes to be shown on a busy machine."""

_WAITING: Final = '#tiles a[href$="tab=waiting"] b'


class Dashboard:
    """A served shop, and somebody who looks at it."""

    def __init__(self, trial: Trial, sight: Viewer) -> None:
        """Put both together."""
        self.trial = trial
        self.viewer = sight
        self.page = sight.page

    @property
    def app(self) -> Fairlane:
        """The application whose jobs are shown."""
        return self.trial.app

    async def waiting(self) -> int:
        """Return how many waiting jobs the open overview shows."""
        return int((await self.page.locator(_WAITING).inner_text()).replace(",", ""))

    async def has_waiting(self, number: int) -> None:
        """Wait until it shows so many."""
        await expect(self.page.locator(_WAITING)).to_have_text(f"{number:,}", timeout=SOON)


@asynccontextmanager
async def served_dashboard(
    browser: Browser, *, caller: str = "admin", **view: Any
) -> AsyncIterator[Dashboard]:
    """Serve a filled shop to a `caller`; `view` sets up the browser."""
    async with (
        filled_shop() as trial,
        served(asgi(trial.app, authenticate=shop.who_asks)) as url,
        viewer(browser, url, caller=caller, **view) as sight,
    ):
        yield Dashboard(trial, sight)


@asynccontextmanager
async def filled_shop() -> AsyncIterator[Trial]:
    """Fill the shop and run what is due: some jobs succeed, some wait for a retry, some die."""
    async with Trial(shop.app) as trial:
        await asyncio.to_thread(shop.fill)
        await trial.arun()
        yield trial


@asynccontextmanager
async def served(web: ASGIApp) -> AsyncIterator[str]:
    """Serve a web application on a free port of this machine; its URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        settings = uvicorn.Config(web, log_level="critical", timeout_graceful_shutdown=1, lifespan="off")
        server = uvicorn.Server(settings)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving
