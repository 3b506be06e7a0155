"""SIGHUP replaces each process without a gap; jobs are neither lost nor run twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairlane import State
from fairlane.store.opening import open_store
from tests.campaigns.places import opened
from tests.stopped import stop_between_writes
from tests.stores import MEMORY
from tests.supervisor.conftest import APPLICATION, Shop, wait_for


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_a_rolling_restart_under_load_runs_each_job_once(store: str) -> None:
    """Two processes, both replaced while jobs run and wait."""
    with open_folder() as folder, opened(store, folder) as place:
        asyncio.run(migrated(place.url))
        shop = Shop(folder, place.url)
        try:
            command = shop.start("--processes", "2")
            before = set(command.serving(2))
            jobs: list[Any] = []

            def is_fed(event: str) -> bool:
                """Keep jobs waiting until it has logged an event."""
                if len(jobs) < len(shop.notes()) + 12:
                    jobs.append(shop.nap.enqueue(0.2))
                return bool(command.events(event)) and len(shop.notes()) >= 4

            wait_for(lambda: is_fed("process_serves"))
            command.signal(signal.SIGHUP)
            wait_for(lambda: is_fed("rolling_restart_done"), lambda: "".join(command.lines))
            assert not before & command.pids()
            assert len(command.pids()) == 2
            wait_for(lambda: all(job.refresh().state is State.SUCCEEDED for job in jobs))
            assert sorted(shop.starts()) == sorted(str(job.id) for job in jobs)
            assert set(shop.starts().values()) == {1}
            assert {pid for _, pid in shop.notes()} - before, "no successor has run anything"
            command.signal(signal.SIGTERM)
            assert command.end() == 0
        finally:
            shop.close()


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that a server may enter which runs as somebody else."""
    with TemporaryDirectory(dir=MEMORY) as name:
        Path(name).chmod(0o755)
        yield Path(name)


async def migrated(url: str) -> None:
    """Create what the store needs."""
    store = open_store(url)
    await store.upkeep.migrate()
    await store.upkeep.aclose()


def test_a_successor_claims_only_when_its_predecessor_has_stopped_claiming(shop: Shop) -> None:
    """It is registered first, then the other drains, then it serves; meanwhile both run jobs."""
    command = shop.start(SHOP_SLOTS="1")
    (old,) = command.serving(1)
    long = shop.nap.enqueue(4.0)
    wait_for(lambda: len(shop.notes()) == 1)
    waiting = shop.nap.enqueue(0.0)
    command.signal(signal.SIGHUP)
    new = command.serving(2)[-1]
    wait_for(lambda: waiting.refresh().state is State.SUCCEEDED)
    assert [pid for _, pid in shop.notes()] == [old, new]
    assert long.refresh().state is State.RUNNING, "the predecessor has not gone on"
    command.until("rolling_restart_done")
    assert long.refresh().state is State.SUCCEEDED
    steps = [(new, "worker_started"), (old, "worker_stopping"), (new, "process_serves")]
    lines = [_line(command.lines, pid, event) for pid, event in steps]
    assert lines == sorted(lines)


def test_a_successor_waits_for_a_predecessor_that_does_not_answer(shop: Shop) -> None:
    """It may still claim; only when it has said that it does not, or is gone, does the other."""
    command = shop.start()
    (old,) = command.serving(1)
    stop_between_writes(old, shop.folder / "shop.db")
    try:
        command.signal(signal.SIGHUP)
        command.until("worker_started", 2)
        job = shop.nap.enqueue(0.0)
        with pytest.raises(AssertionError):
            wait_for(lambda: bool(shop.notes()), seconds=3)
    finally:
        os.kill(old, signal.SIGCONT)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)
    assert command.serving(2)[-1] != old


def _line(lines: list[str], pid: int, event: str) -> int:
    """Return the line of an event of a process, by its pid or its worker's name."""
    return next(
        at
        for at, line in enumerate(lines)
        if f'"{event}"' in line and (f"-{pid}-" in line or f'"pid": {pid}' in line)
    )


def test_a_successor_that_cannot_start_leaves_its_predecessor_at_work(shop: Shop) -> None:
    """The restart ends there, the log says so, and the next one works."""
    command = shop.start("--processes", "2")
    before = set(command.serving(2))
    shop.write("raise RuntimeError('not today')\n")
    command.signal(signal.SIGHUP)
    (failed,) = command.until("successor_failed")
    assert (failed["code"], failed["level"]) == (5, "error")
    assert "its predecessor works on" in failed["message"]
    job = shop.nap.enqueue(0.0)
    wait_for(lambda: job.refresh().state is State.SUCCEEDED)
    assert command.pids() == before
    shop.write(APPLICATION)
    command.signal(signal.SIGHUP)
    command.until("rolling_restart_done")
    assert not before & command.pids()


def test_a_second_hangup_restarts_all_of_them_again(shop: Shop) -> None:
    """The code may have changed after the first ones were replaced."""
    command = shop.start("--processes", "2")
    command.serving(2)
    command.signal(signal.SIGHUP)
    command.until("successor_started")
    command.signal(signal.SIGHUP)
    command.until("rolling_restart_done", 2)
    assert len(command.serving(6)) == 6


def test_a_stop_ends_a_rolling_restart(shop: Shop) -> None:
    """The successor that was about to start goes too."""
    command = shop.start()
    command.serving(1)
    command.signal(signal.SIGHUP)
    command.until("successor_started")
    command.signal(signal.SIGTERM)
    assert command.end() == 0
    assert not command.pids()
    assert not command.events("rolling_restart_done")
