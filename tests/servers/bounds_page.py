"""The page of how long scripts hold a Redis server, made from what was measured. Measures nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parents[2] / "docs" / "proofs"
_JSON: Final = FOLDER / "redis-bounds.json"
PAGE: Final = FOLDER / "redis-bounds.md"

MOST: Final = 5.0
"""How many milliseconds one script may hold all others up."""

_HEAD: Final = """# How long one script holds a Redis or Valkey server

Made by `python -m tests.servers.redis_bounds`; {server}, {tenants:,} tenants with {jobs:,} jobs in one
queue, of which each verb then meets as many as it may. A server does one thing at a time: what one script
takes, all others wait. The goal is {most:g} ms.

*Median* and *longest*: the processor time of the server for one run of a script, its arguments and its answer
included. Everything was asked {rounds} times, and of each run the shortest of these counts, since the machine
had other work: a load of {load:.1f} on {cores} cores. *By the clock*: the longest of all runs as SLOWLOG has
it, the time included in which the server did not run; 0 below a millisecond.

"""
_COLUMNS: Final = (
    "| script | runs | median ms | longest ms | by the clock, ms | longest for |",
    "|---|---|---|---|---|---|",
)


class Bound(msgspec.Struct, frozen=True):
    """How long a script took, in milliseconds, and for whom it took longest."""

    script: str
    runs: int
    median: float
    longest: float
    by_clock: float
    verb: str


class Bounds(msgspec.Struct, frozen=True):
    """What was measured, of which server, with how much in it."""

    server: str
    tenants: int
    jobs: int
    rounds: int
    load: float
    cores: int
    rows: list[Bound]


def keep(bounds: Bounds) -> None:
    """Keep what was measured, and write its page."""
    _JSON.write_bytes(msgspec.json.format(msgspec.json.encode(bounds), indent=1) + b"\n")
    PAGE.write_text(render(), encoding="utf-8")


def render() -> str:
    """Give the page of what is kept."""
    return page(msgspec.json.decode(_JSON.read_bytes(), type=Bounds))


def page(bounds: Bounds) -> str:
    """Say it in words and a table."""
    head = _HEAD.format(
        server=bounds.server,
        tenants=bounds.tenants,
        jobs=bounds.jobs,
        rounds=bounds.rounds,
        load=bounds.load,
        cores=bounds.cores,
        most=MOST,
    )
    lines = [
        f"| {row.script} | {row.runs} | {row.median:.2f} | {row.longest:.2f} | {row.by_clock:.2f} |"
        f" {row.verb} |"
        for row in bounds.rows
    ]
    return head + "\n".join((*_COLUMNS, *lines)) + "\n"
