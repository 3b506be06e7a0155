"""What an application may be declared with, and how its store is found."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from fairlane import ConfigError, Fairlane, Gate, Lane, Queue
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract import Store
from fairlane.store.opening import StoreClock, open_store, register_scheme
from tests.oracle.clock import DrivenClock

BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "My App"}, "name"),
    ({"tenancy": "closed"}, "tenancy"),
    ({"priority": "lowest"}, "priority"),
    ({"priority_default": 101}, "priority_default"),
    ({"imports": "myapp.jobs"}, "imports"),
    ({"queues": [Queue("a"), Queue("a")]}, "queues"),
    ({"lanes": [Lane("a", 1, ["default"]), Lane("a", 1, ["default"])]}, "lanes"),
    ({"gates": [Gate("a", 1), Gate("a", 2)]}, "gates"),
    ({"queues": [Queue("a")], "lanes": [Lane("main", 1, ["a", "b"])]}, "lanes"),
    ({"payload": {"largest": 5}}, "payload.largest"),
    ({"payload": {"max_size": 0}}, "payload.max_size"),
    ({"payload": {"max_size": "1MB"}}, "payload.max_size"),
    ({"payload": {"check_types": "yes"}}, "payload.check_types"),
    ({"payload": {"warn_over": True}}, "payload.warn_over"),
    ({"payload": {"max_depth": 1000}}, "payload.max_depth"),
    ({"payload": {"sensitive": "refuse"}}, "payload.sensitive"),
    ({"payload": {"require": ["tenant"]}}, "payload.require"),
]


@pytest.mark.parametrize(("settings", "key"), BAD)
def test_a_bad_setting_is_refused_by_its_key(settings: dict[str, Any], key: str) -> None:
    """When the application is made, with what is allowed."""
    with pytest.raises(ConfigError) as caught:
        Fairlane("oracle://here", **settings)
    assert caught.value.key == key
    assert str(caught.value).startswith(f"{key}: ")


def test_declared_values_are_kept() -> None:
    """For the worker, which is to act on them."""
    lane, gate = Lane("main", 4, ["bulk", "default"]), Gate("screens", 3)
    app = Fairlane(
        name="shop", queues=[Queue("bulk", timeout=9)], lanes=[lane], gates=[gate], imports=["shop.jobs"]
    )
    kept = app.settings
    assert (kept.name, kept.lanes, kept.gates, kept.imports) == ("shop", (lane,), (gate,), ("shop.jobs",))
    assert sorted(kept.queues) == ["bulk", "default"]
    assert kept.queue("bulk").timeout == 9
    assert kept.queue("named-by-a-task") == Queue("named-by-a-task")


def test_a_lane_may_serve_queues_that_only_tasks_name() -> None:
    """Where no queue is declared, there is nothing to compare with."""
    assert Fairlane(lanes=[Lane("main", 1, ["anything"])]).settings.has_open_queues


# ── opening ──────────────────────────────────────────────────────────────────


def test_a_store_is_opened_by_the_scheme_of_its_url() -> None:
    """The opener gets the whole URL and the clock that a test drives."""
    got: list[tuple[str, StoreClock | None]] = []
    store = cast("Store", object())

    def opener(url: str, clock: StoreClock | None) -> Store:
        got.append((url, clock))
        return store

    register_scheme("test+x", opener)
    clock = DrivenClock()
    assert open_store("test+x://host/db?a=1") is store
    assert open_store("test+x://", clock=clock) is store
    assert got == [("test+x://host/db?a=1", None), ("test+x://", clock)]


@pytest.mark.parametrize("scheme", ["mysql", "mongodb"])
def test_a_store_that_is_not_shipped_is_refused(scheme: str) -> None:
    """The error names the scheme and what is known, and never the rest of the URL."""
    register_scheme("known", lambda url, clock: cast("Store", object()))
    with pytest.raises(ConfigError, match=rf"scheme '{scheme}'.*Allowed: .*known://") as caught:
        open_store(f"{scheme}://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "file.db", "://x", "user:hunter2@host"])
def test_what_is_no_url_is_refused_without_being_shown(url: str) -> None:
    """It may hold a password."""
    with pytest.raises(ConfigError, match="no scheme") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["", "Upper", "1st", "a b"])
def test_an_illegal_scheme_cannot_be_registered(scheme: str) -> None:
    """No URL could ever have it."""
    with pytest.raises(ValueError, match="is not a scheme"):
        register_scheme(scheme, lambda url, clock: cast("Store", object()))


# ── clocks ───────────────────────────────────────────────────────────────────


async def test_the_machines_clock_counts_microseconds_and_waits() -> None:
    """Wall time is of this era; nothing or less only gives others their turn."""
    clock = MachineClock()
    assert 1_700_000_000 < clock.wall() // 1_000_000 < 10_000_000_000
    before = clock.elapsed()
    await clock.wait(1_000)
    assert clock.elapsed() - before >= 900
    async with asyncio.timeout(5):
        await clock.wait(0)
        await clock.wait(-1_000_000_000)


@pytest.mark.parametrize(
    "url", ["sqlite://user:hunter2@host/db", "sqlite:///x.db?password=hunter2", "sqlite:///"]
)
def test_a_bad_url_of_a_file_is_refused_without_showing_it(url: str) -> None:
    """The error says which form is allowed; what may be a password is not repeated."""
    with pytest.raises(ConfigError, match="Allowed: ") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([1], "errors: it is"),
        ({"massage": 500}, "there is no such key"),
        ({"message": 99}, "errors.message: it is 99"),
        ({"message": 2_001}, "errors.message: it is 2001"),
        ({"traceback": True}, "errors.traceback: it is True"),
    ],
)
def test_bounds_of_errors_outside_their_range_are_refused(errors: Any, words: str) -> None:
    """They can only be lowered."""
    with pytest.raises(ConfigError, match=words):
        Fairlane(errors=errors)
