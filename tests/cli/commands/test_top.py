"""`fairlane top`: what it needs, what it refuses, and a real terminal."""

from __future__ import annotations

import pytest

from fairlane.cli.commands import top
from tests.cli.shell import Shell
from tests.cli.test_terminal import run


def test_without_textual_it_says_what_to_install(store: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the exit code of a wrong set-up."""
    monkeypatch.setattr(top, "find_spec", lambda _: None)
    ended = store.run("top")
    assert ended.code == 5
    assert (
        "it needs textual, which is not installed; install it with: pip install 'fairlane[top]'" in ended.err
    )


def test_without_a_terminal_it_names_what_prints_once(store: Shell) -> None:
    """A script wants one answer."""
    ended = store.run("top")
    assert ended.code == 2
    assert "it needs a terminal; `fairlane queues`, `tenants`, `workers` and `jobs` print once" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--every", "100ms"], "at least 500ms"), (["slots"], "'slots' is not one of")]
)
def test_what_it_cannot_do_is_refused(store: Shell, arguments: list[str], words: str) -> None:
    """Before anything is drawn."""
    ended = store.run("top", *arguments)
    assert (ended.code, words in ended.err) == (2, True)


def test_on_a_terminal_it_draws_until_q(store: Shell) -> None:
    """A process of its own, which leaves the terminal as it was."""
    store.in_store(lambda world: world.enqueue())
    code, written = run(store, "top", typed="q", LINES="24")
    assert code == 0
    assert "\x1b[?1049h" in written  # the alternate screen
    assert "\x1b[?1049l" in written


def test_a_store_that_is_not_there_is_an_error_before_anything_is_drawn(shell: Shell) -> None:
    """As for every command."""
    code, written = run(shell, "top")
    assert code == 4
    assert "there is no store at" in written
