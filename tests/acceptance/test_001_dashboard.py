"""Description B, the dashboard: what an open page shows, finds and lets people do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from playwright.async_api import expect

from fairlane import Fail, Fairlane, State, Task
from tests.acceptance.world import World
from tests.browser.chromium import opened_browser
from tests.browser.dashboard import SOON, Dashboard, served_dashboard
from tests.seconds import counted
from tests.web import shop
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup

CANARY: Final = "canary-7d1f"
TRIES: Final = 3


def task_of(app: Fairlane) -> Task[..., Any]:
    """Declare a task that takes anything."""

    def work(fields: dict[str, str] | None = None) -> None:
        """Stand for a handler: attempts are ended by hand."""

    return app.task(name="work")(work)


@pytest.fixture
async def dashboard() -> AsyncIterator[Dashboard]:
    """Somebody in front of the open dashboard of a shop."""
    async with opened_browser() as browser, served_dashboard(browser) as served:
        yield served


async def test_001_cp5_1_a_change_is_on_the_screen_within_a_second(dashboard: Dashboard) -> None:
    """The job's page says that it was cancelled; on a machine that is busy, at one of three times."""
    took: list[float] = []
    for _ in range(TRIES):
        job = await shop.send_mail.using(tenant="acme").aenqueue("live@example.org")
        await dashboard.viewer.open(f"/jobs/{job.id}")
        await dashboard.viewer.is_live()
        await dashboard.page.wait_for_timeout(1_000)  # a page that has just been opened is rendered at once
        async with counted() as seconds:
            await job.acancel("not needed")
            await expect(dashboard.page.locator("#title")).to_contain_text("cancelled", timeout=SOON)
            took.append(seconds())
        if took[-1] <= 1:
            break
    assert min(took) <= 1


async def test_001_mg_7_an_enqueue_shows_on_the_open_dashboard(dashboard: Dashboard) -> None:
    """Its number changes, and the page is still the one that was opened."""
    await dashboard.viewer.open("/")
    await dashboard.viewer.is_live()
    await dashboard.page.evaluate("() => { window.isSame = true; }")
    before = await dashboard.waiting()
    await shop.send_mail.using(tenant="acme").aenqueue("live@example.org")
    await dashboard.has_waiting(before + 1)
    assert await dashboard.page.evaluate("() => window.isSame")


async def test_001_dv_8_a_page_whose_stream_is_lost_says_so_polls_and_reconnects(
    dashboard: Dashboard,
) -> None:
    """Streams are refused: the page asks every five seconds instead. When they are not, it is live again."""
    page, live = dashboard.page, dashboard.page.locator("#live")
    await page.route("**/live?*", lambda route: route.abort())
    await dashboard.viewer.open("/")
    await expect(live).to_have_text("Every 5 s", timeout=SOON)
    before = await dashboard.waiting()
    await shop.send_mail.using(tenant="acme").aenqueue("live@example.org")
    await dashboard.has_waiting(before + 1)
    await expect(live).to_have_text("Every 5 s")
    await page.unroute("**/live?*")
    await expect(live).to_have_text("Live", timeout=SOON)


async def test_001_dv_9_everybody_has_settings_of_their_own(world: World) -> None:
    """How often pages change, how far back they look, the zone of times; filters stand in the URL."""
    app = world.app()
    await world.declare()
    async with web_of(app, ann()) as web:
        for name, value, shown in (
            ("refresh", "15", 'data-refresh="15"'),
            ("range", "1h", 'href="/?range=1h" aria-current="true"'),
            ("range", "24h", 'href="/?range=24h" aria-current="true"'),
            ("range", "7d", 'href="/?range=7d" aria-current="true"'),
            ("zone", "Asia/Tokyo", 'data-time-zone="Asia/Tokyo"'),
            ("theme", "dark", 'data-theme="dark"'),
        ):
            answer = await web.post("/personal", data={name: value, "next": "/"})
            assert answer.status_code == 303
            assert shown in (await web.get("/")).text
        assert 'value="tenant:acme"' in (await web.get("/jobs?q=tenant:acme&tab=waiting")).text
    async with web_of(app, ann()) as another:
        assert 'data-theme="dark"' not in (await another.get("/")).text


async def test_001_dv_10_arguments_with_these_names_are_redacted_everywhere(world: World) -> None:
    """On pages and in answers, for whoever may do most; in clear only with a reason, which is audited."""
    app = world.app()
    task = task_of(app)
    fields = dict.fromkeys(("password", "token", "secret", "key", "authorization"), CANARY)
    await world.declare()
    job = await task.using(tenant="acme").aenqueue(fields=fields)
    async with web_of(app, ann()) as web:
        for path in ("/jobs", f"/jobs/{job.id}", f"/api/v1/jobs/{job.id}", "/api/v1/jobs"):
            answer = await web.get(path)
            assert answer.status_code == 200
            assert CANARY not in answer.text, path
        assert "[redacted]" in (await web.get(f"/jobs/{job.id}")).text
        revealed = await web.post(f"/jobs/{job.id}/reveal", data={"note": "the customer asked"})
        assert CANARY in revealed.text
    (entry,) = (await app.audit.afind(kind="jobs.reveal")).items
    assert (entry.actor, entry.note) == ("ann", "the customer asked")


async def test_001_cp5_4_a_search_returns_only_matches_and_paging_is_complete(world: World) -> None:
    """Every match once over all pages, newest first, and nothing else; the same by pages and by the API."""
    app = world.app()
    task = task_of(app)
    await world.declare()
    await world.fill(task, 130)
    await world.fill(task, 7, "globex")
    wanted = [str(job.id) for job in (await app.jobs.afind(tenant="acme", limit=500)).items]
    async with web_of(app, ann()) as web:
        found: list[str] = []
        path = "/jobs?q=tenant:acme"
        while path:
            markup = Markup((await web.get(path)).text)
            found += [id.removeprefix("row-") for id in markup.ids if id.startswith("row-")]
            path = next((link for link in markup.links if "cursor=" in link), "")
        assert found == wanted
        listed: list[str] = []
        query: dict[str, Any] = {"query": "tenant:acme", "limit": 50}
        while True:
            page = (await web.get("/api/v1/jobs", params=query)).json()
            listed += [one["id"] for one in page["items"]]
            if not page.get("cursor"):
                break
            query["cursor"] = page["cursor"]
        assert listed == wanted


async def test_001_dv_5_dead_letters_show_errors_and_are_retried_and_deleted_in_bulk(world: World) -> None:
    """Alike failures are one pattern with a count; each is decided about as a whole."""
    app = world.app()
    task = task_of(app)
    await world.declare()
    for number in range(5):
        await world.fill(task, 1)
        error = f"price of row {number} is negative" if number < 3 else f"no room for {number}"
        await world.fail(Fail(error))
    async with web_of(app, ann()) as web:
        text = (await web.get("/dead")).text
        assert "2 distinct failures" in text
        assert "price of row" in text
        large, small = await app.dead.agroups()
        assert (large.letters, small.letters) == (3, 2)
        for group, action in ((large, "reprocess_all"), (small, "delete_all")):
            form = {"fingerprint": group.fingerprint, "review": "pending", "note": "decided"}
            assert (await web.post(f"/do/dead.{action}", data=form)).status_code == 303
        assert "Nothing awaits a review." in (await web.get("/dead")).text
    counts = await app.dead.acount()
    assert (counts["pending"], counts["reprocessed"]) == (0, 3)
    assert (await app.jobs.acount(state=State.READY)).total == 3
