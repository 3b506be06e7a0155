"""Which source wins: defaults, code, file, environment, command line; for the store, code."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from fairlane import Backoff, ConfigError, Fairlane, Gate, Lane, Limits, Queue, Rate, Share
from fairlane.app.config.configuration import Configuration
from fairlane.app.settings import PayloadSettings, settings_of
from fairlane.model.failure import ErrorBounds
from fairlane.model.instants import SECOND
from tests.config.world import World

# ── how much ─────────────────────────────────────────────────────────────────

STEPS: list[tuple[str, dict[str, Any]]] = [
    ("default", {}),
    ("code", {"code": Queue("bulk", timeout=2)}),
    ("defaults", {"text": "[defaults]\ntimeout = 3\n"}),
    ("file", {"text": "[defaults]\ntimeout = 3\n[queues.bulk]\ntimeout = 4\n"}),
    ("environment", {"environ": {"FAIRLANE_QUEUES__BULK__TIMEOUT": "5"}}),
]


@pytest.mark.parametrize(
    ("given", "timeout"),
    [
        ([], 1800),
        (["code"], 2),
        (["defaults"], 3),
        (["code", "defaults"], 2),
        (["file"], 4),
        (["code", "file"], 4),
        (["environment"], 5),
        (["code", "file", "environment"], 5),
    ],
)
def test_the_last_layer_that_speaks_of_a_queue_wins(world: World, given: list[str], timeout: float) -> None:
    """A queue of the code lies above the file's defaults and below its own table."""
    values: dict[str, Any] = {}
    for step in given:
        values.update(dict(STEPS)[step])
    world.environ = values.get("environ", {})
    queues = [values["code"]] if "code" in values else []
    assert world.settings(values.get("text"), queues=queues).queue("bulk").timeout == timeout


def test_the_command_line_wins_over_all(world: World) -> None:
    """Texts are read as an environment's are, values are taken."""
    world.environ = {"FAIRLANE_WORKER__LEASE": "20", "FAIRLANE_WORKER__MAX_JOBS": "2"}
    world.environ["FAIRLANE_WORKER__MAX_CRASHES"] = "2"
    world.environ["FAIRLANE_WORKER__STALLED_AFTER"] = "1m"
    configuration = world.configuration("[worker]\nlease = 30\nrenew_every = 7\n")
    configuration.use(options={"--lease": ("worker.lease", "40s"), "--max": ("worker.max_jobs", 3)})
    worker = configuration.settings.worker
    assert (worker.lease, worker.max_jobs, worker.renew_every) == (40 * SECOND, 3, 7 * SECOND)
    assert (worker.max_crashes, worker.stalled_after) == (2, 60 * SECOND)


def test_an_option_for_a_key_that_is_not_there_is_refused(world: World) -> None:
    """With the nearest that is."""
    configuration = world.configuration()
    configuration.use(options={"--lease": ("worker.leese", "40s")})
    with pytest.raises(
        ConfigError, match=r"worker.leese: there is no such key; did you mean 'worker.lease'\?"
    ):
        _ = configuration.settings


def test_each_key_of_limits_wins_by_itself_and_a_rate_as_a_whole(world: World) -> None:
    """Whoever changes one figure does not have to repeat the others."""
    world.environ = {"FAIRLANE_QUEUES__BULK__LIMITS__RUNNING": "7"}
    code = Limits(waiting=1, on_full="reject", running=1, rate=Rate(1, "hour", 9))
    text = "[defaults.limits]\nwaiting = 2\n[queues.bulk.limits]\nrate = { limit = 3 }\n"
    settings = world.settings(text, queues=[Queue("bulk", limits=code)])
    assert settings.queue("bulk").limits == Limits(waiting=1, on_full="reject", running=7, rate=Rate(3))
    assert settings.queue("default").limits == Limits(waiting=2)
    assert settings.queue("named-by-a-task").limits == Limits(waiting=2)


def test_lanes_and_gates_of_code_and_file_come_together_by_name(world: World) -> None:
    """Of those that both have, the file's keys win."""
    text = """
        [lanes.main]
        slots = 9
        [lanes.fast]
        slots = 2
        queues = { fast = 2, default = { weight = 1, max_slots = 1 } }
        order = "strict"
        [gates.screens]
        limit = 5
        [gates.api]
        rate = { limit = 10 }
    """
    settings = world.settings(
        text, lanes=[Lane("main", 4, ["default"], headroom=1)], gates=[Gate("screens", 3, Rate(1))]
    )
    assert settings.lanes == (
        Lane("main", 9, ["default"], headroom=1),
        Lane("fast", 2, {"fast": 2, "default": Share(1, max_slots=1)}, order="strict"),
    )
    assert settings.gates == (Gate("screens", 5, Rate(1)), Gate("api", None, Rate(10)))


