"""Kill the node of an installation under load, and tell what happens: who took over, and what was lost.

``python -m tests.servers.redis_failover`` prints the transcript; it fails if an acknowledged job is lost.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from uuid import UUID

from fairlane.model.errors import StoreError
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.servers.cluster import ask, follow, home_of, name_of, start_cluster
from tests.servers.valkey import ValkeyServer

PREFIXES = ("shop", "fax")
AFTER = 200
"""How many jobs are acknowledged before the node dies, and how many more after it."""


class Teller:
    """Says what happens and when."""

    def __init__(self) -> None:
        """Begin now."""
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Write one line."""
        sys.stdout.write(f"{time.monotonic() - self._began:7.2f} s  {text}\n")


async def pour(world: World, tell: Teller, at: dict[int, Callable[[], None]], most: int) -> set[UUID]:
    """Enqueue one job after the other through the outage; do what is to be done at some numbers."""
    acknowledged: set[UUID] = set()
    away_since, refused = None, 0
    while len(acknowledged) < most:
        new = world.new()
        try:
            await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(new,)))
        except StoreError as error:
            refused += 1
            if away_since is None:
                away_since = time.monotonic()
                tell.say(f"enqueue: {type(error).__name__}, a repeat is safe: {error.retry_safe}; {error}")
            await asyncio.sleep(0.05)
            continue
        acknowledged.add(new.id)
        if away_since is not None:
            tell.say(f"enqueue: works again after {time.monotonic() - away_since:.2f} s and {refused} tries")
            away_since, refused = None, 0
        at.pop(len(acknowledged), lambda: None)()
    return acknowledged


def describe(nodes: list[ValkeyServer], tell: Teller) -> None:
    """Say which nodes there are."""
    for node in nodes:
        role = "primary" if is_primary(node) else "replica"
        tell.say(f"  {name_of(node)}  127.0.0.1:{node.port}  {role}")


def is_primary(node: ValkeyServer) -> bool:
    """Whether a node takes writes."""
    told = ask(node, "ROLE")
    return isinstance(told, list) and told[0] == b"master"


async def main() -> int:
    """Run it; 0 if nothing acknowledged was lost."""
    tell, nodes = Teller(), start_cluster(more=2)
    try:
        homes = {prefix: home_of(nodes, prefix) for prefix in PREFIXES}
        home, replicas = homes["shop"], nodes[3:]
        for replica in replicas:
            follow(replica, home)
        tell.say("a cluster:")
        describe(nodes, tell)
        for prefix, node in homes.items():
            slot = ask(node, "CLUSTER", "KEYSLOT", f"{{{prefix}}}:")
            tell.say(f"installation {prefix}: slot {slot}, node {name_of(node)}")
        seeds = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        worlds = {
            prefix: World(open_store(f"redis://{seeds}?prefix={prefix}&replicas={number}"), DrivenClock())
            for prefix, number in (("shop", 1), ("fax", 0))
        }
        dead = name_of(home)

        def kill() -> None:
            home.kill()
            tell.say(f"SIGKILL of {dead}, after {AFTER} acknowledged jobs of shop")

        shop, fax = await asyncio.gather(
            pour(worlds["shop"], tell, {AFTER: kill}, 2 * AFTER), pour(worlds["fax"], tell, {}, AFTER)
        )
        living = [node for node in nodes if node is not home]
        tell.say("the nodes now:")
        describe(living, tell)
        (heir,) = [node for node in replicas if is_primary(node)]
        tell.say(f"{name_of(heir)} took over from {dead}")
        lost = 0
        for prefix, acknowledged in (("shop", shop), ("fax", fax)):
            there = {job.id for job in await worlds[prefix].find_all()}
            lost += len(acknowledged - there)
            tell.say(f"{prefix}: {len(acknowledged)} acknowledged, {len(acknowledged - there)} lost")
            await worlds[prefix].check_invariants()
            await worlds[prefix].store.upkeep.aclose()
        return int(lost > 0)
    finally:
        for node in nodes:
            node.remove()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
