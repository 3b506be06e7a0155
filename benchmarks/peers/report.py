"""What a comparison answers: figures of every peer, Fairlane's ratio to each, goals. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from benchmarks.peers import flood, speed
from benchmarks.peers.roster import Peer, Store
from fairlane.bench.load import near_alone
from fairlane.bench.report import Check, Goal, Measure, Round, conclude, ratio


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One peer as it was measured."""

    name: str
    store: Store
    tenants: int
    jobs: int
    versions: Mapping[str, str]
    settings: str


class LeftOut(msgspec.Struct, frozen=True):
    """A peer without figures, and why."""

    name: str
    why: str


class PeersReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run of `benchmarks.peers`; its fields are the keys of `--json`.

    In `measures` and `fairness` the scenario is the peer's name; in `ratios` it is the name of the peer by
    whose figure Fairlane's of the same round is divided, and the number of Fairlane's tenants if it is not 1.
    `stores` says which server, and how durable.
    """

    bench: str = "peers"
    host: Mapping[str, str | int | float]
    stores: Mapping[str, Mapping[str, str]]
    settings: Mapping[str, int | float]
    peers: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    measures: tuple[Measure, ...]
    ratios: tuple[Measure, ...]
    fairness: tuple[Measure, ...]
    checks: tuple[Check, ...]
    seconds: float
    ok: bool


LEAST: Final[Mapping[Store, Mapping[int, Mapping[str, float]]]] = {
    "sqlite": {1: {speed.DRAINED: 6, speed.BULK: 10}},
    "postgres": {
        1: {speed.DRAINED: 2, speed.BULK: 2},
        1_000: {speed.DRAINED: 2},
        100_000: {speed.DRAINED: 1},
    },
    "redis": {
        1: {speed.DRAINED: 6, speed.BULK: 4},
        1_000: {speed.DRAINED: 6},
        100_000: {speed.DRAINED: 3},
    },
}
"""How many times the best peer's figure Fairlane's is to be with so many tenants; so it is to be that of
every peer. A peer has no tenants: its jobs are the same."""

MOST: Final[Mapping[Store, Mapping[str, float]]] = {
    "sqlite": {speed.PICKED_P95: 10, speed.ENQUEUE: 10, speed.MEMORY: 50},
    "postgres": {speed.PICKED_P95: 10, speed.ENQUEUE: 10, speed.MEMORY: 50},
    "redis": {speed.PICKED_P95: 5, speed.ENQUEUE: 5, speed.MEMORY: 60},
}
"""What Fairlane's own figures may be at most, in ms and MB."""

Rounds = Mapping[str, Sequence[Round]]
"""The rounds of each peer, by its name; a peer that gave figures gave them in every round."""


def own_measures(peers: Sequence[Peer], rounds: Rounds) -> list[Measure]:
    """Put each peer's rounds together; Fairlane's rows have goals."""
    found: list[Measure] = []
    for peer in peers:
        bounds = MOST[peer.store] if peer.is_ours else {}
        goals = {name: Goal(f"at most {most:g}", most) for name, most in bounds.items()}
        found += conclude(peer.name, rounds[peer.name], lambda _, goals=goals: goals)  # type: ignore[misc]
    return found


def ratios(peers: Sequence[Peer], rounds: Rounds) -> list[Measure]:
    """Divide Fairlane's figures by those of every peer on the same store, round by round."""
    found: list[Measure] = []
    for ours in (peer for peer in peers if peer.is_ours):
        least = LEAST[ours.store].get(ours.tenants, {})
        goals = {name: Goal(f"at least {times:g}×", times, is_least=True) for name, times in least.items()}
        for peer in peers:
            if peer.store == ours.store and not peer.is_ours:
                pairs = zip(rounds[ours.name], rounds[peer.name], strict=True)
                divided = [_divide(one, other) for one, other in pairs]
                scenario = against(peer.name, ours.tenants)
                found += conclude(scenario, divided, lambda _, goals=goals: goals)  # type: ignore[misc]
    return found


def against(peer: str, tenants: int) -> str:
    """Name a ratio by the peer, and by how many tenants Fairlane had.

    >>> against("rq", 1), against("rq", 1_000)
    ('rq', 'rq, 1,000 tenants')
    """
    return peer if tenants == 1 else f"{peer}, {tenants:,} tenants"


def _divide(ours: Round, theirs: Round) -> Round:
    """Divide figure by figure.

    >>> from fairlane.bench.report import Amount
    >>> _divide(Round({"drained": Amount(9, "jobs/s")}), Round({"drained": Amount(2, "jobs/s")})).amounts
    {'drained': Amount(value=4.5, unit='×')}
    """
    return Round({name: ratio(one, theirs.amounts[name]) for name, one in ours.amounts.items()})


def fairness(peers: Sequence[Peer], rounds: Rounds) -> list[Measure]:
    """Put the floods together; Fairlane's wait may be a little more than alone, a peer's is context."""
    found: list[Measure] = []
    for peer in (peer for peer in peers if peer.name in rounds):
        found += conclude(peer.name, rounds[peer.name], _flood_goals if peer.is_ours else _contested)
    return found


def _flood_goals(medians: Mapping[str, float]) -> dict[str, Goal]:
    return {flood.FLOODED: near_alone(medians, "p95", 1.5, 20), **_contested(medians)}


def _contested(_: Mapping[str, float]) -> dict[str, Goal]:
    return {flood.BACKLOGGED: Goal("1, else nothing was contested", 1, is_least=True)}