@pytest.mark.parametrize(
    ("code", "file", "variable", "kept"),
    [
        (None, "", None, 1),
        (None, "slots = 32", None, 4),
        (0, "slots = 32", None, 0),
        (0, "headroom = 3", None, 3),
        (None, "headroom = 0", None, 0),
        (None, "headroom = 0", "2", 2),
        (3, "headroom = 2", "0", 0),
    ],
)
def test_a_headroom_is_of_the_slots_in_force_unless_somebody_gives_one(
    world: World, code: int | None, file: str, variable: str | None, kept: int
) -> None:
    """S48: none is a number, too."""
    if variable is not None:
        world.environ = {"FAIRLANE_LANES__MAIN__HEADROOM": variable}
    lanes = [Lane("main", 8, ["default"], headroom=code)]
    (lane,) = world.settings(f"[lanes.main]\n{file}\n", lanes=lanes).lanes
    assert lane.headroom_slots == kept


def test_the_rest_of_the_code_is_overruled_key_by_key(world: World) -> None:
    """Tenancy, priorities, payload."""
    text = "[app]\ntenancy = 'required'\npriority = 'lower_first'\n[payload]\nmax_size = '2KB'\n"
    settings = world.settings(
        text,
        tenancy="declared",
        fixed_queues=True,
        priority_default=3,
        payload={"max_size": 1, "max_depth": 2, "sensitive": "reject", "require": ["correlation_id"]},
    )
    assert (settings.tenancy, settings.fixed_queues, settings.priority_default) == ("required", True, 3)
    assert settings.is_lower_first
    assert (settings.payload.max_size, settings.payload.max_depth) == (2048, 2)
    assert (settings.sensitive, settings.require) == ("reject", ("correlation_id",))


def test_the_bounds_of_errors_and_the_categories_are_overruled_one_by_one(world: World) -> None:
    """What the file does not name keeps the value of the code; the environment wins over both."""
    world.environ = {"FAIRLANE_ERRORS__TRACEBACK": "7"}
    settings = world.settings(
        "[errors]\ntraceback = 9\n[payload.categories]\nmail = ['to']\n",
        errors={"message": 300, "traceback": 8},
        payload={"categories": {"mail": ["to", "body"], "report": ["day"]}},
    )
    assert settings.errors == ErrorBounds(message=300, traceback=7)
    assert settings.categories == {"mail": ("to",), "report": ("day",)}


def test_what_becomes_of_a_stuck_job_is_overruled_key_by_key(world: World) -> None:
    """The defaults lie below the code, the queue's own table above it."""
    world.environ = {"FAIRLANE_DEFAULTS__ON_STUCK": "requeue"}
    text = "[defaults]\nstuck_after = '3h'\n[queues.bulk]\nstuck_after = '2h'\n"
    settings = world.settings(text, queues=[Queue("bulk", stuck_after=9_000), Queue("mail", on_stuck="dead")])
    assert settings.queue("bulk") == Queue("bulk", stuck_after=7_200, on_stuck="requeue")
    assert settings.queue("mail").stuck_after == 10_800


@pytest.mark.parametrize(
    ("code", "text", "is_checked"),
    [
        ({}, "", True),
        ({"check_types": False}, "", False),
        ({}, "[payload]\ncheck_types = false\n", False),
        ({"check_types": False}, "[payload]\ncheck_types = true\n", True),
    ],
)
def test_whether_types_are_checked_is_said_by_the_file_before_the_code(
    world: World, code: PayloadSettings, text: str, is_checked: bool
) -> None:
    """They are, unless somebody says otherwise."""
    assert world.settings(text, payload=code).check_types is is_checked


@pytest.mark.parametrize(
    ("text", "code", "attempts"),
    [
        ("", Queue("bulk", retry=Backoff.delays(1, 2)), 3),
        (
            "[queues.bulk]\nretry = { kind = 'delays', delays = [1] }\n",
            Queue("bulk", retry=Backoff.delays(1, 2)),
            2,
        ),
        ("[queues.bulk]\nmax_attempts = 5\n", Queue("bulk", retry=Backoff.delays(1, 2)), 5),
        ("[queues.bulk]\nretry = { kind = 'never' }\n", Queue("bulk"), 1),
        ("[queues.bulk]\nretry = { kind = 'never' }\n", Queue("bulk", max_attempts=7), 7),
        ("[defaults]\nretry = { kind = 'delays', delays = [1, 1, 1] }\n", Queue("bulk"), 4),
        ("[defaults]\nmax_attempts = 5\n", Queue("bulk", retry=Backoff.delays(1, 2)), 5),
    ],
)
def test_a_list_of_delays_implies_the_attempts_unless_somebody_gives_them(
    world: World, text: str, code: Queue, attempts: int
) -> None:
    """S26, whichever layer the list and the number come from."""
    assert world.settings(text, queues=[code]).queue("bulk").max_attempts == attempts


