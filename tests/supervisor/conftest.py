"""Supervisors with real worker processes, each ended with its test, whatever becomes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from fairlane import Fairlane, Task
from tests.campaigns.field import is_alive
from tests.stores import MEMORY

PATIENCE = 90.0

APPLICATION = '''
import asyncio, os, signal
from pathlib import Path
from fairlane import Backoff, Context, Fairlane, Lane

SLOTS = int(os.environ.get("SHOP_SLOTS", "4"))
app = Fairlane(os.environ["SHOP_URL"], lanes=[Lane("main", SLOTS, ["default"], headroom=0)])
HERE = Path(os.environ["SHOP_FOLDER"])

def note(word, ctx):
    """Append one line by one write."""
    with open(HERE / "notes", "ab", buffering=0) as file:
        file.write(f"{word} {ctx.job.id} {os.getpid()}\\n".encode())

@app.task(name="nap", retry=Backoff.delays(0.01), max_attempts=20)
async def nap(ctx: Context, seconds: float) -> None:
    note("start", ctx)
    await asyncio.sleep(seconds)
    note("end", ctx)

@app.task(name="kill", max_attempts=1)
async def kill(ctx: Context, number: int) -> None:
    note("start", ctx)
    os.kill(os.getpid(), number)
    await asyncio.sleep(60)

@app.task(name="deaf", max_attempts=1)
def deaf(ctx: Context) -> None:
    """Hold the interpreter, so that the process hears nothing."""
    import ctypes
    note("start", ctx)
    ctypes.PyDLL(None).usleep(60_000_000)

@app.task(name="big")
async def big(ctx: Context) -> int:
    app.held = b"x" * 200_000_000
    return len(app.held)
'''


class Supervised:
    """One `fairlane worker` command with its log, as JSON."""

    def __init__(self, site: Shop, *words: str, **environ: str) -> None:
        """Start it in the site's folder."""
        command = [sys.executable, "-m", "fairlane", "worker", "shop:app", "--log", "json", *words]
        self.popen = subprocess.Popen(  # noqa: S603 (our own program)
            command,
            cwd=site.folder,
            env={**os.environ, **site.environ, **environ},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        self.lines.extend(iter(self.popen.stderr.readline, ""))

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what it has logged so far under this name."""
        found = (msgspec.json.decode(line) for line in tuple(self.lines) if line.startswith("{"))
        return [one for one in found if one.get("event") == name]

    def until(self, name: str, number: int = 1) -> list[dict[str, Any]]:
        """Wait until it has logged so many of an event; return them."""
        wait_for(lambda: len(self.events(name)) >= number, lambda: f"{name}:\n" + "".join(self.lines))
        return self.events(name)

    def serving(self, number: int) -> list[int]:
        """Wait until so many processes have begun to serve; return their pids."""
        return [one["pid"] for one in self.until("process_serves", number)]

    def pids(self) -> set[int]:
        """Return its worker processes that live."""
        started = self.events("process_started") + self.events("successor_started")
        return {one["pid"] for one in started if is_alive(one["pid"])}

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor."""
        self.popen.send_signal(number)

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        code = self.popen.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        """Leave nothing running."""
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._reader.join(PATIENCE)
        assert self.popen.stderr is not None
        self.popen.stderr.close()


def wait_for(is_so: Callable[[], bool], shown: Callable[[], str] = str, seconds: float = PATIENCE) -> None:
    """Wait until a fact is true."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.01)


class Shop:
    """A folder with an application, a store, and commands that run it."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        """Write the application; the store is a file beside it unless a URL says otherwise."""
        self.folder = folder
        self.url = url or f"sqlite:///{folder}/shop.db"
        self.environ = {"SHOP_URL": self.url, "SHOP_FOLDER": str(folder)}
        self.commands: list[Supervised] = []
        self.write(APPLICATION)
        self.app = Fairlane(self.url)
        self.nap: Any = self._task("nap")
        self.kill: Any = self._task("kill")
        self.deaf: Any = self._task("deaf")
        self.big: Any = self._task("big")

    def _task(self, name: str) -> Any:
        def declared(value: float = 0) -> None:
            """Stand for the handler of the other process."""

        def bare() -> None:
            """Stand for a handler without arguments."""

        async def nap(seconds: float) -> None: ...
        async def kill(number: int) -> None: ...

        handlers: dict[str, Any] = {"nap": nap, "kill": kill, "deaf": bare, "big": bare}
        task: Task[..., Any] = self.app.task(name=name)(handlers.get(name, declared))
        return task

    def write(self, text: str) -> None:
        """Write the application's module."""
        (self.folder / "shop.py").write_text(text, encoding="utf-8")

    def start(self, *words: str, **environ: str) -> Supervised:
        """Start a command."""
        self.commands.append(Supervised(self, *words, **environ))
        return self.commands[-1]

    def notes(self, word: str = "start") -> list[tuple[str, int]]:
        """Return the job and the process of each line that handlers have written."""
        path = self.folder / "notes"
        lines = path.read_text("ascii").splitlines() if path.exists() else []
        found = [line.split() for line in lines]
        return [(job, int(pid)) for noted, job, pid in found if noted == word]

    def starts(self) -> Counter[str]:
        """Return how often each job has started."""
        return Counter(job for job, _ in self.notes())

    def close(self) -> None:
        """Leave nothing running."""
        for command in self.commands:
            command.close()
        self.app.close()


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A shop on a file."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        made = Shop(Path(folder))
        yield made
        made.close()
