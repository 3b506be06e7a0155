"""A relay that stops between its two steps: the store has the jobs, the outbox has its rows still.

``python -m tests.redis.relay_child STORE DATABASE`` says so on its standard output, and waits to be killed.
"""

from __future__ import annotations

import signal
import sqlite3
import sys
from typing import Any

import psycopg

from fairlane import Fairlane, Relay
from fairlane.outbox.backlog import Backlog
from fairlane.outbox.table import ParamStyle


def connect(database: str) -> Any:
    """Open the application's database: a file, or a schema of a server."""
    if database.startswith("postgresql"):
        url, _, schema = database.partition(" ")
        return psycopg.connect(url, options=f"-c search_path={schema}")
    return sqlite3.connect(database)


def style(database: str) -> ParamStyle:
    """Say how its library marks parameters."""
    return "pyformat" if database.startswith("postgresql") else "qmark"


def _wait(self: Backlog, stored: Any, aside: Any) -> None:
    sys.stdout.write("stored\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    _, store, place = sys.argv
    Backlog.finish = _wait  # type: ignore[method-assign]
    Relay(Fairlane(store), lambda: connect(place), paramstyle=style(place)).drain()
