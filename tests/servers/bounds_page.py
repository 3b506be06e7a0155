"""The page of how long scripts hold a Redis server, made from what was measured. Measures nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.servers.proof_page import ProofPage, table

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


def page(bounds: Bounds) -> str:
    """Say it in words and a table."""
    head = _HEAD.format(most=MOST, **msgspec.structs.asdict(bounds))
    rows = (
        (row.script, row.runs, *(f"{one:.2f}" for one in (row.median, row.longest, row.by_clock)), row.verb)
        for row in bounds.rows
    )
    return head + table(_COLUMNS, rows)


PAGE: Final = ProofPage("redis-bounds", Bounds, page)
