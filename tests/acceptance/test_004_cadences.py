"""Description E: the cadence of each of its fourteen types; description A: its clean-up at three."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import pytest

from fairlane import Fairlane, Task
from fairlane.duties.prune import Prune
from fairlane.model.instants import DAY, HOUR, to_datetime, to_instant
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Succeeded
from fairlane.model.schedule.slots import slots_between
from fairlane.model.scope import Scope
from fairlane.store.contract.schedules import SchedulesFindRequest
from fairlane.testing import Trial
from tests.acceptance.plan import Plan
from tests.acceptance.presets import work
from tests.acceptance.world import World

FILE: Final[dict[str, Any]] = {
    "rss": {"task": "RSS_FEED_REFRESH", "every": "15m", "arguments": {"feed": "news"}},
    "rss-daily": {"task": "RSS_FEED_REFRESH", "every": "1d", "arguments": {"feed": "weekly letter"}},
    "weather": {"task": "WEATHER_REFRESH", "every": "1h"},
    "listings": {"task": "LISTING_EXPIRATION", "cron": "0 2 * * *"},
    "ranks": {"task": "RANK_RECALCULATION", "cron": "0 * * * *"},
    "mail": {"task": "INBOUND_EMAIL", "every": "1m", "overlap": "skip"},
    "stocks": {
        "task": "STOCK_REFRESH",
        "cron": "*/5 * * * MON-FRI",
        "timezone": "America/New_York",
        "between": ["09:30", "16:00"],
        "catch_up": "skip",
    },
    "social": {"task": "SOCIAL_REFRESH", "every": "30m"},
    "links": {"task": "LINK_HEALTH_CHECK", "cron": "0 4 * * SUN", "spread": "1h"},
    "sitemap": {"task": "SITEMAP_GENERATION", "cron": "0 3 * * *"},
    "clicks": {"task": "CLICK_ROLLUP", "cron": "5 * * * *"},
}
ON_DEMAND: Final = ("EMAIL_RELAY", "AI_TAGGING", "IMAGE_PROCESSING", "SCREENSHOT_CAPTURE")
MONDAY: Final = to_instant(datetime(2026, 11, 16, tzinfo=UTC))


def preset() -> Fairlane:
    """Return the application of the description, with its schedules in the file."""
    app = Fairlane(config={"schedules": FILE})
    for name in sorted({one["task"] for one in FILE.values()} | set(ON_DEMAND)):
        if name == "RSS_FEED_REFRESH":
            app.task(name=name)(_refresh)
        else:
            app.task(name=name)(work)
    return app


def _refresh(feed: str) -> str:
    return feed


@pytest.fixture(scope="module")
def slots() -> dict[str, list[datetime]]:
    """Return the slots of one week of every schedule, as the file declares them."""
    app = preset()
    found: dict[str, list[datetime]] = {}
    with Trial(app) as trial:
        trial.run()
        for view in app.schedules.list():
            timing = app.client.portal.run(_timing(app, view.name))
            week = slots_between(timing, MONDAY - 1, MONDAY + 7 * DAY - 1, 100_000)
            found[view.name] = [to_datetime(one) for one in week]
    app.close()
    return found


async def _timing(app: Fairlane, name: str) -> Any:
    request = SchedulesFindRequest(scope=Scope.all(), names=(name,))
    (row,) = (await app.client.store.schedules.find(request)).rows
    assert row.record.declared is not None
    return row.record.declared.timing


def apart(found: list[datetime]) -> set[timedelta]:
    """Return the distances between slots."""
    return {later - one for one, later in pairwise(found)}


def test_004_cd_1_each_feed_has_its_interval(slots: dict[str, list[datetime]]) -> None:
    """From fifteen minutes to a day."""
    assert apart(slots["rss"]) == {timedelta(minutes=15)}
    assert apart(slots["rss-daily"]) == {timedelta(days=1)}


def test_004_cd_2_weather_comes_every_hour(slots: dict[str, list[datetime]]) -> None:
    """On the hour."""
    assert apart(slots["weather"]) == {timedelta(hours=1)}
    assert {one.minute for one in slots["weather"]} == {0}


def test_004_cd_3_listings_expire_at_two_and_the_sitemap_comes_at_three(
    slots: dict[str, list[datetime]],
) -> None:
    """UTC, every day."""
    assert [f"{one:%H:%M}" for one in slots["listings"]] == ["02:00"] * 7
    assert [f"{one:%H:%M}" for one in slots["sitemap"]] == ["03:00"] * 7


def test_004_cd_4_ranks_and_clicks_are_rolled_up_hourly(slots: dict[str, list[datetime]]) -> None:
    """The clicks five minutes later."""
    assert (len(slots["ranks"]), {one.minute for one in slots["ranks"]}) == (168, {0})
    assert (len(slots["clicks"]), {one.minute for one in slots["clicks"]}) == (168, {5})


def test_004_cd_5_inbound_mail_is_fetched_every_minute(slots: dict[str, list[datetime]]) -> None:
    """10,080 times a week."""
    assert (len(slots["mail"]), apart(slots["mail"])) == (10_080, {timedelta(minutes=1)})


async def test_004_cd_6_stocks_follow_the_exchange_79_times_a_day(
    slots: dict[str, list[datetime]],
) -> None:
    """First 09:30, last 16:00, in New York; right on both days of a change."""
    days: dict[str, list[str]] = {}
    for one in slots["stocks"]:
        days.setdefault(f"{one:%a}", []).append(f"{one:%H:%M}")
    assert list(days) == ["Mon", "Tue", "Wed", "Thu", "Fri"]
    assert {len(found) for found in days.values()} == {79}
    assert {(found[0], found[-1]) for found in days.values()} == {("14:30", "21:00")}
    app = preset()
    async with Trial(app) as trial:
        await trial.arun()
        timing = await _timing(app, "stocks")
    await app.aclose()
    changes = ("2027-03-12", "2027-03-15", "13:30"), ("2027-11-05", "2027-11-08", "14:30")
    for friday, monday, first in changes:
        start, end = (to_instant(datetime.fromisoformat(f"{day}T00:00+00:00")) for day in (friday, monday))
        found = [to_datetime(one) for one in slots_between(timing, start, end + DAY, 1_000)]
        assert len(found) == 158
        assert f"{found[79]:%Y-%m-%d %H:%M}" == f"{monday} {first}"


def test_004_cd_7_social_comes_every_thirty_minutes_and_links_are_checked_weekly(
    slots: dict[str, list[datetime]],
) -> None:
    """On Sunday at four, over an hour."""
    assert apart(slots["social"]) == {timedelta(minutes=30)}
    assert [f"{one:%a %H:%M}" for one in slots["links"]] == ["Sun 04:00"]


def test_004_cd_8_the_rest_runs_on_demand_only(slots: dict[str, list[datetime]]) -> None:
    """No schedule names these tasks."""
    assert set(slots) == set(FILE)
    assert not set(ON_DEMAND) & {one["task"] for one in FILE.values()}


async def test_000_dl_7_the_clean_up_comes_at_three_and_logs_how_many_it_removed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """`0 3 * * *`: the schedule of a job that makes the pass which our duty makes by itself, too."""
    plan = Plan(world, "2027-03-01T00:00:00+00:00")
    clean: Task[..., Any] = plan.app.task(name="dlq.clean", system=True)(work)
    plan.app.schedule("0 3 * * *", name="clean-up")(clean)
    old = plan.app.task(name="old")(work)
    await plan.start()
    job = await old.using(tenant="acme").aenqueue()
    await world.settle(await world.take(), Succeeded())
    await plan.go(3 * 60, step=600)
    (made,) = await plan.jobs(task="dlq.clean")
    assert f"{made.slot:%H:%M}" == "03:00"
    caplog.set_level(logging.INFO, "fairlane.duties")
    await Prune(Retention(succeeded=HOUR))(world.store)
    assert "removed after its retention: 1 succeeded" in caplog.text
    with pytest.raises(LookupError):
        await plan.app.jobs.aget(job.id)
