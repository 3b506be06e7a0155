"""The pages of schedules: what runs next, what became of each slot, and what can be done about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from fairlane.app.schedules.clock_changes import clock_change
from fairlane.app.schedules.views import SlotView
from fairlane.model.access import Role
from fairlane.model.instants import to_instant
from fairlane.model.schedule.timing import At, Cron, Every
from fairlane.web.html.slot_marks import MOST_RUNS, coming_runs, slot_marks
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup, words
from tests.web.pages.scene import FOREIGN_WORD, MINE, Scene, filled


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A filled store."""
    async with filled("sqlite") as made:
        yield made


async def page_of(scene: Scene, path: str, role: Role = Role.ADMIN, tenant: str | None = None) -> str:
    """Return a page."""
    async with web_of(scene.app, ann(role, tenant)) as web:
        answer = await web.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_the_list_says_what_fails_what_comes_and_what_has_become_of_the_last_slots(
    scene: Scene,
) -> None:
    """In words, for everybody who sees all tenants."""
    text = words(await page_of(scene, "/schedules"))
    assert "1 schedule fails: every-tenant" in text
    assert "1 is paused" in text
    assert "At 02:30 every day, Berlin" in text
    assert "tenants with plan=pro" in text
    html = await page_of(scene, "/schedules")
    assert 'aria-label="last 5 slots: 1 died, 2 under way, 1 skipped, 1 missed"' in html
    assert 'aria-label="Runs of the next 12 hours: ' in html


async def test_a_tenant_sees_its_own(scene: Scene) -> None:
    """And nothing of what all share; it can change nothing."""
    html = await page_of(scene, "/schedules", tenant=MINE)
    assert "every-tenant" not in html
    assert "/schedules/quiet" not in html
    assert FOREIGN_WORD not in html
    assert [action for action, _ in Markup(html).forms if action.startswith("/do/")] == []
    assert "At 02:30 every day" in words(await page_of(scene, "/schedules/own", tenant=MINE))


async def test_a_schedule_shows_its_slots_its_next_runs_and_its_rules(scene: Scene) -> None:
    """With the job of each slot, and why others have none."""
    text = words(await page_of(scene, "/schedules/own"))
    for said in ("run now", "skipped", "missed", "4 slots before it missed", "Berlin", "Added by"):
        assert said in text
    text = words(await page_of(scene, "/schedules/every-tenant"))
    assert "3 jobs, 1 failed" in text
    assert "Its slots fail" in text
    assert "Paused by" in words(await page_of(scene, "/schedules/quiet"))


async def test_an_expression_is_tried_out(scene: Scene) -> None:
    """In words with its next runs, or with everything that is wrong with it."""
    text = words(await page_of(scene, "/schedules?cron=0+9+*+*+1&timezone=America/New_York"))
    assert "At 09:00 on Monday, New York" in text
    assert "Mon" in text
    wrong = words(await page_of(scene, "/schedules?cron=0+25+*+*+1&timezone=America/Nowhere"))
    assert "hour '25' is not allowed" in wrong
    assert "'America/Nowhere'" in wrong


async def test_a_schedule_is_added_run_paused_edited_and_removed_from_the_page(scene: Scene) -> None:
    """With a reason; the audit says who."""
    async with web_of(scene.app, ann()) as web:
        forms = dict(Markup((await web.get("/schedules")).text).forms)
        form = forms["/do/schedules.add"] | {
            "name": "fresh", "task": "mail.send", "cron": "@hourly", "arguments": '{"to": "x"}', "note": "why"
        }  # fmt: skip
        added = await web.post("/do/schedules.add", data=form)
        assert (added.status_code, added.headers["location"]) == (303, "/schedules/fresh")
        forms = dict(Markup((await web.get("/schedules/fresh")).text).forms)
        for verb, more in (
            ("run", {}),
            ("pause", {"for": "2h"}),
            ("edit", {"every": "15m", "overlap": "skip"}),
            ("backfill", {"since": "2026-01-01T00:00Z", "until": "2026-01-01T00:00Z"}),
        ):
            name = f"/do/schedules.{verb}"
            answer = await web.post(name, data=forms[name] | {"note": f"why {verb}", **more})
            assert answer.status_code == 303, (verb, answer.text)
        view = await scene.app.schedules.aget("fresh")
        assert (view.expression, view.overlap, view.paused is not None) == ("every 15m", "skip", True)
        forms = dict(Markup((await web.get("/schedules/fresh")).text).forms)
        assert (await web.post("/do/schedules.resume", data=forms["/do/schedules.resume"])).status_code == 303
        gone = await web.post("/do/schedules.remove", data=forms["/do/schedules.remove"] | {"note": "why"})
        assert gone.status_code == 303
        assert (await web.get("/schedules/fresh")).status_code == 404
    kinds = [one.kind for one in (await scene.app.audit.afind(subject="schedule fresh")).items]
    assert set(kinds) >= {
        "schedules.add",
        "schedules.run",
        "schedules.pause",
        "schedules.edit",
        "schedules.remove",
    }


