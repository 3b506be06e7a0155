"""Give every test a desk of its own."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from fairlane.runtime.clock import MachineClock
from fairlane.store import opening
from fairlane.store.sqlite.store import open_url
from tests.cli.desk import Desk
from tests.oracle.clock import DrivenClock


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Desk]:
    """A folder without a store in it; every SQLite store that is opened has the test's clock."""
    clock = DrivenClock()
    monkeypatch.setitem(opening._openers, "sqlite", lambda url, _: open_url(url, clock))
    monkeypatch.setattr(MachineClock, "wall", lambda _: clock.now())
    monkeypatch.delenv("FAIRLANE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield Desk(tmp_path, clock)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def store(desk: Desk) -> Desk:
    """A desk with an empty store."""
    assert desk.run("migrate").code == 0
    return desk
