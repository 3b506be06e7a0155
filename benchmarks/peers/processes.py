"""Start a driver's processes, talk to them, check them, stop them. Knows nothing of figures."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.peers.environments import ROOT
from benchmarks.peers.protocol import MARK, DriverInfo
from benchmarks.peers.roster import Peer

_STUCK_AFTER: Final = 30.0
_PREPARED_WITHIN: Final = 120.0
_ANSWERED_WITHIN: Final = 300.0
_LOOK_EVERY: Final = 0.001


class PeerError(Exception):
    """A run gave no figures; the message says why, if possible in the peer's own words."""


class PeerRun(msgspec.Struct, frozen=True, kw_only=True):
    """One peer in one run: its interpreter, its store, its folder, its slots (None: the peer's best)."""

    peer: Peer
    python: Path
    url: str
    folder: Path
    slots: int | None = None

    @property
    def marks(self) -> Path:
        """The file in which handlers leave their marks."""
        return self.folder / "marks"

    def command(self, verb: str) -> list[str]:
        """Return the command line of the driver."""
        return [str(self.python), "-m", "benchmarks.peers.drive", self.peer.driver, verb]

    def environment(self) -> dict[str, str]:
        """Return this process's environment with what the driver must know, without Fairlane's settings."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLANE_")}
        path = [str(ROOT), *([own["PYTHONPATH"]] if self.peer.is_ours and "PYTHONPATH" in own else [])]
        return {
            **own,
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONWARNINGS": "ignore",
            "PEER_URL": self.url,
            "PEER_MARKS": str(self.marks),
            "PEER_SLOTS": str(self.slots or self.peer.slots or ""),
            "PEER_QUEUES": str(self.peer.queues),
            "PEER_HANDLER": "plain" if self.peer.plain else "async",
            "PEER_BATCH": str(self.peer.batch or ""),
        }


def prepare(run: PeerRun) -> DriverInfo:
    """Let the driver create its tables; return its information."""
    try:
        said = subprocess.run(  # noqa: S603 (our own program)
            run.command("prepare"),
            env=run.environment(),
            cwd=run.folder,
            capture_output=True,
            text=True,
            timeout=_PREPARED_WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"its tables were not there after {_PREPARED_WITHIN:.0f} s") from error
    if said.returncode:
        raise PeerError(_end_of_log(said.stderr))
    return msgspec.json.decode(said.stdout.splitlines()[-1], type=DriverInfo)


Ask = Callable[..., dict[str, Any]]


@contextmanager
def producer(run: PeerRun) -> Generator[Ask]:
    """Run a process that enqueues on request, for the length of a block."""
    log = run.folder / "producer.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 (our own program)
            run.command("produce"),
            env=run.environment(),
            cwd=run.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    def ask(**asked: Any) -> dict[str, Any]:
        """Send one object, unless there is nothing to send, and wait for the answer."""
        assert process.stdin is not None  # noqa: S101 (for the type checker: it is a pipe)
        assert process.stdout is not None  # noqa: S101 (as above)
        if asked:
            with suppress(BrokenPipeError):  # it has ended; its log says why
                process.stdin.write(json.dumps(asked) + "\n")
                process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _ANSWERED_WITHIN)
        if not ready:
            raise PeerError(f"no answer to {asked or 'the start'} after {_ANSWERED_WITHIN:.0f} s")
        line = process.stdout.readline()
        if not line:
            raise PeerError(_end_of_log(log.read_text(errors="replace")))
        found: dict[str, Any] = json.loads(line)
        return found

    try:
        ask()  # the first line says that it is there
        yield ask
    finally:
        _end(process)


class Worker:
    """A peer's own worker with all its children, seen from outside."""

    def __init__(self, run: PeerRun, process: subprocess.Popen[bytes]) -> None:
        self._cast = run
        self._process = process

    def until(self, marks: int) -> None:
        """Wait for this many marks; `PeerError` if the worker ends or makes no progress."""
        size, moved_at = -1, time.monotonic()
        while size < marks * MARK.size:
            time.sleep(_LOOK_EVERY)
            found = self._cast.marks.stat().st_size if self._cast.marks.exists() else 0
            if found != size:
                size, moved_at = found, time.monotonic()
            elif self._process.poll() is not None:
                raise PeerError(f"the worker ended: {self._words()}")
            elif time.monotonic() - moved_at > _STUCK_AFTER:
                done = size // MARK.size
                raise PeerError(f"stuck after {done:,} of {marks:,} jobs: {self._words()}")

    def memory(self) -> float:
        """Return the memory that the worker and its children would free if they ended, in MB (PSS)."""
        found = 0.0
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(ProcessLookupError, FileNotFoundError, PermissionError, StopIteration):
                if os.getsid(int(folder.name)) == self._process.pid:
                    lines = (folder / "smaps_rollup").read_text(encoding="utf-8").splitlines()
                    found += int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024
        return found

    def _words(self) -> str:
        return _end_of_log((self._cast.folder / "worker.log").read_text(errors="replace"))


@contextmanager
def worker(run: PeerRun) -> Generator[Worker]:
    """Run the peer's worker for the length of a block."""
    with (run.folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 (our own program)
            run.command("worker"),
            env=run.environment(),
            cwd=run.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield Worker(run, process)
    finally:
        _end(process)


def _end(process: subprocess.Popen[Any]) -> None:
    """Kill a process and its session: their store is deleted, so there is nothing to wait for."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid := int(folder.name)) == process.pid:
                os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def _end_of_log(text: str) -> str:
    return " / ".join(text.strip().splitlines()[-3:])[-400:] or "it said nothing"
