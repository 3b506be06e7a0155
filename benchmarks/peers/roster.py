"""The table of peers: a new one needs a driver, its requirements, and a line here. Starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from benchmarks.peers.environments import OWN

Store = Literal["sqlite", "postgres", "redis"]
STORES: Final[tuple[Store, ...]] = ("sqlite", "postgres", "redis")

LEAST: Final = 200
"""No run has fewer jobs, however slow the peer: below that a rate says nothing."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table.

    `share` is how many of the run's jobs it gets: slow ones less and fast ones more, so that each drains for
    some seconds; more for tenants of which there are to be more than jobs otherwise.
    `flooded` says that it is the one that is compared for fairness on its store.
    """

    name: str
    store: Store
    driver: str
    environment: str
    share: float = 1.0
    tenants: int = 1
    batch: int | None = None
    flooded: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether this is Fairlane."""
        return self.environment == OWN

    def jobs(self, most: int) -> int:
        """Say how many jobs it gets where most peers get `most`."""
        return max(min(most, LEAST), round(self.share * most))


def _ours(store: Store) -> list[Peer]:
    one = Peer(
        name=f"fairlane-{store}", store=store, driver="fairlane", environment=OWN, share=3, flooded=True
    )
    many = msgspec.structs.replace(one, name=f"{one.name}-1000", tenants=1_000, flooded=False)
    most = msgspec.structs.replace(many, name=f"{one.name}-100000", tenants=100_000, share=5)
    return [one, many, most]


def _theirs(
    name: str, store: Store, share: float, *, batch: int | None = None, flooded: bool = False
) -> Peer:
    family = name.partition("-")[0]
    return Peer(
        name=name,
        store=store,
        driver=family,
        environment=family,
        share=share,
        batch=batch,
        flooded=flooded,
    )


ROSTER: Final[tuple[Peer, ...]] = (
    *_ours("sqlite"),
    _theirs("huey-sqlite", "sqlite", 0.2, flooded=True),
    *_ours("postgres"),
    _theirs("pgqueuer-1000", "postgres", 2, batch=1_000, flooded=True),
    _theirs("pgqueuer-100", "postgres", 2, batch=100),
    _theirs("procrastinate", "postgres", 0.05),
    _theirs("saq-postgres", "postgres", 0.04),
    *_ours("redis"),
    _theirs("dramatiq", "redis", 0.3, flooded=True),
    _theirs("huey-redis", "redis", 0.25),
    _theirs("saq-redis", "redis", 0.2),
    _theirs("taskiq", "redis", 0.3),
    _theirs("celery", "redis", 0.1),
    _theirs("rq", "redis", 0.03),
)


def choose(names: Sequence[str], stores: Sequence[Store]) -> list[Peer]:
    """Return the peers of these names, or all, on these stores, and Fairlane on each of their stores.

    >>> [peer.name for peer in choose(["rq"], STORES)]
    ['fairlane-redis', 'fairlane-redis-1000', 'fairlane-redis-100000', 'rq']
    """
    chosen = [peer for peer in ROSTER if (not names or peer.name in names) and peer.store in stores]
    beside = {peer.store for peer in chosen}
    return [peer for peer in ROSTER if peer in chosen or (peer.is_ours and peer.store in beside)]


def rotated(peers: Sequence[Peer], number: int) -> list[Peer]:
    """Return the order of a round: each begins with another peer, so that none is always first.

    >>> [peer.name for peer in rotated(choose(["rq"], STORES), 1)]
    ['fairlane-redis-1000', 'fairlane-redis-100000', 'rq', 'fairlane-redis']
    """
    start = number % max(1, len(peers))
    return [*peers[start:], *peers[:start]]