# ── where ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (["file"], "file://"),
        (["file", "environment"], "env://"),
        (["file", "environment", "option"], "option://"),
        (["file", "environment", "option", "code"], "code://"),
        (["environment", "code"], "code://"),
    ],
)
def test_a_url_in_code_is_never_replaced(
    world: World, given: list[str], url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An environment variable must not send a test suite to production; what was typed is answered."""
    world.environ = {"FAIRLANE_URL": "env://"} if "environment" in given else {}
    text = "[app]\nurl = 'file://'\n" if "file" in given else None
    code = {"url": "code://"} if "code" in given else {}
    configuration = world.configuration(text, **code)
    if "option" in given:
        configuration.use(options={"--url": ("app.url", "option://")})
    if {"option", "code"} <= {*given}:
        with pytest.raises(ConfigError, match=r"sets its url in code.*drop --url") as caught:
            _ = configuration.settings
        assert (caught.value.key, caught.value.source) == ("url", "--url")
        return
    with caplog.at_level(logging.INFO, "fairlane"):
        assert configuration.settings.url == url
    assert "is given in code" not in caplog.text  # at every start: no news


def test_a_url_that_code_replaces_needs_no_variable(world: World) -> None:
    """What is not in force is not read."""
    assert world.settings("[app]\nurl = '${NOT_SET}'\n", url="code://").url == "code://"
    world.environ = {"FAIRLANE_URL": "env://"}
    assert world.settings("[app]\nurl = '${NOT_SET}'\n").url == "env://"


# ── the file ─────────────────────────────────────────────────────────────────


def test_the_file_is_the_option_then_the_variable_then_the_one_that_lies_here(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S55, and without any of them there is none."""
    monkeypatch.chdir(world.folder)
    configuration = Configuration(settings_of(), None, world.environ)
    assert configuration.read.file is None
    world.write("[worker]\nmax_jobs = 2\n")
    named = world.write("[worker]\nmax_jobs = 3\n", "named.toml")
    option = world.write("[worker]\nmax_jobs = 4\n", "option.toml")

    configuration = Configuration(settings_of(), None, world.environ)
    assert (configuration.read.file, configuration.settings.worker.max_jobs) == ("fairlane.toml", 2)
    world.environ["FAIRLANE_CONFIG"] = str(named)
    configuration = Configuration(settings_of(), None, world.environ)
    assert (configuration.read.file, configuration.settings.worker.max_jobs) == (str(named), 3)
    configuration.use(file=option)
    assert (configuration.read.file, configuration.settings.worker.max_jobs) == (str(option), 4)


def test_code_that_names_its_file_gets_that_file(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The variable is not used; an option together with it is reported as a contradiction."""
    other = world.write("[worker]\nmax_jobs = 9\n", "other.toml")
    world.environ = {"FAIRLANE_CONFIG": str(other)}
    for config in (world.write("[worker]\nmax_jobs = 2\n"), {"worker": {"max_jobs": 2}}):
        caplog.clear()
        configuration = Configuration(settings_of(), config, world.environ)
        with caplog.at_level(logging.DEBUG, "fairlane"):
            assert configuration.settings.worker.max_jobs == 2
        assert "config is given in code, so that of FAIRLANE_CONFIG is not used" in caplog.text
        configuration.use(file=other)
        with pytest.raises(ConfigError, match="names its configuration in code already") as caught:
            _ = configuration.settings
        assert (caught.value.key, caught.value.source) == ("config", "--config")


@pytest.mark.parametrize("by", ["code", "variable", "option"])
def test_a_file_that_was_named_must_be_there(world: World, by: str) -> None:
    """Only the one that nobody has named may be missing."""
    missing = world.folder / "missing.toml"
    world.environ = {"FAIRLANE_CONFIG": str(missing)} if by == "variable" else {}
    configuration = Configuration(settings_of(), missing if by == "code" else None, world.environ)
    if by == "option":
        configuration.use(file=missing)
    with pytest.raises(ConfigError, match=f"there is no such file. .from {missing}"):
        _ = configuration.settings


def test_a_file_that_cannot_be_read_says_why(world: World) -> None:
    """A folder, and bytes that are no text."""
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        _ = Configuration(settings_of(), world.folder, {}).settings
    path = world.folder / "latin.toml"
    path.write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 5"):
        _ = Configuration(settings_of(), path, {}).settings


def test_a_table_in_code_is_a_file_without_lines() -> None:
    """Its mistakes are named by the argument."""
    configuration = Configuration(settings_of(), {"worker": {"leese": 1}}, {})
    with pytest.raises(ConfigError) as caught:
        _ = configuration.settings
    assert (caught.value.key, caught.value.source) == ("worker.leese", "config= in code")


def test_nothing_is_read_before_it_is_needed(tmp_path: Path) -> None:
    """Making an application and declaring tasks do no I/O; the first look at its settings does, once."""
    path = tmp_path / "fairlane.toml"
    app = Fairlane(config=path)
    app.task(name="send", timeout=5)(lambda: None)
    with pytest.raises(ConfigError, match="no such file"):
        _ = app.settings
    path.write_text("[worker]\nmax_jobs = 2\n", encoding="utf-8")
    assert app.settings.worker.max_jobs == 2
    path.unlink()
    assert app.settings.worker.max_jobs == 2
