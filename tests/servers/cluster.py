"""A cluster on loopback: three primaries that share the slots, and nodes that may follow any of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from redis import Redis

from tests.servers.valkey import MEMORY, ValkeyServer, free_port

PATIENCE: Final = 60
SLOTS: Final = ((0, 5_460), (5_461, 10_922), (10_923, 16_383))
_NODE: Final = (
    "--cluster-enabled",
    "yes",
    "--cluster-node-timeout",
    "2000",
    "--cluster-replica-validity-factor",
    "0",
)


def start_cluster(more: int = 1, kind: str | None = None) -> list[ValkeyServer]:
    """Start three nodes and so many more; return when all know each other and all slots are served."""
    nodes = [ValkeyServer(*_NODE, folder=MEMORY, port=free_port(), kind=kind) for _ in range(3 + more)]
    for node in nodes:
        node.start()
    for node, slots in zip(nodes, SLOTS, strict=False):
        ask(node, "CLUSTER", "ADDSLOTSRANGE", *slots)
    for node in nodes[1:]:
        ask(nodes[0], "CLUSTER", "MEET", "127.0.0.1", node.port)
    await_fact(lambda: all(info(node, "cluster_state") == "ok" for node in nodes))
    await_fact(lambda: all(info(node, "cluster_known_nodes") == str(len(nodes)) for node in nodes))
    return nodes


def ask(server: ValkeyServer, *command: object, password: str | None = None) -> object:
    """Send a command to one node."""
    with Redis.from_url(server.url, password=password) as client:
        return client.execute_command(*command)


def await_fact(fact: Callable[[], bool]) -> None:
    """Look until something is so."""
    until = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.05)


def info(node: ValkeyServer, name: str) -> str:
    """Return one line of what a node says of its cluster."""
    with Redis.from_url(node.url) as client:
        return str(client.execute_command("CLUSTER INFO")[name])


def name_of(node: ValkeyServer) -> str:
    """Return the id by which the cluster knows a node."""
    found = ask(node, "CLUSTER", "MYID")
    return found.decode() if isinstance(found, bytes) else str(found)


def home_of(nodes: list[ValkeyServer], prefix: str) -> ValkeyServer:
    """Return the primary that has an installation, as the slots were shared first."""
    slot = ask(nodes[0], "CLUSTER", "KEYSLOT", f"{{{prefix}}}:")
    assert isinstance(slot, int)
    (index,) = [i for i, (first, last) in enumerate(SLOTS) if first <= slot <= last]
    return nodes[index]


def follow(replica: ValkeyServer, primary: ValkeyServer) -> None:
    """Let a node follow a primary, and return when it does."""
    ask(replica, "CLUSTER", "REPLICATE", name_of(primary))
    await_fact(lambda: is_linked(replica))


def is_linked(replica: ValkeyServer, password: str | None = None) -> bool:
    """Whether a replica follows its primary."""
    with Redis.from_url(replica.url, password=password) as client:
        return bool(client.info("replication").get("master_link_status") == "up")
