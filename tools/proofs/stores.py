"""The measured stores: their names, and a server for those that need one. Knows no benchmark."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Literal

from benchmarks.measured_store import clean, own_url
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer
from tests.servers.valkey import free_port as free_valkey_port
from tools.proofs.measurement import ROOT

Store = Literal["sqlite", "postgres", "redis"]
STORES: Final[dict[Store, str]] = {"sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis"}
"""With the names that people call them by. A Valkey server is a Redis server here."""

NewUrl = Callable[[str], str | None]
"""Gives the URL of a new store of this name, for benchmarks; None where each run has a file of its own."""

_EVERY_SECOND: Final = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")


def prefix(store: Store) -> str:
    """Return the prefix of the names of a store's pages; SQLite has none."""
    return "" if store == "sqlite" else f"{store}-"


@contextmanager
def measured(store: Store) -> Iterator[NewUrl]:
    """Provide a store to measure: files, the server that the environment names, or a private one.

    FAIRLANE_PROOFS_POSTGRES_URL and FAIRLANE_PROOFS_REDIS_URL name servers; what is made there is removed.
    """
    if store == "sqlite":
        yield lambda _: None
        return
    with server_for(store) as server:

        def new(name: str) -> str:
            url = own_url(server, name)
            words = [sys.executable, "-m", "fairlane", "bench", "dedicate", "--url", url]
            subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own program)
            return url

        try:
            yield new
        finally:
            asyncio.run(clean(server))


def server_for(store: Store) -> AbstractContextManager[str]:
    """Provide the server that the environment names, or a private one."""
    # Taken out: the programs that are measured refuse variables of Fairlane that they do not know.
    given = os.environ.pop(f"FAIRLANE_PROOFS_{store.upper()}_URL", None)
    if given:
        return _given(given)
    return _postgres() if store == "postgres" else _valkey()


@contextmanager
def _given(url: str) -> Iterator[str]:
    yield url


@contextmanager
def _postgres() -> Iterator[str]:
    server = PostgresServer()  # as it comes: fsync and synchronous_commit are on
    try:
        server.start()
        yield server.tcp_url
    finally:
        server.close()


@contextmanager
def _valkey() -> Iterator[str]:
    server = ValkeyServer(*_EVERY_SECOND, port=free_valkey_port())
    try:
        server.start()
        yield server.tcp_url
    finally:
        server.remove()