async def test_operators_run_and_pause_and_do_not_edit(scene: Scene) -> None:
    """Managers do."""
    actions = {action for action, _ in Markup(await page_of(scene, "/schedules/own", Role.OPERATOR)).forms}
    assert {"/do/schedules.run", "/do/schedules.pause"} <= actions
    assert not {"/do/schedules.edit", "/do/schedules.remove", "/do/schedules.backfill"} & actions
    managers = {action for action, _ in Markup(await page_of(scene, "/schedules/own", Role.MANAGER)).forms}
    assert {"/do/schedules.edit", "/do/schedules.remove", "/do/schedules.backfill"} <= managers


async def test_the_first_page_names_what_fails(scene: Scene) -> None:
    """With the way there."""
    html = await page_of(scene, "/")
    assert 'href="/schedules/every-tenant"' in html
    assert "1 schedule fails" in words(html)


async def test_a_job_of_a_slot_and_its_task_lead_to_the_schedule(scene: Scene) -> None:
    """The job names the slot, the task how often it runs."""
    job = next(one for one in (await scene.app.jobs.afind(created_by="schedule:own")).items)
    html = await page_of(scene, f"/jobs/{job.id}")
    assert 'href="/schedules/own"' in html
    assert "by schedule own, slot" in words(html)
    assert 'href="/schedules/own"' in await page_of(scene, "/tasks/mail.send")
    assert "At 02:30 every day, Berlin" in words(await page_of(scene, "/tasks"))


NEW_YORK = "America/New_York"
BEFORE_SPRING = to_instant(datetime(2024, 2, 1, tzinfo=UTC))
BEFORE_AUTUMN = to_instant(datetime(2024, 10, 1, tzinfo=UTC))


def test_a_change_of_the_clock_is_told_beforehand() -> None:
    """What is left out, what comes twice, and what stays."""
    spring = clock_change(Cron(expression="30 2 * * *", timezone=NEW_YORK), BEFORE_SPRING)
    assert spring is not None
    assert (spring.at, spring.is_forward) == (datetime(2024, 3, 10, 7, tzinfo=UTC), True)
    assert (spring.normally, spring.that_day) == (("02:30:00",), ("03:00:00",))
    autumn = clock_change(Cron(expression="30 1 * * *", timezone=NEW_YORK, repeated="both"), BEFORE_AUTUMN)
    assert autumn is not None
    assert (autumn.normally, autumn.that_day) == (("01:30:00",), ("01:30:00", "01:30:00"))
    assert not autumn.is_forward
    noon = clock_change(Cron(expression="0 12 * * *", timezone=NEW_YORK), BEFORE_SPRING)
    assert noon is not None
    assert noon.is_same
    assert noon.first_at == datetime(2024, 3, 10, 16, tzinfo=UTC)
    sunday_off = clock_change(Cron(expression="0 9 * * MON", timezone=NEW_YORK), BEFORE_SPRING)
    assert sunday_off is not None
    assert (sunday_off.normally, sunday_off.first_at) == ((), None)


def test_what_follows_no_clock_is_not_affected() -> None:
    """UTC, intervals, single runs."""
    for timing in (Cron(expression="30 2 * * *"), Every(interval=10**9, timezone=NEW_YORK), At(0, NEW_YORK)):
        assert clock_change(timing, BEFORE_SPRING) is None
    assert clock_change(Every(interval=10**9, timezone=NEW_YORK, between=("09:00", "10:00")), 0) is not None


def slot(**fields: object) -> SlotView:
    """Make a slot that was taken in time."""
    at = datetime(2026, 11, 19, tzinfo=UTC)
    given = {
        "schedule": "s", "at": at, "tenant": "acme", "cause": "due", "state": "enqueued", "because": "",
        "job": None, "taken_at": at, "ended_at": at, "missed": 0, "missed_since": None, "enqueued": 0,
        "skipped": 0, "failed": 0, "exceptions": {}, **fields,
    }  # fmt: skip
    return SlotView(**given)  # type: ignore[arg-type]


def test_each_slot_is_a_mark() -> None:
    """Whatever became of it; late is more than a minute."""
    late = datetime(2026, 11, 19, 0, 5, tzinfo=UTC)
    slots = [
        slot(),
        slot(taken_at=late),
        slot(taken_at=late, cause="backfill"),
        slot(state="skipped", because="overlap"),
        slot(state="missed"),
        slot(state="failed", because="closed"),
        slot(state="pending"),
        slot(tenant=None, failed=2, enqueued=1),
        slot(tenant=None, enqueued=4),
    ]
    marks = slot_marks(slots[::-1], {})
    kinds = ["succeeded", "late", "succeeded", "skipped", "missed", "died", "waiting", "died", "succeeded"]
    assert [mark.kind for mark in marks] == kinds
    assert [marks[3].words, marks[5].words, marks[8].words] == [
        "skipped: overlap",
        "no job: closed",
        "4 jobs",
    ]


def test_the_next_twelve_hours_are_a_line() -> None:
    """Many runs become one bar."""
    now = datetime(2026, 11, 19, tzinfo=UTC)
    found = coming_runs("s", [now + timedelta(hours=hour) for hour in (0, 6, 12, 13)], now)
    assert (found.places, found.is_dense) == ([0.0, 50.0, 100.0], False)
    assert coming_runs("s", [now + timedelta(minutes=one) for one in range(MOST_RUNS + 1)], now).is_dense
