"""Render the output of `benchmarks.worker`: the cost of an idle worker."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.lab.bench.report import Amount, Goal, Measure, RoundResult, conclude
from tools.proofs.bench_page import table
from tools.proofs.measurement import Measurement, circumstances
from tools.proofs.stores import STORES, Store

_HEAD: Final = """\
# A worker at rest{on}

Generated from `docs/proofs/{name}.json`, which `make proofs` writes; do not edit by hand.

One `fairlane worker` process with its duties and an empty queue, watched from outside. A query is a call of
the store's contract; waiting for a wake-up is one where it asks for it, but not on PostgreSQL, where it
listens (and asks twice a minute whether anybody is there). Connections are those to a server, or open
database files; they are counted while it runs jobs, too.
"""

_MEMORY: Final[dict[Store, float]] = {"sqlite": 50, "postgres": 50, "redis": 60}

_AT_THE_END: Final = frozenset({"leave", "aclose"})
"""What a worker asks when it is told to stop: that is not idling any more."""

_LISTENING: Final[dict[Store, frozenset[str]]] = {"postgres": frozenset({"wait"})}
"""Calls that ask a server for nothing."""


class _Idle(msgspec.Struct):
    cpu_percent: float
    pss_mb: float
    asked_per_s: dict[str, float]
    connections: int
    connections_busy: int


class _Report(msgspec.Struct):
    host: dict[str, str | int | float]
    idle: _Idle = msgspec.field(name="idle, duties")


def figures(measurement: Measurement, store: Store = "sqlite") -> list[Measure]:
    """Return the figures of an idle worker, each with its goal."""
    idle = msgspec.json.decode(measurement.report, type=_Report).idle
    unasked = _AT_THE_END | _LISTENING.get(store, frozenset())
    amounts = {
        "memory": Amount(idle.pss_mb, "MB"),
        "processor": Amount(idle.cpu_percent, "% of a core"),
        "queries": Amount(sum(n for verb, n in idle.asked_per_s.items() if verb not in unasked), "a second"),
        "connections": Amount(idle.connections, ""),
        "connections while busy": Amount(idle.connections_busy, ""),
    }
    return conclude("at rest", [RoundResult(amounts)], lambda _: _goals(_MEMORY[store]))


def page(measurement: Measurement, name: str = "worker", store: Store = "sqlite") -> str:
    """Return the page."""
    host = msgspec.json.decode(measurement.report, type=_Report).host
    lines = [
        _HEAD.format(name=name, on="" if store == "sqlite" else f" on {STORES[store]}"),
        *circumstances(measurement, host),
    ]
    return "\n".join([*lines, *table(figures(measurement, store))]) + "\n"


def _goals(memory: float) -> dict[str, Goal]:
    return {
        "memory": Goal(f"at most {memory:g} MB", memory),
        "processor": Goal("at most 1 %", 1),
        "queries": Goal("at most 2", 2),
        "connections": Goal("at most 100", 100),
        "connections while busy": Goal("at most 100", 100),
    }
