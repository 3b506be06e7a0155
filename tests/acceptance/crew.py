"""Real worker processes on one folder, and what they wrote down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from fairlane import Fairlane, Job, Task
from fairlane.model.scope import Scope
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.registry import WorkersRequest
from tests.acceptance.service import BRIEF, GO, LEDGER, PLACE, application
from tests.acceptance.working import until

ROOT: Final = Path(__file__).parents[2]


def task_of(app: Fairlane, name: str) -> Task[..., Any]:
    """Return a task of the service."""
    declared = app.client.registry.find(name)
    assert declared is not None
    return Task(declared, app)


class Crew:
    """A folder, a store, the application that enqueues into it, and the processes that work for it."""

    def __init__(self, place: str, folder: Path) -> None:
        """Start nobody yet. `place` is the store's URL."""
        self.place = place
        self.folder = folder
        (folder / PLACE).write_text(place, "utf-8")
        self.app = application(folder)
        self.processes: list[subprocess.Popen[bytes]] = []

    async def enqueue(self, name: str, *numbers: int, **options: Any) -> list[Job[Any]]:
        """Enqueue jobs of a task, one for each number."""
        task = task_of(self.app, name).using(**options)
        return await self.app.aenqueue_many([task.bind(number) for number in numbers])

    def start(self, role: str = "worker") -> subprocess.Popen[bytes]:
        """Start one process by its command."""
        # Without a supervisor: the process that is started is the worker itself, and a kill is its own.
        bare = ("--processes", "0") if role == "worker" else ()
        command = (sys.executable, "-m", "fairlane", role, "tests.acceptance.service:app", *bare)
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = subprocess.Popen(  # noqa: S603 (our own program)
            command, cwd=self.folder, env={**os.environ, "PYTHONPATH": paths}
        )
        self.processes.append(process)
        return process

    async def join(self) -> subprocess.Popen[bytes]:
        """Start a worker and wait until it is listed: from then on it hears signals."""
        process = self.start()
        registry = self.app.client.store.registry

        async def is_listed() -> bool:
            views = await registry.workers(WorkersRequest(scope=Scope.all()))
            return any(view.record.pid == process.pid for view in views)

        await until(is_listed)
        return process

    async def lead(self) -> None:
        """Start a process that does the duties alone, and wait until it leads; leases are short from now on.

        A worker that is killed then leaves no lead behind, whose lease the others would have to wait for.
        """
        (self.folder / BRIEF).touch()
        self.start("scheduler")
        upkeep = self.app.client.store.upkeep

        async def leads() -> bool:
            seen = await upkeep.inspect(InspectRequest(scope=Scope.all()))
            return any(lead.worker.startswith("scheduler") for lead in seen.leads)

        await until(leads)

    def lines(self) -> list[tuple[str, int, int]]:
        """Read the ledger: what happened, to which number, in which process."""
        ledger = self.folder / LEDGER
        if not ledger.exists():
            return []
        # A line without its end is still being written.
        whole = ledger.read_text("utf-8").rpartition("\n")[0].splitlines()
        return [(word, int(number), int(pid)) for word, number, pid in map(str.split, whole)]

    def count(self, word: str) -> int:
        """Count how often something happened."""
        return sum(one == word for one, _, _ in self.lines())

    def has_begun(self, number: int) -> bool:
        """Whether so many jobs have begun."""
        return self.count("began") >= number

    async def ended(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the end of a process and return its exit code."""
        await until(lambda: process.poll() is not None)
        return process.wait()

    def times(self, word: str) -> Counter[int]:
        """Count how often something happened to each number."""
        return Counter(number for one, number, _ in self.lines() if one == word)

    def go(self) -> None:
        """Let every `hold` end, now and afterwards."""
        (self.folder / GO).touch()

    def end(self) -> None:
        """Make sure that nobody is left."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
