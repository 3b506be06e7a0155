"""Every declared page in a browser: nothing complains, no text runs as a script, and everybody can use it."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page

from fairlane import State
from fairlane.web.application import asgi
from tests.browser.dashboard import Dashboard, served
from tests.browser.hostile import HostileStore, hostile_store
from tests.browser.payloads import LABELS, PAYLOADS
from tests.browser.viewer import PHONE, Viewer, viewer
from tests.web import shop
from tests.web.addresses import addresses

AXE: Final = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
SERIOUS: Final = {"serious", "critical"}
SOME: Final = 22
"""How many things of a kind are opened: every job that is not merely ready is among them."""
FEW: Final = 3

TOO_WIDE: Final = Path(__file__).with_name("too_wide.js").read_text("utf-8")
FOREIGN: Final = Path(__file__).with_name("foreign.js").read_text("utf-8")


@pytest.mark.timeout(900)  # two looks at every page, a minute and a half on a machine with nothing else to do
async def test_no_page_keeps_anybody_out(browser: Browser) -> None:
    """Axe finds nothing serious, with light and dark colours; nothing is wider than a phone."""
    wrong: dict[str, Any] = {}
    async with (
        hostile_store() as store,
        served(asgi(store.app, authenticate=shop.who_asks)) as url,
        viewer(browser, url) as sight,
        viewer(browser, url, viewport=PHONE) as phone,
    ):
        for path in await addresses(store.app, 2):
            await sight.page.emulate_media(color_scheme="light")
            await sight.open(path)
            found = await findings(sight.page)
            await sight.page.emulate_media(color_scheme="dark")
            found += await findings(sight.page, "color-contrast")
            await phone.open(path)
            wide: list[str] = await phone.page.evaluate(TOO_WIDE)
            found += [("too wide", html) for html in wide]
            if found:
                wrong[path] = found
        assert wrong == {}
        assert sight.complaints + phone.complaints == []


async def test_no_text_of_a_user_is_a_script(browser: Browser) -> None:
    """Sixty payloads in every text that pages show: none runs, none is refused, none becomes an element."""
    wrong: dict[str, list[str]] = {}
    async with hostile_store() as store, served(asgi(store.app, authenticate=shop.who_asks)) as url:
        async with viewer(browser, url) as sight:
            opened: Counter[str] = Counter()
            for path in [*await addresses(store.app, SOME), *await searches(store)]:
                await sight.page.goto(url + path)
                opened[path.split("/")[1]] += 1
                if opened[path.split("/")[1]] <= FEW and await sight.page.locator("#live").count():
                    await sight.is_live()  # the stream brings the same parts, and a script shows them
                if found := await sight.page.evaluate(FOREIGN):
                    wrong[path] = found
            shown = await shown_payloads(sight, store)
        assert wrong == {}
        assert [one for one in sight.complaints if "422" not in one] == []  # a query that cannot be read
        assert shown == set(PAYLOADS)


async def test_a_script_that_got_into_a_page_would_not_run(dashboard: Dashboard) -> None:
    """The policy of every answer refuses it: one more wall, should a text ever not be escaped."""
    sight = dashboard.viewer
    await sight.open("/")
    ran = await sight.page.evaluate("""() => {
      window.ran = [];
      const script = document.createElement("script");
      script.textContent = "ran.push(0)";
      document.body.append(script);
      const button = '<button id=x onclick="ran.push(1)">x</button>';
      document.body.insertAdjacentHTML("beforeend", button);
      document.querySelector("#x").click();
      return window.ran;
    }""")
    assert ran == []
    assert len([one for one in sight.complaints if "Content Security Policy" in one]) == 2
    sight.complaints.clear()


async def searches(store: HostileStore) -> list[str]:
    """Return addresses whose query is a payload, or finds nothing but one."""
    group = next(one for one in await store.app.dead.agroups() if one.fingerprint)
    texts = [quote(text, safe="") for text in LABELS]
    terms = ['tag:"' + text.replace('"', "") + '"' for text in LABELS]
    return [
        *(f"/jobs?q={text}" for text in texts),
        *(f"/jobs?q={quote(term, safe='')}" for term in terms[:3]),
        *(f"/dead?task={text}" for text in texts[:3]),
        f"/dead?fingerprint={quote(group.fingerprint, safe='')}",
        "/dead?by=list",
        "/dead?review=resolved&by=list",
    ]


async def shown_payloads(sight: Viewer, store: HostileStore) -> set[str]:
    """Return the payloads that the page of a job shows as they were written."""
    job = (await store.app.jobs.afind(state=State.SUCCEEDED)).items[0]
    await sight.open(f"/jobs/{job.id}")
    text = await sight.page.locator("#metadata").inner_text()
    return {one for one in PAYLOADS if one.replace("\\", "\\\\").replace('"', '\\"') in text}


async def findings(page: Page, *rules: str) -> list[tuple[str, str]]:
    """Return what axe finds on the open page that keeps people from using it; of some rules, or of all."""
    await page.evaluate(AXE)
    options = {"runOnly": list(rules)} if rules else {}
    found: dict[str, Any] = await page.evaluate("(options) => axe.run(document, options)", options)
    return [
        (one["id"], node["html"][:200])
        for one in found["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]
