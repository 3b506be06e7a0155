"""Where the store, the application and their settings come from, and `fairlane config` (S55)."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlane.cli.main import cli
from tests.cli.shell import CommandResult, Shell

BARE = "from fairlane import Fairlane\napp = Fairlane()\n"


def run(*words: str) -> CommandResult:
    """Run the command without the shell's --url."""
    result = CliRunner().invoke(cli, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return CommandResult(result.exit_code, result.stdout, result.stderr)


def toml(url: str, more: str = "") -> str:
    """Write a small configuration."""
    return f'[app]\nurl = "{url}"\n{more}'


@pytest.fixture
def nowhere(store: Shell) -> str:
    """A store that does not exist."""
    return f"sqlite:///{store.folder}/nowhere.db"


def test_the_store_is_found_in_file_environment_and_options_in_that_order(
    store: Shell, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wins over the one before; 4 is the exit code where the store does not exist."""
    store.write("fairlane.toml", toml(store.url))
    assert run("jobs", "count").code == 0
    monkeypatch.setenv("FAIRLANE_URL", nowhere)
    assert run("jobs", "count").code == 4
    assert run("jobs", "count", "--url", store.url).code == 0


def test_the_file_is_the_one_that_is_named(
    store: Shell, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By option, then by environment, then the usual one."""
    store.write("fairlane.toml", toml(nowhere))
    store.write("other.toml", toml(store.url))
    assert run("jobs", "count").code == 4
    monkeypatch.setenv("FAIRLANE_CONFIG", "other.toml")
    assert run("jobs", "count").code == 0
    assert run("jobs", "count", "--config", "fairlane.toml").code == 4
    missing = run("jobs", "count", "--config", "missing.toml")
    assert (missing.code, missing.out) == (5, "")
    assert "there is no such file" in missing.err


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "count"),
        ("doctor",),
        ("config", "show"),
        ("migrate",),
        ("pause", "queue", "default", "--note", "x"),
        ("enqueue", "late"),
        ("worker", "--burst", "--processes", "0"),
        ("up", "--processes", "0"),
        ("scheduler",),
        ("relay", "--sqlite", "x.db", "--once"),
    ],
)
def test_a_url_beside_one_in_code_is_refused(
    store: Shell, nowhere: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S55: the URL in code is never replaced, and a user who gives another must not work on the first."""
    # Without the refusal these would run until a signal: the test must fail then, not hang.
    monkeypatch.setattr("fairlane.worker.command.run_worker", lambda *_, **__: 0)
    monkeypatch.setattr("fairlane.duties.command.run_scheduler", lambda *_: 0)
    store.write("shop.py", f"from fairlane import Fairlane\napp = Fairlane({store.url!r})\n")
    ran = run("--app", "shop:app", "--url", nowhere, *words)
    assert (ran.code, ran.out) == (5, "")
    assert "url: the application sets its url in code, which cannot be replaced; drop --url" in ran.err
    assert nowhere not in ran.err


def test_the_same_url_as_in_code_is_no_contradiction(store: Shell) -> None:
    """Scripts name the store everywhere."""
    store.write("shop.py", f"from fairlane import Fairlane\napp = Fairlane({store.url!r})\n")
    assert run("--app", "shop:app", "--url", store.url, "jobs", "count").code == 0


def test_an_application_without_a_url_takes_that_of_the_command_line(store: Shell) -> None:
    """One application for every place that it is deployed to."""
    store.write("shop.py", BARE)
    assert run("--app", "shop:app", "--url", store.url, "jobs", "count").code == 0
    store.file.unlink()
    assert run("--app", "shop:app", "jobs", "count").code == 4


def test_the_application_may_be_named_in_the_configuration(store: Shell) -> None:
    """`import` in [app]; commands that need no tasks do not import it."""
    store.write("fairlane.toml", toml(store.url, 'import = "broken:app"\n'))
    store.write("broken.py", "raise RuntimeError('not today')\n")
    assert run("jobs", "count").code == 0
    ran = run("scheduler")
    assert ran.code == 5
    assert "broken cannot be imported: RuntimeError: not today" in ran.err


def test_the_configuration_is_logged_once(store: Shell, caplog: pytest.LogCaptureFixture) -> None:
    """Also where the file must be looked into first, to find out which application reads it."""
    caplog.set_level("INFO", "fairlane")
    store.write("shop_said_once.py", BARE)
    store.write("fairlane.toml", toml(store.url, 'import = "shop_said_once:app"\n'))
    assert run("worker", "--burst", "--processes", "0").code == 0
    events = [record.__dict__.get("event") for record in caplog.records]
    assert events.count("configuration") == 1


@pytest.mark.parametrize("words", ["worker --processes 0", "scheduler", "up --processes 0"])
def test_what_runs_tasks_must_know_the_application(store: Shell, words: str) -> None:
    """Exit code 5, and how to name it."""
    ran = store.run(*words.split())
    assert ran.code == 5
    assert "app: no application given; give MODULE:APP (as in shop.jobs:app), set FAIRLANE_APP" in ran.err


def test_priorities_are_shown_as_the_application_counts_them(store: Shell) -> None:
    """S19: 3 that goes before 7 is stored as -3, and shown as 3."""
    store.write("fairlane.toml", toml(store.url, 'priority = "lower_first"\n'))
    store.in_store(lambda world: world.enqueue(priority=-3))
    (job,) = run("jobs", "list", "--json").objects
    assert job["priority"] == 3


def test_config_shows_every_setting_and_where_it_comes_from(
    store: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File with line, environment, command line; the rest is by default."""
    store.write("fairlane.toml", '[app]\nurl = "${PLACE}"\n[worker]\nlease = "20s"\n')
    monkeypatch.setenv("PLACE", store.url)
    monkeypatch.setenv("FAIRLANE_WORKER__MAX_JOBS", "9")
    ran = run("config", "show", "--sources", "--changed")
    assert ran.code == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows[0] == ["KEY", "VALUE", "SOURCE"]
    assert ["app.url", "${PLACE}", "fairlane.toml:2"] in rows
    assert ["worker.lease", "20s", "fairlane.toml:4"] in rows
    assert ran.err == "Read from: default, then code, then fairlane.toml, then environment.\n"
    every = run("config", "show", "--sources", "--json").objects
    assert {"key": "app.tenancy", "value": "open", "source": "default"} in every
    assert len(every) > len(rows)


def test_config_shows_no_password(store: Shell) -> None:
    """A URL may hold one; a store that is not there needs not be opened to be shown."""
    ran = run("--url", "postgresql://ada:hunter2@db/shop", "config", "show", "--sources", "--changed")
    assert "hunter2" not in ran.out + ran.err


def test_a_mistake_in_the_file_is_named_with_its_line(store: Shell) -> None:
    """Exit code 5, for every command."""
    store.write("fairlane.toml", toml(store.url, "[worker]\nleese = 3\n"))
    ran = run("jobs", "count")
    assert ran.code == 5
    assert "leese" in ran.err
    assert "fairlane.toml:4" in ran.err
    assert Path("fairlane.toml").exists()
