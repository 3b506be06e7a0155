"""Signing in with a real browser: the cookie, the way back, and links on other sites' pages (S91)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from fairlane import Fairlane
from fairlane.web.access.first_sign_in import first_sign_in
from fairlane.web.application import asgi
from tests.browser.dashboard import served
from tests.browser.test_pages import AXE, SERIOUS
from tests.browser.viewer import PATIENCE

PASSWORD = "correct horse battery"
ELSEWHERE = "http://chat.example/"


class Door:
    """An application on an address of its own, and somebody in front of it who is not known yet."""

    def __init__(self, app: Fairlane, url: str, page: Page) -> None:
        """Stand before it."""
        self.app = app
        self.url = url
        self.page = page

    async def enter(self, path: str = "/") -> None:
        """Open a page, and sign in where it leads to."""
        await self.page.goto(self.url + path)
        await expect(self.page).to_have_title(re.compile("Sign in"))
        await self.page.get_by_label("Name").fill("ann")
        await self.page.get_by_label("Password").fill(PASSWORD)
        await self.page.get_by_role("button", name="Sign in").click()


@pytest_asyncio.fixture(loop_scope="session")
async def door(browser: Browser, tmp_path: Path) -> AsyncIterator[Door]:
    """An empty application in a file, with one user."""
    app = Fairlane(f"sqlite:///{tmp_path}/fairlane.db", name="shop")
    await app.client.store.upkeep.migrate()
    await app.users.aadd("ann", password=PASSWORD, role="admin")
    async with served(asgi(app)) as url:
        context = await browser.new_context()
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield Door(app, url, await context.new_page())
        await context.close()
    await app.aclose()


async def test_a_user_signs_in_and_out(door: Door) -> None:
    """It leads back to the page that was asked for; afterwards nothing of it is shown again."""
    await door.enter("/jobs?q=state:dead")
    await expect(door.page).to_have_url(f"{door.url}/jobs?q=state:dead")
    (cookie,) = [one for one in await door.page.context.cookies() if "session" in one["name"]]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    await door.page.get_by_role("button", name="Sign out").click()
    await expect(door.page.get_by_text("You are signed out.")).to_be_visible()
    await door.page.goto(door.url + "/help")
    await expect(door.page).to_have_title(re.compile("Sign in"))


async def test_who_is_signed_in_may_follow_a_link_in_a_chat(door: Door) -> None:
    """The browser leaves a strict cookie out there; nobody has to sign in again, nor to click twice."""
    await door.enter()

    async def chat(route: Route) -> None:
        link = f'<a href="{door.url}/jobs?q=state:dead">look</a>'
        await route.fulfill(body=f"<!doctype html><title>Chat</title>{link}", content_type="text/html")

    await door.page.route(ELSEWHERE, chat)
    await door.page.goto(ELSEWHERE)
    await door.page.get_by_text("look").click()
    await expect(door.page).to_have_url(f"{door.url}/jobs?q=state:dead")
    await expect(door.page).to_have_title(re.compile("Jobs"))


async def test_the_link_of_the_first_minute_signs_in_with_one_click(door: Door) -> None:
    """As it is printed."""
    await door.app.users.aremove("ann")
    told = await first_sign_in(door.app, door.url, "127.0.0.1")
    (link,) = re.findall(r"http://\S+", told or "")
    await door.page.goto(link)
    await door.page.get_by_role("button", name="Sign in").click()
    await expect(door.page).to_have_title(re.compile("Overview"))
    await door.page.goto(link)
    await door.page.get_by_role("button", name="Sign in").click()
    await expect(door.page.get_by_role("alert")).to_contain_text("was used before")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_sign_in_page_keeps_nobody_out(door: Door, scheme: Any) -> None:
    """Axe has nothing serious to say of it, also with an error on it."""
    await door.page.emulate_media(color_scheme=scheme)
    await door.page.goto(door.url)
    await door.page.get_by_label("Name").fill("ann")
    await door.page.get_by_label("Password").fill("wrong")
    await door.page.get_by_role("button", name="Sign in").click()
    await expect(door.page.get_by_role("alert")).to_be_visible()
    await door.page.evaluate(AXE)
    found = await door.page.evaluate("axe.run()")
    assert [one["id"] for one in found["violations"] if one["impact"] in SERIOUS] == []
