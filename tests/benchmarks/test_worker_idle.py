"""The benchmark of a worker at rest: it watches a real one, on a file and on a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.worker import idling
from tests.servers.schemas import lent_schema, url_of


@contextmanager
def place(store: str, folder: Path) -> Iterator[str]:
    """Lend a store that is migrated and empty."""
    if store == "sqlite":
        yield f"sqlite:///{folder / 'idle.db'}"
        return
    with asyncio.Runner() as runner:
        lending = lent_schema()
        yield url_of(runner.run(lending.__aenter__()))
        runner.run(lending.__aexit__(None, None, None))


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_worker_at_rest_is_watched_from_outside(store: str, tmp_path: Path) -> None:
    """It runs its jobs, keeps its connections, makes few calls, and stops when told."""
    with place(store, tmp_path) as url:
        found = idling(url, "duties", seconds=1.5, rest=0)
    assert found["pss_mb"] > 10
    assert sum(found["asked_per_s"].values()) > 0
    if store == "sqlite":  # the tests' server is behind a socket file, which is no connection that it counts
        assert found["connections_busy"] >= found["connections"] >= 1
