"""Kill the primary of an installation under load, and tell what happens: who took over, and what was lost.

``python -m tests.servers.redis_failover [cluster|sentinel]`` prints the transcript of a cluster with two
installations, or of a service that a Sentinel watches; it fails if an acknowledged job is lost.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from fairlane.model.errors import StoreError
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.servers.cluster import ask, await_fact, follow, home_of, is_linked, name_of, start_cluster
from tests.servers.valkey import MEMORY, ValkeySentinel, ValkeyServer, free_port

AFTER = 200
"""How many jobs are acknowledged before the primary dies, and how many more after it."""


class Teller:
    """Says what happens and when."""

    def __init__(self) -> None:
        """Begin now."""
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Write one line."""
        sys.stdout.write(f"{time.monotonic() - self._began:7.2f} s  {text}\n")


class Scene(NamedTuple):
    """Servers; the URL of the installation whose primary will die, and of one that has another, if any."""

    servers: list[ValkeyServer]
    home: ValkeyServer
    urls: dict[str, str]
    name: Callable[[ValkeyServer], str]


@contextmanager
def cluster(tell: Teller) -> Iterator[Scene]:
    """Start three primaries and two replicas of the one that has "shop"; "fax" is on another."""
    nodes = start_cluster(more=2)
    try:
        home = home_of(nodes, "shop")
        for replica in nodes[3:]:
            follow(replica, home)
        for prefix in ("shop", "fax"):
            node = home_of(nodes, prefix)
            slot = ask(node, "CLUSTER", "KEYSLOT", f"{{{prefix}}}:")
            tell.say(f"installation {prefix}: slot {slot}, node {name_of(node)}")
        seeds = "redis://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        urls = {"shop": f"{seeds}?prefix=shop&replicas=1", "fax": f"{seeds}?prefix=fax"}
        yield Scene(nodes, home, urls, name_of)
    finally:
        for node in nodes:
            node.remove()


@contextmanager
def sentinel(tell: Teller) -> Iterator[Scene]:
    """Start a primary, two replicas, and a Sentinel that watches them."""
    servers = [ValkeyServer(folder=MEMORY, port=free_port()) for _ in range(3)]
    home, *replicas = servers
    watcher = ValkeySentinel(home, folder=MEMORY)
    try:
        for server in servers:
            server.start()
        for replica in replicas:
            ask(replica, "REPLICAOF", "127.0.0.1", home.port)
        await_fact(lambda: all(map(is_linked, replicas)))
        watcher.start()
        await_fact(lambda: len(_list(ask(watcher, "SENTINEL REPLICAS", "jobs"))) == len(replicas))
        tell.say(f"a Sentinel at 127.0.0.1:{watcher.port} watches the service jobs")
        url = f"redis+sentinel://127.0.0.1:{watcher.port}/jobs?prefix=shop&replicas=1"
        yield Scene(servers, home, {"shop": url}, run_id)
    finally:
        for server in (watcher, *servers):
            server.remove()


def _list(answer: object) -> list[object]:
    return answer if isinstance(answer, list) else []


def run_id(server: ValkeyServer) -> str:
    """Return the id that a server has from its start to its end."""
    told = ask(server, "INFO", "server")
    return str(told["run_id"]) if isinstance(told, dict) else ""


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


async def work(world: World, ended: asyncio.Event) -> int:
    """Claim and settle meanwhile, also during the outage; return how many were settled."""
    settled = 0
    while not ended.is_set():
        try:
            for claim in await world.claim(3):
                settled += len((await world.settle_reply(world.verdict(claim))).settled)
        except StoreError:
            await asyncio.sleep(0.05)
    return settled


async def load(scene: Scene, worlds: dict[str, World], tell: Teller) -> dict[str, set[UUID]]:
    """Let every installation work; kill the primary of "shop" in the middle."""
    dead, ended = scene.name(scene.home), asyncio.Event()

    def kill() -> None:
        scene.home.kill()
        tell.say(f"SIGKILL of {dead}, after {AFTER} acknowledged jobs of shop")

    async with asyncio.TaskGroup() as group:
        worker = group.create_task(work(worlds["shop"], ended))
        pours = {
            name: group.create_task(pour(world, tell, {AFTER: kill} if name == "shop" else {}, 2 * AFTER))
            for name, world in worlds.items()
        }
        await asyncio.wait(pours.values())
        ended.set()
    tell.say(f"shop: {worker.result()} jobs were claimed and settled meanwhile")
    return {name: one.result() for name, one in pours.items()}


def describe(servers: list[ValkeyServer], scene: Scene, tell: Teller) -> list[str]:
    """Say which servers there are; return the names of those that take writes."""
    roles = {scene.name(server): _list(ask(server, "ROLE"))[0] == b"master" for server in servers}
    for (name, is_primary), server in zip(roles.items(), servers, strict=True):
        tell.say(f"  {name}  127.0.0.1:{server.port}  {'primary' if is_primary else 'replica'}")
    return [name for name, is_primary in roles.items() if is_primary]


async def main(kind: str) -> int:
    """Run it; 0 if nothing acknowledged was lost."""
    tell = Teller()
    with {"cluster": cluster, "sentinel": sentinel}[kind](tell) as scene:
        dead = scene.name(scene.home)
        before = describe(scene.servers, scene, tell)
        worlds = {name: World(open_store(url), DrivenClock()) for name, url in scene.urls.items()}
        ledger = await load(scene, worlds, tell)
        after = describe([one for one in scene.servers if one is not scene.home], scene, tell)
        (heir,) = set(after) - set(before)
        tell.say(f"{heir} took over from {dead}")
        lost = 0
        for name, acknowledged in ledger.items():
            gone = acknowledged - {job.id for job in await worlds[name].find_all()}
            tell.say(f"{name}: {len(acknowledged)} acknowledged, {len(gone)} lost")
            await worlds[name].check_invariants()
            await worlds[name].store.upkeep.aclose()
            lost += len(gone)
        return int(lost > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*(sys.argv[1:] or ["cluster"]))))
