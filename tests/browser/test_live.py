"""Open pages change by themselves, and say when they do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from playwright.async_api import Browser, expect

from fairlane.web.application import asgi
from tests.browser.dashboard import SOON, Dashboard, filled_shop, served
from tests.browser.viewer import viewer
from tests.servers.proxy import Proxy, proxied
from tests.web import shop


class CutDashboard(Dashboard):
    """A dashboard behind a network that can be cut."""

    network: Proxy


@asynccontextmanager
async def behind_a_network(browser: Browser) -> AsyncIterator[CutDashboard]:
    """Look at the shop through a network that the test can cut."""
    async with (
        filled_shop() as trial,
        served(asgi(trial.app, authenticate=shop.who_asks)) as url,
        proxied(urlsplit(url).port or 0) as network,
        viewer(browser, f"http://127.0.0.1:{network.port}") as sight,
    ):
        made = CutDashboard(trial, sight)
        made.network = network
        await sight.open("/")
        await sight.is_live()
        yield made


async def enqueue(dashboard: Dashboard) -> None:
    """Enqueue one more job."""
    await shop.send_mail.using(tenant="acme").aenqueue("live@example.org")


async def test_a_page_says_that_it_is_stale_and_comes_back(browser: Browser) -> None:
    """Without the server the last values stay, with their age; with it come the changes that were missed."""
    async with behind_a_network(browser) as dashboard:
        before = await dashboard.waiting()
        live, note = dashboard.page.locator("#live"), dashboard.page.locator("#stale")
        dashboard.network.is_refusing = True
        dashboard.network.cut()
        await expect(live).to_contain_text("Stale", timeout=SOON)
        await expect(note).to_contain_text("No connection to the server. What you see is")
        assert await dashboard.waiting() == before
        await enqueue(dashboard)
        dashboard.network.is_refusing = False
        await dashboard.has_waiting(before + 1)
        await expect(live).to_have_text("Live", timeout=SOON)
        await expect(note).to_be_hidden()


async def test_a_stream_that_was_cut_resumes(browser: Browser) -> None:
    """What changed meanwhile comes without a reload."""
    async with behind_a_network(browser) as dashboard:
        before = await dashboard.waiting()
        await dashboard.page.evaluate("() => { window.isSame = true; }")
        dashboard.network.cut()
        await enqueue(dashboard)
        await dashboard.has_waiting(before + 1)
        await expect(dashboard.page.locator("#live")).to_have_text("Live", timeout=SOON)
        await enqueue(dashboard)
        await dashboard.has_waiting(before + 2)
        assert await dashboard.page.evaluate("() => window.isSame")


async def test_a_page_that_is_paused_stands_still(dashboard: Dashboard) -> None:
    """It says since when and how much changed; afterwards it shows it."""
    sight = dashboard.viewer
    await sight.open("/")
    await sight.is_live()
    before = await dashboard.waiting()
    await sight.press("p")
    await enqueue(dashboard)
    await expect(dashboard.page.locator("#live")).to_contain_text("Paused, ", timeout=SOON)
    await expect(dashboard.page.locator("#live")).not_to_contain_text("0 changes", timeout=SOON)
    assert await dashboard.waiting() == before
    await sight.press("p")
    await dashboard.has_waiting(before + 1)
    await expect(dashboard.page.locator("#live")).to_have_text("Live")


async def test_a_list_does_not_move_under_the_cursor(dashboard: Dashboard) -> None:
    """It says how many newer jobs there are, and shows them when it is told to."""
    sight = dashboard.viewer
    await sight.open("/jobs")
    await sight.is_live()
    rows = dashboard.page.locator("[data-row]")
    first = await rows.first.get_attribute("id")
    await enqueue(dashboard)
    newer = dashboard.page.locator("[data-newer]")
    await expect(newer).to_have_text("1 newer: show", timeout=SOON)
    assert await rows.first.get_attribute("id") == first
    await newer.click()
    await expect(dashboard.page.locator(f"[data-row] + #{first}")).to_be_visible(timeout=SOON)
