"""The stores that campaigns are run on, durable as in production, and the servers under them to be killed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

import apsw
import psycopg
from redis import Redis

from fairlane.model.instants import SECOND, Micros
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer, free_port


class Place(Protocol):
    """A store, where it is, and what it promises to keep through a crash."""

    url: str
    port: int
    """Where its server listens; 0 if it has none."""
    version: str
    settings: dict[str, str]
    loses: Micros
    """How far back a crash of its server may reach into what was acknowledged."""

    def kill(self) -> None:
        """End its server as a crash does."""
        ...

    def start(self) -> None:
        """Start its server again; return when it serves."""
        ...

    def cut_one(self, draw: random.Random) -> bool:
        """Let the server end the connection of one client; False if there is none."""
        ...

    def connections(self) -> int:
        """Count the connections of clients."""
        ...

    def processor_time(self) -> float:
        """Say how many seconds of the processor its server has used; none has none."""
        ...


def processor_time(pid: int) -> float:
    """Say how many seconds of the processor a process has used, with its children."""
    ticks = sum(map(int, _fields(pid)[11:15]))
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it may end while we look
            if entry.name.isdigit() and _fields(int(entry.name))[1] == str(pid):
                ticks += sum(map(int, _fields(int(entry.name))[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[str]:
    """Return what the kernel says of a process, from its state on: its name may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


class _File:
    """A file: it has no server."""

    port = 0
    loses = 0

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/fairlane.db"
        self.version = f"SQLite {apsw.sqlite_lib_version()}"
        self.settings = {"journal_mode": "wal", "synchronous": "full"}

    def kill(self) -> None:
        raise NotImplementedError

    start = kill

    def cut_one(self, draw: random.Random) -> bool:
        raise NotImplementedError

    def connections(self) -> int:
        raise NotImplementedError

    def processor_time(self) -> float:
        return 0


class _Postgres:
    """A PostgreSQL server with its own defaults: every commit is synced."""

    loses = 0

    def __init__(self, folder: Path) -> None:
        self._server = PostgresServer("max_connections=600", folder=folder)
        self._server.start()
        self.port = self._server.port
        self.url = self._server.tcp_url
        self.settings = {"fsync": "on", "synchronous_commit": "on"}
        with psycopg.connect(self.url) as link:
            self.version = f"PostgreSQL {link.info.server_version // 10_000}"

    def kill(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self._server.close()

    def cut_one(self, draw: random.Random) -> bool:
        pids = self._clients()
        with psycopg.connect(self.url, autocommit=True) as link:
            return bool(pids) and bool(
                link.execute("SELECT pg_terminate_backend(%s)", (draw.choice(pids),)).fetchone()
            )

    def connections(self) -> int:
        return len(self._clients())

    def processor_time(self) -> float:
        return processor_time(self._server.pid)

    def _clients(self) -> list[int]:
        with psycopg.connect(self.url, autocommit=True) as link:
            rows = link.execute(
                "SELECT pid FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid"
            )
            return [row[0] for row in rows]


class _Valkey:
    """A Valkey server that writes its log, and syncs it at every command or once a second."""

    def __init__(self, folder: Path, appendfsync: str) -> None:
        self.settings = {"appendonly": "yes", "appendfsync": appendfsync}
        options = [part for name, value in self.settings.items() for part in (f"--{name}", value)]
        self._server = ValkeyServer(*options, folder=folder, port=free_port())
        self._server.start()
        self.port = self._server.port
        self.url = self._server.tcp_url
        # A write waits up to two seconds for a sync that is under way.
        self.loses = 0 if appendfsync == "always" else 2 * SECOND
        self.version = self._server.version()

    def _client(self) -> Redis:
        return Redis.from_url(self._server.url)

    def kill(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self._server.remove()

    def cut_one(self, draw: random.Random) -> bool:
        with closing(self._client()) as client:
            ids = self._clients(client)
            return bool(ids) and bool(client.client_kill_filter(_id=draw.choice(ids)))

    def connections(self) -> int:
        with closing(self._client()) as client:
            return len(self._clients(client))

    def processor_time(self) -> float:
        return processor_time(self._server.pid)

    def _clients(self, client: Redis) -> list[str]:
        own = client.client_id()
        return sorted(one["id"] for one in client.client_list() if int(one["id"]) != own)


STORES: Final = ("sqlite", "postgres", "redis", "redis-always", "model")
"""Redis as it is set up by default, synced once a second, and Redis synced at every command; and none."""


@contextmanager
def opened(store: str, folder: Path) -> Iterator[Place]:
    """Return a new, empty place as long as this lasts."""
    if store == "sqlite":
        yield _File(folder)
        return
    place = (
        _Postgres(folder)
        if store == "postgres"
        else _Valkey(folder, "always" if store == "redis-always" else "everysec")
    )
    try:
        yield place
    finally:
        place.close()
