"""The command as a whole: help, options anywhere, errors, exit codes, what it loads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import fairlane
from fairlane.cli.exits import MEANING, Exit, exit_of
from fairlane.cli.main import COMMANDS, cli
from fairlane.model import errors
from tests.cli.shell import Shell
from tests.unmeasured import without_coverage

ROOT = Path(__file__).parents[2]


def test_every_command_is_there_and_says_in_one_line_what_it_does(shell: Shell) -> None:
    """`fairlane --help` is the table of contents."""
    shown = shell.run("--help").out
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        assert re.search(rf"^  {name} +[A-Z].*\.$", shown, re.MULTILINE), name
    assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(shell: Shell, name: str) -> None:
    """Also without a store, and with -h."""
    for word in ("--help", "-h"):
        ran = shell.run(name, word)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("Usage: ")


def test_an_unknown_command_is_a_usage_error(shell: Shell) -> None:
    """Exit code 2."""
    ran = shell.run("jbos")
    assert ran.code == 2
    assert "No such command 'jbos'" in ran.err


def test_shared_options_may_stand_before_and_after_the_command(store: Shell) -> None:
    """`--json` is typed last, more often than not; the last word counts."""
    before = store.run("--json", "jobs", "count")
    after = store.run("jobs", "count", "--json")
    between = store.run("jobs", "--json", "count")
    assert before == after == between
    assert before.out.startswith('{"delayed":0')
    assert store.run("jobs", "count", url="sqlite:////nowhere/x.db").code == 4
    assert store.run("jobs", "count", "--url", store.url, url="sqlite:////nowhere/x.db").code == 0


def test_the_store_may_come_from_the_environment(store: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """S55: the command line beats the environment."""
    monkeypatch.setenv("FAIRLANE_URL", "sqlite:////nowhere/x.db")
    assert store.run("jobs", "count").code == 0


def test_without_a_store_the_command_says_how_to_name_one(shell: Shell) -> None:
    """Looking makes no file in whatever folder the command was typed in."""
    warning = (
        f"Error: no store was given, and {shell.file} does not exist; give --url (as in sqlite:///shop.db),"
    )
    for words in ("jobs count", "pause queue default --note x", "enqueue late --tenant a"):
        result = CliRunner().invoke(cli, words.split())
        assert (result.exit_code, result.stdout) == (4, "")
        assert result.stderr.startswith(warning)
    assert f"{shell.file} does not exist" in CliRunner().invoke(cli, ["doctor"]).stdout
    assert list(shell.folder.iterdir()) == []


def test_without_a_url_the_store_is_a_file_here_and_the_command_says_so(shell: Shell) -> None:
    """On standard error, so that answers stay what they are; programs see it in `config show`."""
    warning = f"No store given; using {shell.file}.\n"
    made = CliRunner().invoke(cli, ["migrate"])
    assert (made.exit_code, made.stderr, shell.file.exists()) == (0, warning, True)
    counted = CliRunner().invoke(cli, ["jobs", "count"])
    assert (counted.exit_code, counted.stderr) == (0, warning)
    assert CliRunner().invoke(cli, ["jobs", "count", "--json"]).stderr == ""
    shown = CliRunner().invoke(cli, ["config", "show", "--sources", "--json"]).stdout
    assert f'{{"key":"app.url","value":"sqlite:///{shell.file}","source":"default"}}' in shown


def test_a_missing_file_is_not_made_by_looking_at_it(shell: Shell) -> None:
    """A typing error in a URL must not become an empty store."""
    ran = shell.run("jobs", "list")
    assert ran == (4, "", f"Error: there is no store at {shell.file}; `fairlane migrate` creates one\n")
    assert list(shell.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("carrier-pigeon://user:pw-7d1f@loft", 5, "no store is known for scheme 'carrier-pigeon'"),
        ("nonsense", 5, "it has no scheme"),
        ("sqlite://", 5, "it names no file"),
    ],
)
def test_a_bad_url_is_refused_and_never_repeated(shell: Shell, url: str, code: int, message: str) -> None:
    """It may hold a password."""
    ran = shell.run("jobs", "list", url=url)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert "pw-7d1f" not in ran.err


def test_another_applications_file_is_refused(shell: Shell) -> None:
    """Exit code 4, in one sentence."""
    shell.file.write_text("not a database at all, but long enough to look at, " * 40)
    ran = shell.run("jobs", "list")
    assert (ran.code, ran.out) == (4, "")
    assert "is damaged or no SQLite file" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list", "--json", "--limit", "none"),
        ("jobs", "list", "--limit", "none", "--json"),
        ("jobs", "list", "--fly", "--json"),
        ("jobs", "fly", "--json"),
        ("fly", "--json"),
    ],
)
def test_a_usage_error_is_an_object_for_programs(shell: Shell, arguments: tuple[str, ...]) -> None:
    """On standard error, as all errors are; also if what is wrong comes before --json."""
    ran = shell.run(*arguments)
    assert ran.out == ""
    assert (bool(ran.told["message"]), ran.told["exit"]) == (True, 2)


def test_debug_shows_where_an_error_comes_from(shell: Shell) -> None:
    """The exception itself is let through, with its traceback."""
    with pytest.raises(errors.StoreUnavailable):
        shell.run("--debug", "jobs", "list")


def test_every_exit_code_has_a_meaning_and_its_own_number() -> None:
    """The table of the documentation is made of these."""
    assert set(MEANING) == set(Exit)
    assert len({int(code) for code in Exit}) == len(Exit)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 5),
        (errors.StoreUnavailable("x"), 4),
        (errors.StoreBusy("x"), 4),
        (errors.SchemaTooOld("x"), 4),
        (errors.Unsupported("x"), 4),
        (errors.EnqueueUnknown("x"), 6),
        (errors.JobNotFound("x"), 3),
        (errors.UnknownTask([]), 3),
        (errors.UnknownTenant([]), 3),
        (errors.InvalidJob([]), 1),
        (errors.QueueFull("q", 1, 1), 1),
        (errors.Closed("queue q", "x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error: errors.FairlaneError, code: int) -> None:
    """Scripts depend on these numbers."""
    assert exit_of(error) == code


def test_version_is_that_of_the_package(shell: Shell) -> None:
    """One line for people, the libraries too for programs."""
    assert shell.output_of("version") == f"fairlane {version('fairlane')}\n"
    (told,) = shell.run("version", "--json").objects
    assert list(told) == ["fairlane", "python", "sqlite"]


# ── what it costs to start ───────────────────────────────────────────────────

HEAVY = "msgspec asyncio apsw rich sqlite3 fairlane.app fairlane.store"
LOADED = f"""
import sys
from fairlane.cli.main import cli
try:
    cli.main(["version"])
except SystemExit:
    print([name for name in {HEAVY.split()!r} if name in sys.modules])
"""


def test_version_loads_nothing_that_takes_long() -> None:
    """It answers fast; a heavy import at the top of a module would fail here."""
    run = subprocess.run(  # noqa: S603 (our own text)
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, env=without_coverage()
    )
    assert run.stdout.splitlines()[-1] == "[]"


def test_a_name_that_is_not_public_is_not_there() -> None:
    """Names are loaded on first use; an unknown name raises AttributeError as usual."""
    with pytest.raises(AttributeError, match="module 'fairlane' has no attribute 'Nonsense'"):
        fairlane.Nonsense  # type: ignore[attr-defined]  # noqa: B018 (it is about that)


def test_the_command_is_declared_in_the_package() -> None:
    """`fairlane` on the path is this command."""
    assert 'fairlane = "fairlane.cli.main:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert os.access(ROOT / "src/fairlane/__main__.py", os.R_OK)
