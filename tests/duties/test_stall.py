"""Duties whose loop stands still: noticed, dumped, taken over by another process (S127)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from logging import getLogger
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.app.settings import settings_of
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties import duties
from fairlane.duties.command import _serve
from fairlane.duties.duties import Duties
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.loop_guard import LOOKS, LoopGuard
from fairlane.runtime.outage import StoreOutage
from fairlane.store.contract import Store
from fairlane.store.opening import open_store
from fairlane.worker.worker import WorkerRuntime
from tests.acceptance.working import until

QUICK = WorkerSettings(lease=SECOND, renew_every=SECOND // 10)


async def test_a_stall_is_told_once_and_so_is_its_end() -> None:
    """S127: by counting looks, so that a process that was stopped for a while is not to blame."""
    told: list[str] = []
    guard = LoopGuard(10 * SECOND, lambda: told.append("stalled"), lambda: told.append("resumed"))
    for _ in range(3 * LOOKS):
        assert await guard.turn() == SECOND
        guard.look()
    for _ in range(LOOKS - 1):
        guard.look()
    assert told == []
    for _ in range(2 * LOOKS):
        guard.look()
    assert told == ["stalled"]
    await guard.turn()
    guard.look()
    guard.look()
    assert told == ["stalled", "resumed"]
    for _ in range(LOOKS):
        guard.look()
    assert told == ["stalled", "resumed", "stalled"]


class Stalls(logging.Handler):
    """What was logged of stalls, in whatever thread."""

    def __init__(self) -> None:
        """Hear of it from now on."""
        super().__init__()
        self.records: list[Any] = []
        self.heard = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is about a stall."""
        if record.__dict__.get("event") in {"duties_stalled", "duties_resumed"}:
            self.records.append(record)
            if "in stand_still" in record.__dict__.get("stacks", ""):
                self.heard.set()


@pytest.fixture
def stalls() -> Iterator[Stalls]:
    """Hear of stalls during a test."""
    heard, log = Stalls(), getLogger("fairlane.duties")
    log.addHandler(heard)
    yield heard
    log.removeHandler(heard)


async def other_leads(url: str) -> None:
    """Let another process do the duties of this store, and wait until it leads."""
    store = open_store(url)
    outage = StoreOutage(getLogger("fairlane.duties"), "other", lambda: None)
    other = Duties("other", lambda: store, MachineClock(), settings_of(), QUICK, outage)
    other._duties = ()
    running = asyncio.ensure_future(other.run())
    try:
        await until(lambda: other._election.is_leader)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await store.upkeep.aclose()


def blocking(url: str, stalls: Stalls, over: threading.Event) -> Any:
    """Return a duty that blocks its loop until the stall is logged, and another process leads."""

    def stand_still() -> bool:
        if not stalls.heard.wait(20):  # a machine that is busy may have told of a stall just before
            return False
        thread = threading.Thread(target=lambda: asyncio.run(other_leads(url)))
        thread.start()
        thread.join()
        return True

    async def blocked(store: Store) -> Micros:
        if not over.is_set() and stand_still():
            over.set()
        return SECOND // 20

    return lambda *_: (blocked,)


@pytest.mark.parametrize("role", ["scheduler", "worker"])
async def test_duties_that_stand_still_are_dumped_and_taken_over(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stalls: Stalls
) -> None:
    """S127: the log has the stacks, with what blocks; another one leads once the lease has run out."""
    url, over = f"sqlite:///{tmp_path}/jobs.db", threading.Event()
    monkeypatch.setattr(duties, "all_duties", blocking(url, stalls, over))
    app = Fairlane(url, config={"worker": {"lease": 1, "renew_every": 0.1, "shutdown_deadline": 0}})
    works: Any = _serve(app, None) if role == "scheduler" else WorkerRuntime(app).run()
    running = asyncio.ensure_future(works)
    try:
        await until(over.is_set)
        await until(lambda: stalls.records[-1].event == "duties_resumed")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await app.aclose()
    stalled = next(one for one in stalls.records if "in stand_still" in one.__dict__.get("stacks", ""))
    resumed = stalls.records[-1]
    assert stalled.levelno == logging.CRITICAL
    assert "stands still: the loop of its duties has not turned for" in stalled.getMessage()
    assert "in stand_still" in stalled.stacks
    assert "in blocked" in stalled.stacks
    assert "task of the loop of the duties" in stalled.stacks
    assert resumed.getMessage() == f"{stalled.worker} goes on: the loop of its duties turns again"
