"""The screen of `fairlane top`, on every store, with a pilot who presses keys."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from textual.widgets import Static

from fairlane.cli.top.detail import DetailScreen
from tests.cli.top.watcher import BROAD, OFTEN, watching
from tests.web.pages.scene import SECRET, WORKER, Scene, filled

STORES_ = ["sqlite", "postgres", "redis"]


@pytest.fixture(params=STORES_)
async def scene(request: pytest.FixtureRequest) -> AsyncGenerator[Scene]:
    """A store with jobs of two tenants in every state."""
    async with filled(request.param) as made:
        yield made


@pytest.fixture
async def local() -> AsyncGenerator[Scene]:
    """The same on SQLite, for what no store has a part in."""
    async with filled("sqlite") as made:
        yield made


async def test_queues_and_tenants_are_counted_and_held_ones_marked(scene: Scene) -> None:
    """The most waiting come first."""
    async with watching(scene.app, "queues") as user:
        assert user.titles[:3] == ["QUEUE", "READY ▼", "RUNNING"]
        mail, default = user.rows
        assert mail == ["mail", "4", "2", "2", "2", "2", "2", "paused"]
        assert default == ["default", *["0"] * 6, ""]
        await user.press("2")
        assert user.column("TENANT") == ["globex", "acme"]
        assert user.column("READY") == ["3", "1"]
        assert user.column("HELD") == ["paused", ""]


async def test_workers_and_jobs_are_listed(scene: Scene) -> None:
    """Of the jobs those that run, at first; without the filter all of them."""
    async with watching(scene.app, "workers") as user:
        assert user.column("WORKER") == [WORKER]
        assert user.column("SLOTS") == ["4"]
        await user.press("4")
        assert user.column("STATE") == ["running", "running"]
        assert "filter state:running" in user.about
        await user.press("escape")
        assert len(user.rows) == 14
        assert "filter" not in user.about


async def test_a_change_appears_without_a_key_and_the_cursor_stays_at_its_row(scene: Scene) -> None:
    """It follows its row to wherever that is sorted."""
    async with watching(scene.app, "tenants", every=OFTEN) as user:
        await user.press("down")
        assert user.rows[user.board.table.cursor_row][0] == "acme"
        for _ in range(5):
            await scene.task.using(tenant="acme").aenqueue("x")
        await user.until(lambda: user.column("READY") == ["6", "3"])
        assert user.rows[user.board.table.cursor_row][0] == "acme"
        await scene.task.using(tenant="acme").aenqueue("x")
        await user.until(lambda: user.column("READY") == ["7", "3"])


async def test_keys_sort_and_reverse(local: Scene) -> None:
    """By the next column, then the other way."""
    async with watching(local.app, "tenants") as user:
        await user.press("r")
        assert (user.titles[1], user.column("TENANT")) == ("READY ▲", ["acme", "globex"])
        await user.press("s", "s", "s", "s")
        assert (user.titles[5], user.column("SUCCEEDED")) == ("SUCCEEDED ▼", ["2", "0"])


async def test_a_filter_holds_for_names_and_a_query_for_jobs(local: Scene) -> None:
    """A query that is not understood is answered with the place, and changes nothing."""
    async with watching(local.app, "tenants") as user:
        await user.press("slash", *"obe", "enter")
        assert user.column("TENANT") == ["globex"]
        await user.press("4", "slash")
        box = user.board.box
        box.value = "state:dead tenat:acme"
        await user.press("enter")
        assert "there is no field 'tenat'; did you mean tenant?\n" in user.about
        assert user.about.splitlines()[2].index("^") == 2 + len("state:dead ")
        box.value = "state:dead tenant:acme"
        await user.press("enter")
        assert user.column("STATE") == ["dead"]


async def test_escape_leaves_a_filter_that_is_being_typed(local: Scene) -> None:
    """What was shown is still shown."""
    async with watching(local.app, "jobs") as user:
        await user.press("slash", *"xyz", "escape")
        assert user.column("STATE") == ["running", "running"]
        assert not user.board.box.has_class("open")


@pytest.mark.parametrize("view", ["queues", "tenants", "workers"])
async def test_enter_opens_the_jobs_of_a_row(scene: Scene, view: str) -> None:
    """By a query that the user can change."""
    async with watching(scene.app, view) as user:
        name = user.rows[0][0]
        await user.press("enter")
        await user.until(lambda: user.board.view == "jobs" and user.rows)
        assert f"filter {view[:-1]}:{name}" in user.about
        assert len(user.rows) == {"queues": 14, "tenants": 7, "workers": 8}[view]


async def test_enter_opens_everything_about_a_job_with_secrets_redacted(scene: Scene) -> None:
    """Keys of the table do nothing meanwhile; Escape goes back."""
    async with watching(scene.app, "jobs") as user:
        await user.press("enter")
        await user.until(lambda: isinstance(user.board.screen, DetailScreen))
        await user.pilot.pause()
        text = str(user.board.screen.query_one(Static).render())
        assert "redacted" in text
        assert SECRET not in text
        assert "reason" in text
        await user.pilot.press("tab", "2", "s")
        await user.pilot.press("escape")
        await user.until(lambda: not isinstance(user.board.screen, DetailScreen))
        assert user.board.view == "jobs"


async def test_a_pause_looks_no_more_until_it_ends(local: Scene) -> None:
    """Changes appear after it."""
    async with watching(local.app, "queues", every=OFTEN) as user:
        await user.press("space")
        await user.until(lambda: user.about.startswith("PAUSED, shown is what was "))
        await user.pilot.pause()
        looks = user.board.refresher.looks
        await local.task.using(tenant="acme").aenqueue("x")
        for _ in range(20):
            await user.pilot.pause(0.01)
        assert user.board.refresher.looks <= looks + 1  # one may have begun before
        await user.press("space")
        await user.until(lambda: user.column("READY") == ["5", "0"])


async def test_one_look_for_each_refresh(local: Scene) -> None:
    """Nothing is read between two refreshes, whatever is drawn."""
    async with watching(local.app, "queues") as user:
        for _ in range(10):
            await user.pilot.pause()
            await user.pilot.press("s")
        assert user.board.refresher.looks == 1


@pytest.mark.parametrize(("view", "kept"), [("queues", "QUEUE"), ("workers", "STATE"), ("jobs", "TASK")])
async def test_a_narrow_terminal_shows_the_columns_that_matter(local: Scene, view: str, kept: str) -> None:
    """None is cut in the middle; broad again, all are back."""
    async with watching(local.app, view, size=(40, 20)) as user:
        narrow = user.titles
        assert any(one.startswith(kept) for one in narrow)
        assert user.board.table.virtual_size.width <= 40
        await user.pilot.resize_terminal(*BROAD)
        await user.until(lambda: len(user.titles) > len(narrow))
