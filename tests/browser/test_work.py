"""What people come for: find a job, run a dead one again, cancel many; by hand, by keys, on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from playwright.async_api import Locator, Page, expect

from fairlane import State
from tests.browser.dashboard import SOON, Dashboard
from tests.browser.viewer import PHONE
from tests.web import shop

NOTE: Final = "the gateway answers again"
TOO_SMALL: Final = Path(__file__).with_name("too_small.js").read_text("utf-8")
QUERY: Final = 'tenant:acme arg.to:"later@example.org"'


async def dead_fax(dashboard: Dashboard) -> str:
    """Let the faxes die; the id of one."""
    for _ in range(3):
        dashboard.trial.advance(120)
        await dashboard.trial.arun()
    return str((await dashboard.app.dead.afind(task="fax.send")).items[0].id)


def form(page: Page, name: str) -> Locator:
    """Return the form that a button with this name opens."""
    return page.locator("details.do", has=page.locator("summary", has_text=f"{name}…"))


async def test_a_job_is_found_by_what_is_known_of_it(dashboard: Dashboard) -> None:
    """From the field on every page, by a query, to the job and back."""
    sight, page = dashboard.viewer, dashboard.page
    await sight.open("/")
    await page.get_by_label("Find jobs").fill(QUERY)
    await sight.press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(1, timeout=SOON)
    await page.locator("[data-row] a.clip").click()
    await expect(page.locator("h1")).to_contain_text("mail.send", timeout=SOON)
    await expect(page.locator("#answer")).to_contain_text("Waiting because it was enqueued for later")
    await page.go_back()
    await expect(page.get_by_label("Query", exact=True)).to_have_value(QUERY)


async def test_a_job_is_seen_to_end(dashboard: Dashboard) -> None:
    """Its page is open while a worker runs it: state, attempts and buttons change without a reload."""
    sight, page = dashboard.viewer, dashboard.page
    job = await shop.send_mail.using(tenant="acme").aenqueue("live@example.org")
    await sight.open(f"/jobs/{job.id}")
    await sight.is_live()
    await expect(page.locator("#title")).to_contain_text("ready")
    await dashboard.trial.arun()
    await expect(page.locator("#title")).to_contain_text("succeeded", timeout=SOON)
    await expect(page.locator("#attempts")).to_contain_text("Attempt 1")
    await expect(page.locator("#acts")).to_contain_text("Run again")


async def test_a_dead_letter_is_reprocessed_with_a_note(dashboard: Dashboard) -> None:
    """The note is demanded, kept with the letter and in the audit; the page leads to the new job."""
    sight, page = dashboard.viewer, dashboard.page
    await sight.open(f"/dead/{await dead_fax(dashboard)}")
    asked = form(page, "Reprocess")
    await asked.locator("summary").click()
    await asked.get_by_role("button", name="Reprocess").click()
    await expect(asked.locator("textarea[name=note]:invalid")).to_be_visible()  # not without a note
    await asked.locator("textarea[name=note]").fill(NOTE)
    await asked.get_by_role("button", name="Reprocess").click()
    await expect(page.locator("#answer")).to_contain_text("Runs again", timeout=SOON)
    await expect(page.locator("#notes")).to_contain_text(NOTE)
    (entry,) = (await dashboard.app.audit.afind(kind="dead.reprocess")).items
    assert (entry.actor, entry.note) == ("admin@example.org", NOTE)


async def test_all_that_match_are_cancelled_with_a_count(dashboard: Dashboard) -> None:
    """How many match is said before; more than 100 must be typed; what was done is said afterwards."""
    sight, page = dashboard.viewer, dashboard.page
    calls = [shop.import_row.using(tenant="globex", tags=["dec"]).bind(row) for row in range(1, 121)]
    await dashboard.app.aenqueue_many(calls)
    await sight.open("/jobs?q=tag:dec")
    asked = form(page, "Cancel all that match")
    await asked.locator("summary").click()
    await expect(asked).to_contain_text("120 jobs match tag:dec.")
    await asked.locator("textarea[name=note]").fill("imported by hand")
    send = asked.get_by_role("button", name="Cancel 120 jobs")
    await send.click()
    await expect(asked.locator("input:invalid")).to_be_visible()  # not without the number
    await asked.get_by_label("Type 120 to confirm").fill("120")
    await send.click()
    await expect(page.locator(".flash")).to_contain_text("120", timeout=SOON)
    await expect(page.locator("#tabs a", has_text="Cancelled")).to_contain_text("120")
    assert (await dashboard.app.jobs.acount(tag="dec")).states[State.CANCELLED] == 120


async def test_a_tenant_is_paused_and_its_jobs_say_why_they_wait(dashboard: Dashboard) -> None:
    """The reason is on the tenant's page, and what is paused on the job's, until it is resumed."""
    sight, page = dashboard.viewer, dashboard.page
    job = await shop.send_mail.using(tenant="acme").aenqueue("ann@example.org")
    await sight.open("/tenants/acme")
    asked = form(page, "Pause")
    await asked.locator("summary").click()
    await asked.locator("textarea[name=note]").fill("their mail server is being moved")
    await asked.locator("form button:not([type])").click()
    await expect(page.locator("#answer")).to_contain_text("Paused.", timeout=SOON)
    await expect(page.locator("main")).to_contain_text("their mail server is being moved")
    await sight.open(f"/jobs/{job.id}")
    await expect(page.locator("#answer")).to_contain_text("Waiting because something is paused: tenant acme")
    await sight.open("/tenants/acme")
    asked = form(page, "Resume")
    await asked.locator("summary").click()
    await asked.locator("textarea[name=note]").fill("it has moved")
    await asked.locator("form button:not([type])").click()
    await expect(page.locator("#answer")).not_to_contain_text("Paused.", timeout=SOON)
    await sight.open(f"/jobs/{job.id}")
    await expect(page.locator("#answer")).not_to_contain_text("paused")


async def test_everything_is_done_with_keys(dashboard: Dashboard) -> None:
    """From the first page to a cancelled job, without a pointer."""
    sight, page = dashboard.viewer, dashboard.page
    await sight.open("/")
    await page.keyboard.press("Tab")
    await expect(page.locator("a.skip")).to_be_focused()
    await sight.press("g", "j")
    await expect(page.locator("h1")).to_have_text("Jobs", timeout=SOON)
    await sight.press("/")
    await page.keyboard.type("tenant:acme state:delayed task:mail.send")
    await sight.press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(1, timeout=SOON)
    await sight.press("j", "Enter")
    await expect(page.locator("#answer")).to_contain_text("Waiting because", timeout=SOON)
    await reach(page, page.locator("details.do summary", has_text="Cancel…"))
    await sight.press("Enter")
    await expect(page.locator("details.do[open]")).to_contain_text("Cancel?")
    await reach(page, page.locator("details.do[open] textarea[name=note]"))
    await page.keyboard.type("not needed any more")
    await reach(page, page.locator("details.do[open] button.danger"))
    await sight.press("Enter")
    await expect(page.locator("#title")).to_contain_text("cancelled", timeout=SOON)
    await sight.press("?")
    await expect(page.locator("h1")).to_contain_text("Help", timeout=SOON)


async def reach(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus, which must be visible then."""
    handle = await wanted.element_handle()
    for _ in range(80):
        if await page.evaluate("(one) => document.activeElement === one", handle):
            outline = await page.evaluate("(one) => getComputedStyle(one).outlineStyle", handle)
            assert outline != "none", "the focus cannot be seen"
            return
        await page.keyboard.press("Tab")
    raise AssertionError("the keyboard does not get there")


async def test_a_letter_is_resolved_on_a_phone(dashboard: Dashboard) -> None:
    """Nothing is out of reach, and everything is large enough for a finger."""
    sight, page = dashboard.viewer, dashboard.page
    await page.set_viewport_size(PHONE)
    await dead_fax(dashboard)
    await sight.open("/")
    await page.locator("nav.tabbar a", has_text="Dead").click()
    await page.locator("ol.groups a", has_text="fax.send").first.click()
    await page.locator("#latest [data-row] a").first.click()
    await expect(page.locator("h1")).to_contain_text("fax.send", timeout=SOON)
    asked = form(page, "Resolve")
    await asked.locator("summary").click()
    box = await asked.locator("form").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    await asked.locator("textarea[name=note]").fill("sent as a letter")
    await asked.get_by_role("button", name="Resolve").click()
    await expect(page.locator("#answer")).to_contain_text("Resolved by admin@example.org", timeout=SOON)
    small: list[str] = await page.evaluate(TOO_SMALL)
    assert small == []
