"""Children that cannot be started or leave a mess: nothing of them is left in the worker."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest

from fairlane.worker.children.child_process import ChildProcess
from fairlane.worker.children.guardian_link import GuardianLink
from fairlane.worker.children.launch import Launched, launch_guarded
from fairlane.worker.children.protocol import Setup
from tests.worker.children import jobs
from tests.worker.children.conftest import Place, descendants, is_guardian, until


def _open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 (names alone)


async def test_a_child_whose_guardian_cannot_be_started_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No process, no descriptor, and no number that the guardian would kill later."""
    guardian = GuardianLink()
    monkeypatch.setattr(guardian, "_start", _cannot)
    before, files = set(descendants()), _open_files()
    for _ in range(3):
        with pytest.raises(OSError, match="no more processes"):
            launch_guarded(guardian)
    assert set(descendants()) == before
    assert _open_files() == files
    assert not guardian._groups


def _cannot() -> None:
    raise BlockingIOError(11, "no more processes")


async def test_a_guardian_that_cannot_be_replaced_at_once_is_replaced_later(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """The worker goes on meanwhile."""
    async with place.working() as worker:
        await place.result(jobs.add.bind(1, 2))
        link = worker._parts.executor.children._guardian  # type: ignore[union-attr]
        (guardian,) = [pid for pid in descendants() if is_guardian(pid)]
        with monkeypatch.context() as change:
            change.setattr("sys.executable", "/nowhere/python")
            os.kill(guardian, signal.SIGKILL)
            await until(lambda: guardian not in descendants())
            link.check()
            assert not [pid for pid in descendants() if is_guardian(pid)]
        await until(lambda: bool([pid for pid in descendants() if is_guardian(pid)]))
        assert await place.result(jobs.add.bind(1, 2)) == 3


class _Listener:
    """Hears the end of a child."""

    def __init__(self) -> None:
        """Begin with none."""
        self.code: int | None = None

    def ready(self, child: ChildProcess) -> None:
        """Do nothing: it never is."""

    def job_ended(self, *_: object) -> None:
        """Do nothing: it runs none."""

    def forget_group(self, group: int) -> None:
        """Do nothing: nobody watches."""

    def died(self, _child: ChildProcess, _attempt: Any, code: int) -> None:
        """Note how it ended."""
        self.code = code


async def test_a_process_that_goes_on_writing_for_a_dead_child_does_not_hold_up_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fork of its handler may have left its group, and its connection never be empty."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    reading, writing = os.pipe()
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    process = subprocess.Popen(command, start_new_session=True)  # noqa: ASYNC220, S603 (as the pool does)
    listener = _Listener()
    child = ChildProcess(
        Launched(process, ours, reading), Setup(worker="w", application="a", path=()), listener, 0
    )
    reads = 0

    def read() -> bool:
        nonlocal reads
        reads += 1
        assert reads < 100_000, "it reads for ever"
        return True

    monkeypatch.setattr(child, "_read", read)
    await until(lambda: listener.code == 3)
    theirs.close()
    os.close(writing)


class _Broken(logging.Handler):
    """A log handler of an application, with a defect."""

    records = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Raise."""
        self.records += 1
        raise RuntimeError(record.name)


async def test_a_log_handler_that_raises_loses_nothing_that_a_child_has_sent(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The record and the end of the attempt may come together."""
    caplog.set_level(logging.INFO, "fairlane.task")
    broken, logger = _Broken(), logging.getLogger("fairlane.task")
    logger.addHandler(broken)
    try:
        async with place.working():
            stored = await place.run(*[jobs.whoami.bind() for _ in range(5)])
            assert {job.state.value for job in stored} == {"succeeded"}
    finally:
        logger.removeHandler(broken)
    assert broken.records
