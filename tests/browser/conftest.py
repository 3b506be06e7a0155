"""A browser for all tests of this folder, and applications whose pages are looked at with it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.chromium import opened_browser
from tests.browser.dashboard import Dashboard, served_dashboard


@pytest.fixture(autouse=True)
def _as_often_as_they_like(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test open more pages in a minute than a person does."""
    monkeypatch.setenv("FAIRLANE_WEB__RATE", "none")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser; every test has a profile of its own in it."""
    async with opened_browser() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def dashboard(browser: Browser) -> AsyncIterator[Dashboard]:
    """The dashboard of a shop with jobs of three tenants, looked at by an administrator."""
    async with served_dashboard(browser) as served:
        yield served
        assert served.viewer.complaints == []
