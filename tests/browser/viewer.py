"""One person in front of a browser: opens pages, and notes what the browser complains of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from playwright.async_api import Browser, BrowserContext, Dialog, Page, Response, ViewportSize

from tests.web import shop

PATIENCE: Final = 60_000
"""Milliseconds that a test waits for a fact in the browser before it fails."""

PHONE: Final = ViewportSize(width=390, height=844)

_COUNTING: Final = """
addEventListener("fairlane:morphed", () => { document.documentElement.dataset.morphed = ""; });
addEventListener("securitypolicyviolation", (event) => {
  console.error(`refused: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""
"""Runs before every page: marks it when its stream has brought a part, and says what the policy refused."""


class Viewer:
    """A profile of the browser with one page.

    `complaints` are the errors on the console, what the content security policy has refused, what scripts of
    the pages have raised, and dialogs, which no page of ours opens: a test ends with none.
    """

    def __init__(self, url: str, context: BrowserContext, page: Page) -> None:
        """Listen to what the browser complains of."""
        self.url = url
        self.context = context
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda said: self._note(said.type, said.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("dialog", self._refuse)

    async def open(self, path: str) -> Response:
        """Go to a page, which must be there."""
        answer = await self.page.goto(self.url + path)
        assert answer is not None
        assert answer.status == 200, (path, answer.status)
        return answer

    async def is_live(self) -> None:
        """Wait until the stream of the page has brought its first parts."""
        await self.page.locator("html[data-morphed]").wait_for(state="attached")

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            await self.page.keyboard.press(key)

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(f"{self.page.url.removeprefix(self.url)}: {text}")

    async def _refuse(self, dialog: Dialog) -> None:
        self._note("error", f"a dialog: {dialog.message}")
        await dialog.dismiss()


@asynccontextmanager
async def viewer(browser: Browser, url: str, *, caller: str = "admin", **view: Any) -> AsyncIterator[Viewer]:
    """Sit down in front of a new profile. `caller` is who looks (`role` or `role:tenant`), "" for nobody."""
    context = await browser.new_context(**view)
    context.set_default_timeout(PATIENCE)
    await context.add_init_script(_COUNTING)
    if caller:
        await context.add_cookies([{"name": shop.CALLER, "value": caller, "url": url}])
    try:
        yield Viewer(url, context, await context.new_page())
    finally:
        await context.close()
