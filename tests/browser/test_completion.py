"""A query is completed while it is typed: fields, states and names."""

from __future__ import annotations

from playwright.async_api import Locator, expect

from tests.browser.dashboard import SOON, Dashboard


def offered(dashboard: Dashboard) -> Locator:
    """Return what is offered now."""
    return dashboard.page.get_by_role("option")


async def test_a_query_is_completed_by_keys(dashboard: Dashboard) -> None:
    """Tab takes the first, arrows choose another, Enter takes it, and then finds."""
    sight, page = dashboard.viewer, dashboard.page
    await sight.open("/jobs")
    field = page.get_by_label("Query", exact=True)
    await expect(field).to_have_attribute("aria-expanded", "false")
    await field.press_sequentially("ten")
    await expect(offered(dashboard)).to_have_count(4, timeout=SOON)  # the field, and three tenants
    await expect(field).to_have_attribute("aria-expanded", "true")
    await field.press("Tab")
    await expect(field).to_have_value("tenant:")
    await field.press("ArrowDown")
    await field.press("ArrowDown")
    await field.press("Enter")
    await expect(field).to_have_value("tenant:globex ")
    await expect(offered(dashboard)).to_have_count(0)
    await field.press_sequentially("-state:compl")
    await field.press("Tab")
    await expect(field).to_have_value("tenant:globex -state:completed ")
    await field.press("Enter")
    await expect(page.locator("[data-row]").first).to_contain_text("globex", timeout=SOON)


async def test_a_query_is_completed_by_hand_and_escape_leaves_it(dashboard: Dashboard) -> None:
    """A name of a queue by a click; what is not taken is as it was typed."""
    sight, page = dashboard.viewer, dashboard.page
    await sight.open("/jobs")
    field = page.get_by_label("Query", exact=True)
    await field.press_sequentially("queue:re")
    await offered(dashboard).filter(has_text="queue:reports").click()
    await expect(field).to_have_value("queue:reports ")
    await field.press_sequentially("tas")
    await expect(offered(dashboard).first).to_be_visible(timeout=SOON)
    await field.press("Escape")
    await expect(offered(dashboard)).to_have_count(0)
    await expect(field).to_have_value("queue:reports tas")
