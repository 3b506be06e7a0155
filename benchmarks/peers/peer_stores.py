"""The stores of runs: a file, a database, a numbered keyspace, each empty for every run. Knows no peer."""

from __future__ import annotations

import secrets
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol
from urllib.parse import urlsplit

_TOLD: Final = ("fsync", "synchronous_commit", "shared_buffers", "max_wal_size")
_PERSISTENCE: Final = ("appendonly", "appendfsync", "auto-aof-rewrite-percentage")


class ServerError(Exception):
    """A server could not be started or used; the message is the end of its output."""


class PeerStore(Protocol):
    """Gives every run its own empty store, and leaves nothing behind."""

    @property
    def about(self) -> Mapping[str, str]:
        """What it is and how durable its answers are."""

    def fresh(self, folder: Path) -> str:
        """Return the URL of an empty store; what the run before had is gone."""


class Files:
    """SQLite: a file in the folder of every run. Each peer decides its durability."""

    about: Mapping[str, str] = MappingProxyType(
        {
            "server": "none: a file of its own for each run",
            "durability": "as each peer sets it",
        }
    )

    def fresh(self, folder: Path) -> str:
        """Name a file that is not there yet."""
        return f"sqlite:///{folder / 'store.db'}"


class Postgres:
    """A PostgreSQL server with a database for every run."""

    def __init__(self, psql: Path, url: str) -> None:
        self._psql = psql
        self._url = url
        self._database = f"peers_{secrets.token_hex(4)}"
        self.about = {
            "server": f"PostgreSQL {self.ask('show server_version')[0]}",
            "durability": ", ".join(f"{name} {self.ask(f'show {name}')[0]}" for name in _TOLD),
        }

    def ask(self, *statements: str) -> list[str]:
        """Run statements one by one, and give the lines of their answers."""
        said = subprocess.run(  # noqa: S603 (the wheel's own program)
            [
                self._psql,
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                *(f"-c{one}" for one in statements),
                self._url,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if said.returncode:
            raise ServerError(said.stderr.strip())
        return said.stdout.splitlines()

    def fresh(self, folder: Path) -> str:  # noqa: ARG002 (a server has its own folder)
        """Replace the database, and have what came before on the disk, so that no run pays for another."""
        self.clear()
        self.ask(f"create database {self._database}", "checkpoint")
        return urlsplit(self._url)._replace(path=f"/{self._database}").geturl()

    def clear(self) -> None:
        """Drop our database, and no other."""
        self.ask(f"drop database if exists {self._database} with (force)")


class Valkey:
    """A server with the Redis protocol. Only the database that the URL names is emptied."""

    def __init__(self, url: str) -> None:
        self._url = url
        info = dict(line.split(":", 1) for line in self.ask("INFO server").splitlines() if ":" in line)
        name = info.get("server_name", "redis").capitalize()
        append, sync, growth = (self.ask(f"CONFIG GET {key}").split()[-1] for key in _PERSISTENCE)
        rewrites = "no rewrites of the file" if growth == "0" else f"rewritten when {growth} % larger"
        self.about = {
            "server": f"{name} {info.get('valkey_version') or info['redis_version']}",
            "durability": f"appendonly {append}, appendfsync {sync}, {rewrites}",
        }

    def ask(self, command: str) -> str:
        """Send one inline command; return the answer as it came."""
        parts = urlsplit(self._url)
        before = [f"AUTH {parts.username or 'default'} {parts.password}"] if parts.password else []
        lines = [*before, f"SELECT {parts.path.strip('/') or 0}", command, "QUIT"]
        with socket.create_connection(
            (parts.hostname or "127.0.0.1", parts.port or 6379), timeout=30
        ) as link:
            link.sendall("".join(f"{line}\r\n" for line in lines).encode())
            said = b"".join(iter(lambda: link.recv(65_536), b"")).decode(errors="replace")
        if said.startswith("-") or "\r\n-" in said:
            raise ServerError(next(line for line in said.splitlines() if line.startswith("-")))
        return said.split("\r\n", len(before) + 1)[-1].removesuffix("+OK\r\n").strip()

    def fresh(self, folder: Path) -> str:  # noqa: ARG002 (as above)
        """Empty the database."""
        self.clear()
        return self._url

    def clear(self) -> None:
        """Remove every key of our database."""
        self.ask("FLUSHDB")
