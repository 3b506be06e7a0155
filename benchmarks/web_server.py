"""A `fairlane web` in a process of its own, and a client that knows its token."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Final, NamedTuple

from benchmarks.web_app import URL, make_app

HOST: Final = "127.0.0.1"


class WebServer(NamedTuple):
    """A running server: its port, its process, and how long it took to answer."""

    port: int
    pid: int
    token: str

    def client(self) -> WebClient:
        """Return a client with a connection of its own."""
        return WebClient(self.port, self.token)


class WebClient:
    """One connection that is kept open, as a browser's."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=120)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> tuple[int, bytes]:
        """Ask once; return the status and the whole body."""
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def timed(self, path: str) -> float:
        """Return how many milliseconds an answer takes. Anything but 200 ends the measurement."""
        before = time.perf_counter()
        status, body = self.get(path)
        took = 1e3 * (time.perf_counter() - before)
        if status != 200:  # noqa: PLR2004 (as HTTP says)
            message = f"{path} answered {status}: {body[:300]!r}"
            raise RuntimeError(message)
        return took

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def web_server(url: str) -> Iterator[WebServer]:
    """Serve the dashboard of a store on a free port until the end of the block."""
    with closing(make_app(url)) as app:
        token = app.tokens.create(f"bench-{time.time_ns()}", role="admin").secret
    process = start("web", "--port", "0", url=url)
    try:
        yield WebServer(port_of(process), process.pid, token)
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def worker(url: str) -> Iterator[None]:
    """Run a worker with duties until the end of the block; it serves when the block begins."""
    process = start("worker", url=url)
    try:
        _lines_until(process, "serves")
        threading.Thread(target=process.communicate).start()  # so that it can go on telling
        yield
    finally:
        process.terminate()
        process.wait()


def start(role: str, *options: str, url: str) -> subprocess.Popen[str]:
    """Start `fairlane ROLE` for the application; it tells on its error output what it does."""
    command = [sys.executable, "-m", "fairlane", role, "benchmarks.web_app:app", *options]
    environment = {**os.environ, URL: url}
    return subprocess.Popen(  # noqa: S603 (our own program)
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def port_of(process: subprocess.Popen[str]) -> int:
    """Wait until a web process tells where it listens, and return the port."""
    line = _lines_until(process, "is served at http://")
    return int(line.rpartition("http://")[2].strip().rstrip("/").rpartition(":")[2])


def _lines_until(process: subprocess.Popen[str], text: str) -> str:
    told: list[str] = []
    for line in process.stderr or ():
        told.append(line)
        if text in line:
            return line
    message = f"it ended before it told that it {text}: {''.join(told)}"
    raise RuntimeError(message)
