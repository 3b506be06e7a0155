"""Processes that a test starts end with it, whatever becomes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.lab import ledger
from tests.processes.program import make_app
from tests.stores import MEMORY

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 90.0


class Process:
    """One running program; its log lines are read as they come."""

    made = 0

    def __init__(self, role: str, place: Path | str, folder: Path, settings: dict[str, float]) -> None:
        """Start it on a store; its record is in the folder."""
        Process.made += 1
        self.record = folder / f"{role}-{Process.made}.jsonl"
        self._seen: list[ledger.Record] = []
        self._read_to = 0
        self.popen = subprocess.Popen(  # noqa: S603 (our own program)
            self.command(role, str(place)),
            cwd=ROOT,
            env={**os.environ, "PROGRAM_SETTINGS": json.dumps(settings), **self.surroundings(str(place))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def command(self, role: str, place: str) -> tuple[str, ...]:
        """Say what is run."""
        return (sys.executable, "-m", "tests.processes.program", role, place, str(self.record))

    def surroundings(self, place: str) -> dict[str, str]:
        """Say what it finds in its environment besides our own."""
        return {}

    def _read(self) -> None:
        assert self.popen.stderr is not None
        self.lines.extend(iter(self.popen.stderr.readline, ""))

    def events(self) -> list[dict[str, Any]]:
        """Return the log records so far; a line that is no record is an error that the process died of."""
        return [json.loads(line) for line in tuple(self.lines) if line.startswith("{")]

    def has_said(self, event: str) -> bool:
        """Whether it has logged an event so far."""
        return any(one.get("event") == event for one in self.events())

    def until(self, event: str) -> dict[str, Any]:
        """Wait until the process has logged an event."""
        wait_for(lambda: self.has_said(event), lambda: "".join(self.lines))
        return next(one for one in self.events() if one.get("event") == event)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        code = self.popen.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def seen(self) -> list[ledger.Record]:
        """Return what it has written down, in whole lines, so far."""
        if self.record.exists():
            with self.record.open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read_to += len(whole)
            self._seen += ledger.decode_lines(whole.splitlines(keepends=True))
        return self._seen

    def starts(self) -> list[ledger.Started]:
        """Return the handlers that began in it."""
        return [one for one in self.seen() if isinstance(one, ledger.Started)]

    def stop(self) -> None:
        """Make sure that it is gone."""
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        self._reader.join(PATIENCE)
        assert self.popen.stderr is not None
        self.popen.stderr.close()


def wait_for(is_so: Callable[[], bool], shown: Callable[[], str] = str) -> None:
    """Wait until a fact is true."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.01)


class Site:
    """A file, an application on it in this process, and other processes on it."""

    def __init__(self, folder: Path) -> None:
        """Begin with an empty file."""
        self.file = folder / "fairlane.db"
        self.app: Fairlane = make_app(self.file)
        self.processes: list[Process] = []

    def start(self, role: str = "worker", **settings: Any) -> Process:
        """Start a process; it is on its own from now on."""
        settings = {"lease": 2, "renew_every": 0.3, **settings}
        self.processes.append(Process(role, self.file, self.file.parent, settings))
        return self.processes[-1]

    def enqueue(self, task: str, *arguments: Any, tenant: str = "acme") -> Any:
        """Enqueue one job."""
        declared = self.app.client.registry.find(task)
        assert declared is not None
        from fairlane import Task  # noqa: PLC0415 (a task of a registered name)

        return Task(declared, self.app).using(tenant=tenant).enqueue(*arguments)

    def close(self) -> None:
        """Leave nothing running."""
        for process in self.processes:
            process.stop()
        self.app.close()


@pytest.fixture
def site() -> Iterator[Site]:
    """A place for processes, empty."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = Site(Path(folder))
        yield made
        made.close()
