"""Descriptions D and E, their configuration: lanes, retries, slots, files, environment; draining."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fairlane import Backoff, Closed, ConfigError, Fairlane, State
from tests.acceptance.presets import E_SLOTS, lanes
from tests.acceptance.working import Stage, at_work, until
from tests.acceptance.world import World

PRODUCTION = """
[queues.fast]
timeout = "2m"
max_attempts = 3
retry = { kind = "exponential", base = 1, cap = "5m", jitter = 0.1 }
[queues.slow]
timeout = "20m"
max_attempts = 3
retry = { kind = "exponential", base = 1, cap = "5m", jitter = 0.1 }
[lanes.fast]
slots = 3
queues = ["fast"]
[lanes.general]
slots = 5
queues = ["fast", "slow"]
"""

DEVELOPMENT = (
    PRODUCTION.replace('"5m"', '"1m"').replace("slots = 3", "slots = 1").replace("slots = 5", "slots = 2")
)


def read(folder: Path, text: str) -> Fairlane:
    """Make an application with this file."""
    file = folder / "fairlane.toml"
    file.write_text(text, "utf-8")
    return Fairlane(f"sqlite:///{folder}/fairlane.db", config=file)


def slots(app: Fairlane) -> dict[str, int]:
    """Return the slots of each lane."""
    return {lane.name: lane.slots for lane in app.settings.lanes}


def test_003_ln_4_slots_come_from_the_file(tmp_path: Path) -> None:
    """Three and five."""
    assert slots(read(tmp_path, PRODUCTION)) == {"fast": 3, "general": 5}


def test_003_ln_4_slots_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is above the file; ours spells the key as the file does."""
    monkeypatch.setenv("FAIRLANE_LANES__FAST__SLOTS", "4")
    monkeypatch.setenv("FAIRLANE_LANES__GENERAL__SLOTS", "9")
    assert slots(read(tmp_path, PRODUCTION)) == {"fast": 4, "general": 9}


@pytest.mark.parametrize(
    ("text", "expected", "cap"),
    [(PRODUCTION, {"fast": 3, "general": 5}, 300), (DEVELOPMENT, {"fast": 1, "general": 2}, 60)],
)
def test_003_ln_7_production_and_development_differ_by_their_files(
    tmp_path: Path, text: str, expected: dict[str, int], cap: float
) -> None:
    """Lanes and the cap of retries."""
    app = read(tmp_path, text)
    assert slots(app) == expected
    retry = app.settings.queue("slow").retry
    assert isinstance(retry, Backoff)
    assert retry.delay(100, 1.0).total_seconds() == cap


async def test_003_op_6_a_drained_queue_takes_nothing_new_and_finishes_what_it_has(
    world: World, stage: Stage
) -> None:
    """Closed with a reason; it reports when nothing is left, and that something is left while it is."""
    preset = await world.open(lanes(world.url))
    hold = preset.app.task(name="hold", queue="fast")(stage.handler("hold"))
    await hold.aenqueue(1)
    async with at_work(preset.app):
        await until(lambda: stage.present["hold"] == 1)
        assert not await preset.app.queues.adrain("fast", reason="deploy", by="close", timeout=0.1)
        with pytest.raises(Closed, match="deploy"):
            await preset["email"].aenqueue()
        stage.let_go("hold")
        assert await preset.app.queues.adrain("fast", reason="deploy", by="close", timeout=30)
    counts = (await preset.app.queues.aget("fast")).counts
    assert (counts[State.READY], counts[State.RUNNING], counts[State.SUCCEEDED]) == (0, 0, 1)
    await preset.app.queues.areopen("fast")
    await preset["email"].aenqueue()


FAMILIES: dict[str, Any] = {
    "defaults": {
        "max_attempts": 5,
        "retry": {"kind": "exponential", "base": 30, "jitter": 0.25, "cap": "15m"},
    },
    "queues": {name: {} for name in E_SLOTS},
    "lanes": {name: {"slots": number, "queues": [name]} for name, number in E_SLOTS.items()},
    "budgets": {"ai-tagging": {"ceiling": "500.00", "currency": "USD", "per": "month"}},
}
LATER: dict[str, Any] = {
    "channels": {"pager": "https://pager.example.org/hunter2"},
}
"""What belongs to features that do not exist yet."""


def test_004_cf_1_every_setting_of_the_sample_has_its_place() -> None:
    """Delays, slots, queues, a budget; a setting without a feature is refused, without showing its value."""
    for table, values in LATER.items():
        with pytest.raises(ConfigError, match=rf"^{table}: there is no such table") as caught:
            _ = Fairlane("sqlite:///unused.db", config={**FAMILIES, table: values}).settings
        assert "hunter2" not in str(caught.value)
    settings = Fairlane("sqlite:///unused.db", config=FAMILIES).settings
    assert {lane.name: lane.slots for lane in settings.lanes} == E_SLOTS
    retry = settings.queue("low").retry
    assert isinstance(retry, Backoff)
    assert [retry.delay(n, 0.5).total_seconds() for n in range(1, 6)] == [30, 60, 120, 240, 480]
    assert settings.queue("low").max_attempts == 5
    assert [(one.name, one.ceiling, one.currency) for one in settings.budgets] == [
        ("ai-tagging", Decimal(500), "USD")
    ]


def test_004_cf_1_a_secret_that_the_environment_does_not_have_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The variable, never a value; with it, the value is used and not shown."""
    app = Fairlane(config={"app": {"url": "${ACCEPTANCE_URL}"}})
    monkeypatch.delenv("ACCEPTANCE_URL", raising=False)
    with pytest.raises(ConfigError, match="ACCEPTANCE_URL"):
        _ = app.settings
    monkeypatch.setenv("ACCEPTANCE_URL", "sqlite:///elsewhere.db")
    assert app.settings.url == "sqlite:///elsewhere.db"
