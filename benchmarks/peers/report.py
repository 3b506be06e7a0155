"""The report of a comparison: every peer's figures, Fairlane's ratio to each, goals. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from benchmarks.peers import flood, speed
from benchmarks.peers.roster import Peer, Store
from fairlane.lab.bench.fairness.load import near_alone
from fairlane.lab.bench.report import Check, Goal, Measure, RoundResult, conclude, ratio


class PeerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measured peer."""

    name: str
    store: Store
    tenants: int
    jobs: int
    versions: Mapping[str, str]
    settings: str


class SkippedPeer(msgspec.Struct, frozen=True):
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
    peers: tuple[PeerRow, ...]
    left_out: tuple[SkippedPeer, ...]
    measures: tuple[Measure, ...]
    ratios: tuple[Measure, ...]
    fairness: tuple[Measure, ...]
    checks: tuple[Check, ...]
    seconds: float
    ok: bool


LEAST: Final[Mapping[Store, Mapping[int, Mapping[str, float]]]] = {
    "sqlite": {1: {speed.DRAINED: 6, speed.BULK: 10}, 100: {speed.DRAINED: 6}, 1_000: {speed.DRAINED: 6}},
    "postgres": {
        1: {speed.DRAINED: 1.5, speed.BULK: 1},
        100: {speed.DRAINED: 1.2},
        1_000: {speed.DRAINED: 1},
        100_000: {speed.DRAINED: 1},
    },
    "redis": {1: {speed.DRAINED: 6, speed.BULK: 4}, 100: {speed.DRAINED: 6}, 1_000: {speed.DRAINED: 6}},
}
"""How many times the best peer's figure Fairlane's, with default settings, is to be with so many tenants; so
it is to be that of every peer. A peer has no tenants: its jobs are the same."""

TUNED: Final = 0.8
"""The least part of its tuned speed that Fairlane is to have as it comes."""

MOST: Final[Mapping[Store, Mapping[str, float]]] = {
    "sqlite": {speed.PICKED_P95: 10, speed.ENQUEUE: 10, speed.MEMORY: 50},
    "postgres": {speed.PICKED_P95: 10, speed.ENQUEUE: 10, speed.MEMORY: 50},
    "redis": {speed.PICKED_P95: 5, speed.ENQUEUE: 5, speed.MEMORY: 60},
}
"""What Fairlane's own figures may be at most, in ms and MB."""

Rounds = Mapping[str, Sequence[RoundResult]]
"""The rounds of each peer, by its name; a peer that gave figures gave them in every round."""


def own_measures(peers: Sequence[Peer], rounds: Rounds) -> list[Measure]:
    """Combine each peer's rounds; Fairlane's rows have goals."""
    found: list[Measure] = []
    for peer in peers:
        bounds = MOST[peer.store] if peer.is_ours else {}
        goals = {name: Goal(f"at most {most:g}", most) for name, most in bounds.items()}
        found += conclude(peer.name, rounds[peer.name], lambda _, goals=goals: goals)  # type: ignore[misc]
    return found


def ratios(peers: Sequence[Peer], rounds: Rounds) -> list[Measure]:
    """Divide Fairlane's figures by those of every peer on the same store, round by round.

    Then those of its default settings by those of the tuned ones.
    """
    found: list[Measure] = []
    for ours in (peer for peer in peers if peer.is_compared):
        least = LEAST[ours.store].get(ours.tenants, {})
        goals = {name: Goal(f"at least {times:g}×", times, is_least=True) for name, times in least.items()}
        for peer in peers:
            if peer.store == ours.store and not peer.is_ours:
                pairs = zip(rounds[ours.name], rounds[peer.name], strict=True)
                divided = [_divide(one, other) for one, other in pairs]
                scenario = against(peer.name, ours.tenants)
                found += conclude(scenario, divided, lambda _, goals=goals: goals)  # type: ignore[misc]
    goal = {speed.DRAINED: Goal(f"at least {TUNED:g}×", TUNED, is_least=True)}
    for tuned in (peer for peer in peers if peer.slots is not None):
        for ours in (peer for peer in peers if _is_same_but_tuned(peer, tuned)):
            pairs = zip(rounds[ours.name], rounds[tuned.name], strict=True)
            divided = [_divide(one, other) for one, other in pairs]
            found += conclude(tuned.name, divided, lambda _: goal)
    return found


def _is_same_but_tuned(ours: Peer, tuned: Peer) -> bool:
    def kind(peer: Peer) -> tuple[object, ...]:
        return peer.is_ours, peer.store, peer.tenants, peer.plain, peer.queues

    return ours.slots is None and kind(ours) == kind(tuned)


def against(peer: str, tenants: int) -> str:
    """Return the name of a ratio: the peer, and Fairlane's number of tenants.

    >>> against("rq", 1), against("rq", 1_000)
    ('rq', 'rq, 1,000 tenants')
    """
    return peer if tenants == 1 else f"{peer}, {tenants:,} tenants"


def _divide(ours: RoundResult, theirs: RoundResult) -> RoundResult:
    """Divide figure by figure.

    >>> from fairlane.lab.bench.report import Amount
    >>> one, other = (RoundResult({"drained": Amount(rate, "jobs/s")}) for rate in (9, 2))
    >>> _divide(one, other).amounts
    {'drained': Amount(value=4.5, unit='×')}
    """
    return RoundResult({name: ratio(one, theirs.amounts[name]) for name, one in ours.amounts.items()})


def fairness(peers: Sequence[Peer], rounds: Rounds) -> list[Measure]:
    """Combine the floods; Fairlane's wait has a goal, a peer's is context."""
    found: list[Measure] = []
    for peer in (peer for peer in peers if peer.name in rounds):
        found += conclude(peer.name, rounds[peer.name], _flood_goals if peer.is_ours else _contested)
    return found


def _flood_goals(medians: Mapping[str, float]) -> dict[str, Goal]:
    return {flood.FLOODED: near_alone(medians, "p95", 1.5, 20), **_contested(medians)}


def _contested(_: Mapping[str, float]) -> dict[str, Goal]:
    return {flood.BACKLOGGED: Goal("1, else nothing was contested", 1, is_least=True)}
