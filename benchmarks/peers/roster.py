"""The table of peers: a new one needs a driver, its requirements, and a line here. Starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

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
    `flooded` says that it is the one that is compared for fairness on its store. `slots` are those of a tuned
    row of Fairlane; without them it runs as it comes. Its jobs may have a plain handler, or several queues.
    """

    name: str
    store: Store
    driver: str
    environment: str
    share: float = 1.0
    tenants: int = 1
    batch: int | None = None
    slots: int | None = None
    plain: bool = False
    queues: int = 1
    flooded: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether this is Fairlane."""
        return self.environment == OWN

    @property
    def is_compared(self) -> bool:
        """Whether this is Fairlane as it comes, with async handlers and one queue, as peers are measured."""
        return self.is_ours and self.slots is None and not self.plain and self.queues == 1

    def jobs(self, most: int) -> int:
        """Say how many jobs it gets where most peers get `most`."""
        return max(min(most, LEAST), round(self.share * most))


TUNED_SLOTS: Final = 1_000
"""With so many slots a worker never waits for a free one, also if it claims nothing ahead."""


def _ours(store: Store) -> list[Peer]:
    """Return Fairlane with default settings and, after these, tuned."""
    one = Peer(name=f"fairlane-{store}", store=store, driver="fairlane", environment=OWN, share=3)

    def other(name: str, **values: Any) -> Peer:
        return msgspec.structs.replace(one, name=f"{one.name}-{name}", **values)

    return [
        msgspec.structs.replace(one, flooded=True),
        other("100", tenants=100),
        other("1000", tenants=1_000),
        other("100000", tenants=100_000, share=5),
        other("plain", plain=True),
        other("queues", tenants=100, queues=5),
        other("tuned", slots=TUNED_SLOTS),
        other("tuned-100", slots=TUNED_SLOTS, tenants=100),
        other("tuned-1000", slots=TUNED_SLOTS, tenants=1_000),
        other("tuned-plain", slots=TUNED_SLOTS, plain=True),
        other("tuned-queues", slots=TUNED_SLOTS, tenants=100, queues=5),
    ]


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

    >>> [peer.name for peer in choose(["rq"], STORES) if peer.slots is None][:4]
    ['fairlane-redis', 'fairlane-redis-100', 'fairlane-redis-1000', 'fairlane-redis-100000']
    """
    chosen = [peer for peer in ROSTER if (not names or peer.name in names) and peer.store in stores]
    beside = {peer.store for peer in chosen}
    return [peer for peer in ROSTER if peer in chosen or (peer.is_ours and peer.store in beside)]


def rotated(peers: Sequence[Peer], number: int) -> list[Peer]:
    """Return the order of a round: each begins with another peer, so that none is always first.

    >>> [peer.name for peer in rotated(choose(["rq"], STORES)[-3:], 1)]
    ['fairlane-redis-tuned-queues', 'rq', 'fairlane-redis-tuned-plain']
    """
    start = number % max(1, len(peers))
    return [*peers[start:], *peers[:start]]
