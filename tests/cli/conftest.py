"""Provide a shell for each test."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from fairlane.runtime.clock import MachineClock
from fairlane.store import opening
from fairlane.store.sqlite.store import open_url
from tests.cli.shell import Shell
from tests.oracle.clock import DrivenClock


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Shell]:
    """A folder without a store in it; every SQLite store that is opened has the test's clock."""
    clock = DrivenClock()
    monkeypatch.setitem(opening._openers, "sqlite", lambda url, _: open_url(url, clock))
    monkeypatch.setattr(MachineClock, "wall", lambda _: clock.now())
    monkeypatch.delenv("FAIRLANE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield Shell(tmp_path, clock)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def store(shell: Shell) -> Shell:
    """A shell with an empty store."""
    assert shell.run("migrate").code == 0
    return shell
